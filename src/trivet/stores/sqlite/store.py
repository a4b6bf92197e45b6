"""The embedded store: one SQLite file, with a folder of indexes beside it that can be deleted."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trivet.concurrency.threads import Background
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.stores.sqlite import row_checksums, space
from trivet.stores.sqlite.collection import SqliteCollection
from trivet.stores.sqlite.database import Database
from trivet.stores.sqlite.location import resolved

_TABLES = (  # that have rows of a collection
    "models",
    "fields",
    "links",
    "feedback",
    "access",
    "settings_history",
    "removed",
    "pruned",
    "expiries",
    "passages",
    "documents",
    "collections",
)


class SqliteStore:
    """The collections in one SQLite file."""

    def __init__(self, path: str) -> None:
        self._temporary: Path | None = None
        self._background = Background("trivet-compact")
        if path == ":memory:":
            # SQLite's own :memory: is private to one connection; a temporary folder behaves like any other
            self._temporary = Path(tempfile.mkdtemp(prefix="trivet-"))
            path = str(self._temporary / "memory.db")
        self.path = resolved(path)
        self.index_folder = Path(f"{self.path}.index")
        _check_size(self.path, self.index_folder)
        self.database = Database(self.path)
        if self.database.read_only:
            self._temporary = Path(tempfile.mkdtemp(prefix="trivet-"))
            self.index_folder = self._temporary

    def collection(self, name: str, config: Mapping[str, Any], settings: str) -> SqliteCollection:
        """Return the collection of that name, created if it is new; None in ``config`` means not given."""
        row = self._find(name)
        if row is None:
            made = {key: value for key, value in config.items() if value is not None}
            with self.database.write() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO collections (uid, name, config, settings, created) VALUES (?, ?, ?, ?, ?)",
                    (secrets.token_hex(8), name, json.dumps(made), settings, time.time()),
                )
            row = self._find(name)
            assert row is not None
        cid, kept = row[0], json.loads(row[1])
        for key, value in config.items():
            if value is not None and key in kept and kept[key] != value:
                raise InputError(
                    f"{key}: collection {name!r} was made with {kept[key]!r}, not {value!r}; "
                    "open it without this argument, or export it and import it into a new collection"
                )
        return SqliteCollection(self, cid, row[2], name, kept)

    def _find(self, name: str) -> tuple[int, str, str] | None:
        with self.database.explained():
            found: tuple[int, str, str] | None = (
                self.database.read()
                .execute("SELECT cid, config, uid FROM collections WHERE name = ?", (name,))
                .fetchone()
            )
        return found

    def names(self) -> list[str]:
        with self.database.explained():
            found = [name for (name,) in self.database.read().execute("SELECT name FROM collections ORDER BY name")]
        if not all(isinstance(name, str) for name in found):  # bytes that are not the ones that were written
            advice = "run `trivet doctor`, then restore a backup or an export"
            raise StoreError(f"store: {str(self.path)!r}: the list of its collections is damaged; {advice}")
        return found

    def drop(self, name: str) -> None:
        """Delete a collection with everything in it."""
        found = self._find(name)
        if found is None:
            raise NotFoundError(f"collection: {name!r} does not exist; there are: {', '.join(self.names()) or 'none'}")
        cid = found[0]
        with self.database.write() as connection:
            connection.execute("DELETE FROM vectors WHERE mid IN (SELECT mid FROM models WHERE cid = ?)", (cid,))
            for table in _TABLES:
                connection.execute(f"DELETE FROM {table} WHERE cid = ?", (cid,))
        shutil.rmtree(self.index_folder / f"c{cid}", ignore_errors=True)

    def problems(self) -> list[str]:
        """Return what SQLite's own check finds, and which rows are not what was written."""
        return [*self._problems("PRAGMA integrity_check(20)"), *self._wrong_rows()]

    def _problems(self, check: str) -> list[str]:
        with self.database.explained():
            rows = self.database.read().execute(check).fetchall()
        return [f"file: {row[0]}" for row in rows if row[0] != "ok"]

    def _wrong_rows(self) -> list[str]:
        try:
            with self.database.moment() as connection:
                return row_checksums.problems(connection)
        except StoreError as error:  # a page that cannot be read ends the check
            return [str(error)]

    def backup(self, target: Path, progress: Callable[[int, int], None] | None = None) -> int:
        from trivet.stores.sqlite.backup import backup

        return backup(self.database, target, self.files(), progress)

    def redistribute(self, name: str, by: str) -> bool:
        raise InputError("redistribute: a file is not divided; it is for a collection on a PostgreSQL server")

    def reclaim(self) -> None:
        """Give the space of deleted rows back, so that they can be read nowhere in the file or its log."""
        self.database.vacuum()
        for report in self.index_folder.glob("jobs/*.json"):  # of the HTTP server: a failed import names a document
            report.unlink(missing_ok=True)

    @property
    def url(self) -> str:
        return str(self.path)

    def sizes(self) -> tuple[int, int]:
        files = (self.path, *space.log_files(self.path))
        return sum(map(space.bytes_of, files)), sum(map(space.bytes_of, self.index_folder.rglob("*")))

    def space(self) -> dict[str, int]:
        with self.database.moment() as connection:
            return space.space(connection, self.path, self.index_folder)

    def cursor_key(self) -> bytes:
        return str(self.database.generation).encode()

    def files(self) -> set[Path]:
        store = self.path
        return {store, *(store.with_name(store.name + end) for end in ("-wal", "-shm", ".index"))}

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run ``work`` in a thread that ``close`` waits for."""
        self._background.start(work, *arguments)

    def close(self) -> None:
        self._background.end()
        self.database.close()  # before it waits for the threads: they end when they find it closed
        self._background.join()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _check_size(path: Path, index: Path) -> None:
    """Refuse an empty file with indexes beside it: it was truncated, and must not become a new store."""
    if path.is_file() and not path.stat().st_size and any(index.glob("c*")):
        cause = f"{str(path)!r} is empty, but its indexes are in {str(index)!r}, so it was cut off"
        raise StoreError(f"store: {cause}; restore a backup, or delete that folder to start with an empty store")
