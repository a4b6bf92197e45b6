"""The store on a PostgreSQL server: collections in one schema, on a Citus cluster divided between its workers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trivet.concurrency.threads import Background
from trivet.errors import InputError, NotFoundError
from trivet.stores import StoreType
from trivet.stores.postgres import bm25_table, rows
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.collection import PostgresCollection
from trivet.stores.postgres.database import Database, is_store
from trivet.stores.postgres.keys import PostgresKeys
from trivet.stores.postgres.redistribute import add_parts, delete, move, new_number
from trivet.stores.postgres.schema import DISTRIBUTED, LATER, LATER_BY_PART
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.transaction import add_token
from trivet.stores.postgres.vector_search import drop_index
from trivet.types import Progress


class PostgresStore:
    """The collections in one schema of a database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(Address.parse(url))
        self._background = Background("trivet-index")

    @property
    def path(self) -> str:
        return self.database.address.shown

    # --- collections --------------------------------------------------------------------------------------------------

    def collection(self, name: str, config: Mapping[str, Any], settings: str) -> PostgresCollection:
        found = self._find(name)
        if found is None:
            given = {key: value for key, value in config.items() if value is not None}
            self._create(name, given, settings)
            found = self._find(name)
            assert found is not None
        cid, kept = found
        for key, value in config.items():
            if value is not None and key in kept and kept[key] != value:
                raise InputError(
                    f"{key}: collection {name!r} was made with {kept[key]!r}, not {value!r}; "
                    "open it without this argument, or export it and import it into a new collection"
                )
        return PostgresCollection(self, cid, name, kept)

    def _find(self, name: str) -> tuple[int, dict[str, Any]] | None:
        """Return the number of a collection and what it was created with."""
        found = self.database.all("SELECT cid, config FROM collections WHERE name = %s", (name,))
        return (found[0][0], json.loads(found[0][1])) if found else None

    def _known(self, name: str) -> tuple[int, dict[str, Any]]:
        found = self._find(name)
        if found is None:
            raise NotFoundError(f"collection: {name!r} does not exist; there are: {', '.join(self.names()) or 'none'}")
        return found

    def _create(self, name: str, config: Mapping[str, Any], settings: str) -> None:
        """Create a collection, unless another process does at the same time."""
        by_document = self.database.address.distribute == "documents"
        with self.database.write() as connection:
            cid = new_number(connection)
            if by_document:
                config = {**config, "parts": add_parts(connection, self.database.server, cid)}
            created = connection.execute(
                "INSERT INTO collections (cid, name, config, created) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (name) DO NOTHING",
                (cid, name, json.dumps(config), time.time()),
            ).rowcount
            if not created:
                delete(connection, [cid])
                return
            bm25 = (
                self.database.server.bm25 and not by_document and bm25_table.create(connection, self._bm25_table(cid))
            )
            connection.execute(
                "INSERT INTO heads (cid, settings, mid, bm25, version, documents, passages, terms, last_document, "
                "last_passage, last_removed, last_model, last_feedback) "
                "VALUES (%s, %s, NULL, %s, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
                (cid, settings, bm25),
            )
            add_token(connection, cid, 0)

    def _bm25_table(self, cid: int) -> str:
        return rows.bm25_table(self.database.address, cid)

    def names(self) -> list[str]:
        return [name for (name,) in self.database.all("SELECT name FROM collections ORDER BY name")]

    def drop(self, name: str) -> None:
        cid, config = self._known(name)
        tables = Tables(cid, tuple(config.get("parts", ())))
        mids = [mid for (mid,) in self.database.all("SELECT mid FROM models WHERE cid = %s", (cid,))]
        with self.database.write() as connection:
            connection.execute("SELECT 1 FROM heads WHERE cid = %s FOR UPDATE", (cid,))
            delete(connection, [cid])
            connection.execute("DELETE FROM collections WHERE cid = %s", (cid,))
            connection.execute(f"DROP TABLE IF EXISTS {self._bm25_table(cid)}")
        for mid in mids:
            drop_index(self.database, tables, mid)

    def redistribute(self, name: str, by: str) -> bool:
        cid, config = self._known(name)
        if bool(config.get("parts")) == (by == "documents"):
            return False
        mids = [mid for (mid,) in self.database.all("SELECT mid FROM models WHERE cid = %s", (cid,))]
        with self.database.write() as connection:
            connection.execute("SET LOCAL statement_timeout TO 0")
            move(connection, self.database.server, cid, config, by)
            connection.execute(f"DROP TABLE IF EXISTS {self._bm25_table(cid)}")
        for mid in mids:
            drop_index(self.database, Tables(cid), mid)
        return True

    # --- the whole store ----------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        found = self.database.all(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND NOT i.indisvalid",
            (self.database.address.schema,),
        )
        problems = [f"index: {name!r} is not valid; run rebuild, or REINDEX INDEX {name}" for (name,) in found]
        if self.database.server.undistributed:
            problems.append(
                "store: it was made before `CREATE EXTENSION citus`, so all of it is on this node; it works, and "
                "`trivet copy` to another schema of this database distributes it"
            )
        return problems

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of tables and indexes on this server, without the workers of a cluster."""
        found = self.database.all(
            "SELECT coalesce(sum(pg_table_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
            (self.database.address.schema,),
        )
        return int(found[0][0]), int(found[0][1])

    def space(self) -> dict[str, int]:
        """Return the bytes of each table, and of all indexes, on this server."""
        rows = self.database.all(
            "SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
            (self.database.address.schema,),
        )
        parts = [(str(table), int(taken)) for table, taken, _ in rows]
        parts.append(("indexes", sum(int(indexes) for *_, indexes in rows)))
        return dict(parts)

    def cursor_key(self) -> bytes:
        return str(self.database.all("SELECT id FROM generation", ())[0][0]).encode()

    def reclaim(self) -> None:
        """Let the server reuse the space of deleted rows, in the tables that this role may vacuum."""
        tables = ", ".join(map(self.database.address.qualified, (*DISTRIBUTED, *LATER, *LATER_BY_PART)))
        self.database.outside(lambda connection: connection.execute(f"VACUUM {tables}"))

    def files(self) -> set[Path]:
        return set()

    def backup(self, target: Path, progress: Progress | None = None) -> int:
        raise InputError("backup: this store is on a server; use the server's own backup, or `trivet copy` to a file")

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run a function in a thread that ``close`` waits for."""
        self._background.start(work, *arguments)

    def close(self) -> None:
        self._background.end()
        self._background.join()
        self.database.close()


STORE = StoreType(PostgresStore, is_store, PostgresKeys)
