"""The settings of one collection and the log of their changes.

The log is of this store only: a copy of a collection starts another one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

from trivet.errors import StoreError
from trivet.stores.contract import Change
from trivet.stores.sqlite.rows import CollectionRows

KEPT = 1_000  # changes of one collection; older ones are deleted
_SELECT = "SELECT number, at, who, settings, previous FROM settings_history WHERE cid = ?"


class SqliteSettings:
    """The settings of one collection, and who changed them."""

    def __init__(self, rows: CollectionRows) -> None:
        self._rows, self._cid = rows, rows.cid

    def change(self, change: Callable[[str], str], by: str = "") -> str:
        with self._rows.changing() as connection:
            row = connection.execute("SELECT settings FROM collections WHERE cid = ?", (self._cid,)).fetchone()
            if row is None:
                raise self._rows.dropped()
            settings = change(str(row[0]))
            connection.execute("UPDATE collections SET settings = ? WHERE cid = ?", (settings, self._cid))
            _log(connection, self._cid, by, settings, str(row[0]))
        return settings

    def history(self, limit: int) -> list[Change]:
        self._rows.state()  # refuses a collection that was dropped
        return [_change(*row) for row in self._rows.all(f"{_SELECT} ORDER BY number DESC LIMIT ?", (self._cid, limit))]

    def find(self, number: int) -> Change | None:
        rows = self._rows.all(f"{_SELECT} AND number = ?", (self._cid, number))
        return _change(*rows[0]) if rows else None


def _log(connection: sqlite3.Connection, cid: int, by: str, settings: str, previous: str) -> None:
    sql = "SELECT coalesce(max(number), 0) + 1 FROM settings_history WHERE cid = ?"
    (number,) = connection.execute(sql, (cid,)).fetchone()
    at = datetime.now(UTC).timestamp()
    connection.execute(
        "INSERT INTO settings_history VALUES (?, ?, ?, ?, ?, ?)", (cid, number, at, by, settings, previous)
    )
    connection.execute("DELETE FROM settings_history WHERE cid = ? AND number <= ?", (cid, number - KEPT))


def _change(number: int, at: float, by: str, settings: str, previous: str) -> Change:
    try:
        return Change(number, datetime.fromtimestamp(at, UTC), by, settings, previous)
    except (ValueError, TypeError, OverflowError) as error:  # bytes that are not the ones that were written
        message = f"the history of the settings is damaged ({error})"
        raise StoreError(f"store: {message}; run `trivet doctor`, then restore a backup or an export") from error
