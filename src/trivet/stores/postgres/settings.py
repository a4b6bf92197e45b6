"""The settings of a collection on a PostgreSQL server, and who changed them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from trivet.stores.contract import Change
from trivet.stores.postgres.rows import Rows

MAX_CHANGES = 1_000  # changes that are kept for a collection


class PostgresSettings:
    """The settings of one collection."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def change(self, change: Callable[[str], str], by: str = "") -> str:
        root = self._rows.root
        with self._rows.changing() as transaction:
            settings = change(transaction.settings)
            transaction.execute("UPDATE heads SET settings = %s WHERE cid = %s", (settings, root))
            sql = "SELECT coalesce(max(number), 0) + 1 FROM settings_history WHERE cid = %s"
            ((number,),) = transaction.all(sql, (root,))
            transaction.execute(
                "INSERT INTO settings_history (cid, number, at, who, settings, previous) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (root, number, time.time(), by, settings, transaction.settings),
            )
            sql = "DELETE FROM settings_history WHERE cid = %s AND number <= %s"
            transaction.execute(sql, (root, number - MAX_CHANGES))
        return settings

    def history(self, limit: int) -> list[Change]:
        self._rows.head("cid")  # refuses a collection that was dropped
        return self._read("ORDER BY number DESC LIMIT %s", limit)

    def find(self, number: int) -> Change | None:
        return next(iter(self._read("AND number = %s", number)), None)

    def _read(self, condition: str, value: int) -> list[Change]:
        sql = f"SELECT number, at, who, settings, previous FROM settings_history WHERE cid = %s {condition}"
        rows = self._rows.all(sql, (self._rows.root, value))
        return [Change(row[0], datetime.fromtimestamp(row[1], UTC), *row[2:]) for row in rows]
