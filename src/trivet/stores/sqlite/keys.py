"""The API keys of the embedded store."""

from __future__ import annotations

from pathlib import Path

from trivet.stores.contract import KeyRow
from trivet.stores.sqlite.database import Database
from trivet.stores.sqlite.location import resolved

_COLUMNS = "id, name, hash, scope, collections, created, revoked"
_SELECT = f"SELECT {_COLUMNS}, (SELECT filter FROM key_filters f WHERE f.id = keys.id) FROM keys"


class SqliteKeys:
    """The API keys in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._database = Database(resolved(path))

    def add(self, row: KeyRow) -> None:
        with self._database.write() as connection:
            connection.execute(
                f"INSERT INTO keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (row.id, row.name, row.hash, row.scope, row.collections, row.created, row.revoked),
            )
            if row.filter is not None:
                connection.execute("INSERT INTO key_filters (id, filter) VALUES (?, ?)", (row.id, row.filter))

    def rows(self) -> list[KeyRow]:
        return self._read(f"{_SELECT} ORDER BY created, id")

    def find(self, identifier: str) -> KeyRow | None:
        found = self._read(f"{_SELECT} WHERE id = ?", identifier)
        return found[0] if found else None

    def revoke(self, identifier: str, at: float) -> None:
        with self._database.write() as connection:
            connection.execute("UPDATE keys SET revoked = ? WHERE id = ?", (at, identifier))

    def any(self) -> bool:
        return bool(self._read(f"{_SELECT} LIMIT 1"))

    def any_in_use(self) -> bool:
        return bool(self._read(f"{_SELECT} WHERE revoked IS NULL LIMIT 1"))

    def _read(self, sql: str, *values: str) -> list[KeyRow]:
        with self._database.explained():
            rows = self._database.read().execute(sql, values).fetchall()
        return [KeyRow(row[0], row[1], bytes(row[2]), *row[3:]) for row in rows]

    def close(self) -> None:
        self._database.close()
