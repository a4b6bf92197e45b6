"""The API keys of a PostgreSQL store."""

from __future__ import annotations

from trivet.stores.contract import KeyRow
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.database import Database

_COLUMNS = "id, name, hash, scope, collections, created, revoked"
_SELECT = (
    "SELECT k.id, k.name, k.hash, k.scope, k.collections, k.created, k.revoked, f.filter "
    "FROM keys k LEFT JOIN key_filters f ON f.id = k.id"
)


class PostgresKeys:
    """The table of API keys."""

    def __init__(self, url: str) -> None:
        self._database = Database(Address.parse(url))

    def add(self, row: KeyRow) -> None:
        with self._database.write() as connection:
            connection.execute(
                f"INSERT INTO keys ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (row.id, row.name, row.hash, row.scope, row.collections, row.created, row.revoked),
            )
            if row.filter is not None:
                connection.execute("INSERT INTO key_filters (id, filter) VALUES (%s, %s)", (row.id, row.filter))

    def rows(self) -> list[KeyRow]:
        return self._read(f"{_SELECT} ORDER BY k.created, k.id")

    def find(self, id: str) -> KeyRow | None:
        found = self._read(f"{_SELECT} WHERE k.id = %s", id)
        return found[0] if found else None

    def revoke(self, id: str, at: float) -> None:
        with self._database.write() as connection:
            connection.execute("UPDATE keys SET revoked = %s WHERE id = %s", (at, id))

    def any(self) -> bool:
        return bool(self._read(f"{_SELECT} LIMIT 1"))

    def any_in_use(self) -> bool:
        return bool(self._read(f"{_SELECT} WHERE k.revoked IS NULL LIMIT 1"))

    def _read(self, sql: str, *values: str) -> list[KeyRow]:
        return [KeyRow(row[0], row[1], bytes(row[2]), *row[3:]) for row in self._database.all(sql, values)]

    def close(self) -> None:
        self._database.close()
