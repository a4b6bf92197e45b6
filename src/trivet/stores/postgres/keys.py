"""Where does a PostgreSQL store keep its API keys?"""

from __future__ import annotations

from trivet.stores.contract import KeyRow
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.database import Database

_COLUMNS = "id, name, hash, scope, collections, created, revoked"


class PostgresKeys:
    def __init__(self, url: str) -> None:
        self._database = Database(Address.parse(url))

    def add(self, row: KeyRow) -> None:
        with self._database.write() as connection:
            connection.execute(
                f"INSERT INTO keys ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (row.id, row.name, row.hash, row.scope, row.collections, row.created, row.revoked),
            )

    def rows(self) -> list[KeyRow]:
        return self._read(f"SELECT {_COLUMNS} FROM keys ORDER BY created, id")

    def find(self, identifier: str) -> KeyRow | None:
        found = self._read(f"SELECT {_COLUMNS} FROM keys WHERE id = %s", identifier)
        return found[0] if found else None

    def revoke(self, identifier: str, at: float) -> None:
        with self._database.write() as connection:
            connection.execute("UPDATE keys SET revoked = %s WHERE id = %s", (at, identifier))

    def any(self) -> bool:
        return bool(self._read(f"SELECT {_COLUMNS} FROM keys LIMIT 1"))

    def any_in_use(self) -> bool:
        return bool(self._read(f"SELECT {_COLUMNS} FROM keys WHERE revoked IS NULL LIMIT 1"))

    def _read(self, sql: str, *values: str) -> list[KeyRow]:
        return [KeyRow(row[0], row[1], bytes(row[2]), *row[3:]) for row in self._database.all(sql, values)]

    def close(self) -> None:
        self._database.close()
