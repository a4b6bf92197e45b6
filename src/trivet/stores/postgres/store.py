"""Where is it kept? On a PostgreSQL server, in a schema of its own; on a Citus cluster, spread over its workers."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from trivet.errors import InputError, NotFoundError, StoreError
from trivet.pools import Background
from trivet.stores.postgres import comparison, records, terms
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.collection import advance, begin
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.parts import Parts
from trivet.stores.postgres.place import Place
from trivet.stores.postgres.postings import Postings
from trivet.stores.postgres.schema import DISTRIBUTED, LATER, WORDS, statements
from trivet.stores.postgres.shelf import Shelf

if TYPE_CHECKING:
    from trivet.stores.contract import Progress

BATCH = 1_000  # passages read at a time when a table of words is filled


class PostgresStore:
    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(Address.parse(url))
        self._background = Background("trivet-index")

    @property
    def path(self) -> str:
        return self.database.address.shown

    def shelf(self, name: str, config: Mapping[str, Any], settings: str) -> Shelf:
        found = self._find(name)
        if found is None:
            made = {key: value for key, value in config.items() if value is not None}
            if self.database.address.spread:
                made["spread"] = self.database.address.spread
            self._make(name, made, settings)
            found = self._find(name)
            assert found is not None
        cid, kept = found[0], json.loads(found[1])
        for key, value in config.items():
            if value is not None and key in kept and kept[key] != value:
                raise InputError(
                    f"{key}: collection {name!r} was made with {kept[key]!r}, not {value!r}; "
                    "open it without this argument, or export it and import it into a new collection"
                )
        return Shelf(self, cid, name, kept)

    def _find(self, name: str) -> tuple[int, str] | None:
        rows = self.database.all("SELECT cid, config FROM collections WHERE name = %s", (name,))
        return (rows[0][0], rows[0][1]) if rows else None

    def _make(self, name: str, config: Mapping[str, Any], settings: str) -> None:
        """Of two processes that make the same, one does and the other finds it."""
        spread = int(config.get("spread", 0))
        with self.database.write() as connection:
            row = connection.execute(
                "UPDATE numbers SET value = value + %s WHERE name = 'collection' RETURNING value", (1 + spread,)
            ).fetchone()
            assert row is not None
            cid = int(row[0]) - spread  # and each part has one of the numbers behind it
            made = connection.execute(
                "INSERT INTO collections (cid, name, config, created) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (name) DO NOTHING",
                (cid, name, json.dumps(config), time.time()),
            ).rowcount
            if not made:
                return
            bm25 = (
                self.database.server.bm25
                and not spread
                and _made(connection, statements(WORDS.format(table=f"words_{cid}")))
            )
            connection.execute(
                "INSERT INTO heads (cid, settings, mid, bm25, version, documents, passages, terms, last_document, "
                "last_passage, last_removed, last_model, last_feedback) "
                "VALUES (%s, %s, NULL, %s, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
                (cid, settings, bm25),
            )
            begin(connection, cid, 0)

    def cursor_key(self) -> bytes:
        return str(self.database.all("SELECT id FROM generation", ())[0][0]).encode()

    def names(self) -> list[str]:
        return [name for (name,) in self.database.all("SELECT name FROM collections ORDER BY name")]

    def drop(self, name: str) -> None:
        """Delete a collection with everything in it."""
        found = self._find(name)
        if found is None:
            raise NotFoundError(f"collection: {name!r} does not exist; there are: {', '.join(self.names()) or 'none'}")
        cid = found[0]
        parts = Parts.of(cid, json.loads(found[1]).get("spread", 0))
        mids = [mid for (mid,) in self.database.all("SELECT mid FROM models WHERE cid = %s", (cid,))]
        with self.database.write() as connection:
            connection.execute("SELECT 1 FROM heads WHERE cid = %s FOR UPDATE", (cid,))
            for part in sorted({cid, *parts.cids}):
                for table in ("vectors", "fields", "passages", *DISTRIBUTED, *LATER):
                    connection.execute(f"DELETE FROM {table} WHERE cid = %s", (part,))
            connection.execute("DELETE FROM collections WHERE cid = %s", (cid,))
            connection.execute(f"DROP TABLE IF EXISTS words_{cid}")
        for mid in mids:
            for part in parts.cids:
                self.drop_index(f"meaning_{part}_{mid}")

    def drop_index(self, name: str) -> None:
        self.database.outside(lambda connection: connection.execute(f"DROP INDEX IF EXISTS {name}"))

    # --- tables of words --------------------------------------------------------------------------------------------

    def add_words(self, shelf: Shelf, progress: Progress | None = None) -> None:
        """Make and fill a collection's table of words, where it was made on a server without pg_textsearch."""
        (bm25,) = self.database.all("SELECT bm25 FROM heads WHERE cid = %s", (shelf.cid,))[0]
        if bm25:
            return
        place = Place(shelf.parts, shelf.analyzer, f"words_{shelf.cid}")
        with self.database.write() as connection:
            connection.execute("SET LOCAL statement_timeout = 0")
            head = connection.execute("SELECT passages FROM heads WHERE cid = %s FOR UPDATE", (shelf.cid,)).fetchone()
            if head is None or not _made(connection, statements(WORDS.format(table=place.words))):
                return
            connection.execute(f"TRUNCATE {place.words}")
            after, done = 0, 0
            sql = "SELECT pid, did, body FROM passages WHERE cid = %s AND pid > %s ORDER BY pid LIMIT %s"
            while rows := connection.execute(sql, (shelf.cid, after, BATCH)).fetchall():
                spelt = ((pid, did, terms.line(shelf.analyzer.terms(body))) for pid, did, body in rows)
                records.add_words(connection, place, spelt)
                after, done = rows[-1][0], done + len(rows)
                if progress:
                    progress(done, head[0])
            connection.execute("UPDATE heads SET bm25 = true WHERE cid = %s", (shelf.cid,))
            advance(connection, shelf.cid)

    def drop_words(self, shelf: Shelf) -> None:
        with self.database.write() as connection:
            connection.execute("UPDATE heads SET bm25 = false WHERE cid = %s", (shelf.cid,))
            advance(connection, shelf.cid)
            connection.execute(f"DROP TABLE IF EXISTS words_{shelf.cid}")

    def recount(self, shelf: Shelf) -> None:
        """How many passages have each term, counted anew; the postings are made anew by ``tidy``."""
        with self.database.write() as connection:
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute("SELECT 1 FROM heads WHERE cid = %s FOR UPDATE", (shelf.cid,))
            length = 0
            for part in shelf.parts.every:
                comparison.mend(connection, part, shelf.analyzer)
                records.recount_terms(connection, part.cid)
                Postings(self.database, part).forget(connection)
                sql = "SELECT coalesce(sum(length), 0) FROM passages WHERE cid = %s"
                length += int((connection.execute(sql, (part.cid,)).fetchone() or (0,))[0])
            connection.execute("UPDATE heads SET terms = %s WHERE cid = %s", (length, shelf.cid))
            for (mid,) in connection.execute("SELECT mid FROM models WHERE cid = %s", (shelf.cid,)).fetchall():
                sql = "SELECT count(*) FROM vectors WHERE cid = %s AND mid = %s"
                own = [connection.execute(sql, (part.cid, mid)).fetchone() or (0,) for part in shelf.parts.every]
                sql = "UPDATE models SET vectors = %s WHERE cid = %s AND mid = %s"
                connection.execute(sql, (sum(count for (count,) in own), shelf.cid, mid))

    def analyse(self) -> None:
        """Let the indexes take in, and the planner know, what a bulk load brought, rather than when the server finds
        the time."""

        def work(connection: Connection) -> None:
            if not self.database.server.citus:  # a worker's own business there
                for index in ("passages_words", "passages_trigrams"):
                    connection.execute(f"SELECT gin_clean_pending_list('{index}')")
            connection.execute("ANALYZE documents, passages, vectors, fields, lexicon")

        self.database.outside(work)

    # --- care -------------------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Indexes the server calls invalid; it looks after its own files."""
        rows = self.database.all(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND NOT i.indisvalid",
            (self.database.address.schema,),
        )
        return [f"index: {name!r} is not valid; run rebuild, or REINDEX INDEX {name}" for (name,) in rows]

    def sizes(self) -> tuple[int, int]:
        """Tables and indexes, as far as this server can tell (a cluster's workers are not asked)."""
        rows = self.database.all(
            "SELECT coalesce(sum(pg_table_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
            (self.database.address.schema,),
        )
        return int(rows[0][0]), int(rows[0][1])

    def reclaim(self) -> None:
        """Let the server reuse the space of what was deleted, in the tables that this role may vacuum."""
        self.database.outside(lambda connection: connection.execute(f"VACUUM {', '.join((*DISTRIBUTED, *LATER))}"))

    def files(self) -> set[Path]:
        return set()

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[bool]:
        """A lock of the whole server, taken if it is free; held by a connection of its own."""
        try:
            connection = psycopg.connect(
                self.database.address.conninfo, autocommit=True, application_name="trivet-lock"
            )
        except psycopg.Error as error:
            raise StoreError(f"store: {self.path!r} cannot be reached ({error})") from error
        with contextlib.closing(connection):
            key = f"trivet.{self.database.address.schema}.{name}"
            row = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s), 1)", (key,)).fetchone()
            yield bool(row and row[0])

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do it in a thread that ``close`` waits for."""
        self._background.start(work, *arguments)

    def close(self) -> None:
        self._background.end()
        self._background.join()
        self.database.close()


def _made(connection: Connection, script: list[str]) -> bool:
    """Run it, or leave no trace of it where the server refuses: then words are ranked without BM25."""
    try:
        with connection.transaction():
            for statement in script:
                connection.execute(statement)
    except psycopg.Error:
        return False
    return True
