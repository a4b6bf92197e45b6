"""The rows of one collection: what every part of it reads and writes the database with.

The functions read documents and passages on a connection that the caller holds.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from trivet.errors import CollectionDroppedError, StoreError, StoreReplacedError
from trivet.filters import Filter, matches
from trivet.frozen import quick
from trivet.stores.contract import Model, Span, State
from trivet.stores.sqlite.database import Database
from trivet.types import Document

Version = tuple[int, bytes]  # number and token

_STATE = (
    "SELECT c.version, t.token, c.settings, c.documents, c.passages, m.mid, m.id, m.spec, m.dim, m.vectors "
    "FROM collections c JOIN timeline t ON t.cid = c.cid AND t.version = c.version "
    "LEFT JOIN models m ON m.mid = c.mid WHERE c.cid = ?"
)
_HEAD = "SELECT c.version, t.token FROM collections c JOIN timeline t USING (cid, version) WHERE cid = ?"
_TOKEN = "SELECT token FROM timeline WHERE cid = ? AND version = ?"

_document = quick(Document)
#: The C function of the JSON decoder: its methods in Python take as long again. It raises ``StopIteration`` at the end.
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
PAUSE_SECONDS, PAUSES = 0.002, 50  # the background waits for running searches this often before it goes on
_IN_CHUNK = 500  # values of one IN list, well under SQLite's limit of parameters
#: The fields of ``Document``, in order, after the row number.
COLUMNS = (
    "did, id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, "
    "coalesce((SELECT count FROM access WHERE access.did = documents.did), 0), "
    "(SELECT at FROM expiries WHERE expiries.did = documents.did)"
)
#: The last expiry that has passed, and the documents whose expiry has passed.
LAST_EXPIRED = "SELECT max(at) FROM expiries WHERE cid = ? AND at <= ?"
EXPIRED = "SELECT did FROM expiries WHERE cid = ? AND at <= ?"


class RunningSearches:
    """A counter of searches, so that work in the background gives way to them.

    Python runs one thread at a time and switches every 5 ms: a search that meets a busy thread hundreds of times would
    take seconds.
    """

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a search until the block ends."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    def give_way(self) -> None:
        """Wait while a search runs, but not for ever."""
        for _ in range(PAUSES):
            if not self._count:
                return
            time.sleep(PAUSE_SECONDS)


class CollectionRows:
    """The rows of one collection, and the timeline of its versions.

    A *timeline* is a sequence of versions, each with a random token. A restored backup repeats the numbers of the
    versions, but not their tokens, so a state of another timeline is noticed and refused.
    """

    def __init__(self, database: Database, cid: int, uid: str, name: str) -> None:
        self.database, self.cid, self.name = database, cid, name
        self.identity = f"{uid}/{database.generation}"  # indexes of another collection or of a replaced file differ
        self.snapshot, self.explained, self.write = database.snapshot, database.explained, database.write
        self.searches = RunningSearches()
        self._following = threading.Lock()
        self._last: Version = (-1, b"")  # the newest version that was seen
        self._on_reset: list[Callable[[], None]] = []

    def on_reset(self, drop: Callable[[], None]) -> None:
        """Call ``drop`` when nothing that was read before can be trusted: every cache registers here."""
        self._on_reset.append(drop)

    def all(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query; within a snapshot, those of its state."""
        with self.explained():
            return self.database.read().execute(sql, tuple(values)).fetchall()

    def newest(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of the newest state, also within a snapshot: an index never goes back to an older one."""
        with self.explained():
            return self.database.newest().execute(sql, tuple(values)).fetchall()

    def state(self) -> State:
        """Return the state; refuse one of another timeline than what was read of this collection before."""
        if self.database.in_snapshot:  # a moment old: another thread may have seen a later one
            return self.snapshot_state()
        self.database.check_file()
        with self._following:  # one at a time: a state that was read earlier must not look like one set back
            state = self.snapshot_state()
            self._follow(state.version, state.token)
        return state

    def snapshot_state(self) -> State:
        """Return the state that this thread reads, without a look at the timeline."""
        row = self.all(_STATE, (self.cid,))
        if not row:
            raise self.dropped()
        version, token, settings, documents, passages, *model = row[0]
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model), token)

    def newest_version(self) -> Version:
        """Return the newest version; refuse one of another timeline."""
        with self._following:
            version, token = self.newest(_HEAD, (self.cid,))[0]
            self._follow(version, token)
        return version, token

    def _follow(self, version: int, token: bytes) -> None:
        """Refuse a version that does not come after the last one that was seen: a backup was copied into the file."""
        last, seen = self._last
        if (version, token) == (last, seen):
            return
        if last >= 0:
            rows = self.all(_TOKEN, (self.cid, last))
            if version < last or (rows and rows[0][0] != seen):
                message = f"store: {str(self.database.path)!r}: another state was put in its place while it was open"
                raise StoreReplacedError(f"{message} (a restored backup?); open it again")
            if not rows:  # the last version is too old to be compared: nothing that is in memory is trusted
                for drop in self._on_reset:
                    drop()
        self._last = (version, token)

    def knows_version(self, version: int, token: bytes) -> bool:
        """Tell whether this version is in the collection's past: one of a restored backup may not be."""
        rows = self.all(_TOKEN, (self.cid, version))
        return bool(rows) and bool(rows[0][0] == token)

    def token_of(self, version: int) -> bytes | None:
        """Return the token of a version in the newest state; None where it is not kept."""
        rows = self.newest(_TOKEN, (self.cid, version))
        return rows[0][0] if rows else None

    def version_in(self, connection: sqlite3.Connection) -> Version | None:
        """Return the version within a transaction; None for a collection that was dropped."""
        row: Version | None = connection.execute(_HEAD, (self.cid,)).fetchone()
        return row

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction that ends with a new version, so that every index reads what changed."""
        with self.write() as connection:
            yield connection
            self.raise_version(connection)

    def raise_version(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE collections SET version = version + 1 WHERE cid = ?", (self.cid,))

    @contextlib.contextmanager
    def noting(self) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction that keeps the version: no index holds accesses or feedback."""
        with self.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE cid = ?", (self.cid,)).fetchone() is None:
                raise self.dropped()
            yield connection

    def dropped(self) -> CollectionDroppedError:
        return CollectionDroppedError(f"collection: {self.name!r} was dropped")


def fetch(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, Document]:
    """Read documents by row number; one that was deleted meanwhile is absent."""
    found: dict[int, Document] = {}
    for chunk in chunks(dids):
        rows = connection.execute(f"SELECT {COLUMNS} FROM documents WHERE did IN ({marks(chunk)})", chunk)
        found.update((row[0], document_of(row)) for row in rows)
    return found


def find(connection: sqlite3.Connection, cid: int, id: str) -> Document | None:
    """Read a document by its id."""
    row = connection.execute(f"SELECT {COLUMNS} FROM documents WHERE cid = ? AND id = ?", (cid, id)).fetchone()
    return document_of(row) if row else None


def visible(connection: sqlite3.Connection, cid: int, ids: Sequence[str], where: Filter | None) -> set[str]:
    """Return those of the ids whose document exists and is allowed by the filter."""
    found: set[str] = set()
    for chunk in chunks(ids):
        sql = f"SELECT {COLUMNS} FROM documents WHERE cid = ? AND id IN ({marks(chunk)})"
        rows = connection.execute(sql, (cid, *chunk))
        found |= {row[1] for row in rows if where is None or matches(where, document_of(row))}
    return found


def document_of(row: tuple[Any, ...]) -> Document:
    """Return the document of a row of ``COLUMNS``."""
    _, id, title, text, kind, meta, importance, created, updated, accessed, begins, ends, accesses, expires = row
    try:
        known, end = _scan(meta, 0)
        if end != len(meta):
            raise ValueError(f"more after the metadata: {meta[end:]!r}")
        first = datetime.fromtimestamp(created, UTC)
        return _document(
            id,
            text,
            title,
            kind,
            known,
            importance,
            first,
            first if updated == created else datetime.fromtimestamp(updated, UTC),
            None if accessed is None else datetime.fromtimestamp(accessed, UTC),
            None if begins is None else datetime.fromtimestamp(begins, UTC),
            None if ends is None else datetime.fromtimestamp(ends, UTC),
            accesses,
            None if expires is None else datetime.fromtimestamp(expires, UTC),
        )
    except (
        ValueError,
        TypeError,
        OverflowError,
        StopIteration,
    ) as error:  # bytes that are not the ones that were written
        message = f"the row of document {id!r} is damaged ({error})"
        raise StoreError(f"store: {message}; run `trivet doctor`, then restore a backup or an export") from error


def fetch_spans(connection: sqlite3.Connection, pids: Sequence[int]) -> dict[int, Span]:
    """Map passages that exist to (document, ordinal, start, stop)."""
    found: dict[int, Span] = {}
    for chunk in chunks(pids):
        sql = f"SELECT pid, did, ordinal, start, stop FROM passages WHERE pid IN ({marks(chunk)})"
        found.update((row[0], row[1:]) for row in connection.execute(sql, chunk))
    return found


def first_spans(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, Span]:
    """Map documents to the span of their first passage."""
    sql = "SELECT did, ordinal, start, stop FROM passages WHERE did IN (SELECT value FROM json_each(?)) AND ordinal = 0"
    return {row[0]: row for row in connection.execute(sql, (json.dumps(list(dids)),))}


def time_of(value: float | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)


def chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Cut values into parts that one IN list takes."""
    return (items[start : start + _IN_CHUNK] for start in range(0, len(items), _IN_CHUNK))


def marks(chunk: Sequence[Any]) -> str:
    """Return the placeholders of an IN list."""
    return ", ".join("?" * len(chunk))
