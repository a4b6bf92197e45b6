"""The vectors of one collection: the models, the passages that have no vector yet, and the index of each model."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import Timeout

from trivet.concurrency import deadline
from trivet.errors import InputError, TrivetError
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.contract import Found, Model, State, Text
from trivet.stores.indexes.file_locks import acquire, check_not_stopped
from trivet.stores.sqlite.change_feed import ChangeFeed
from trivet.stores.sqlite.document_writes import add_vectors
from trivet.stores.sqlite.half_precision import floats, rounded
from trivet.stores.sqlite.imports import SqliteImportLog
from trivet.stores.sqlite.lexical import A_FEW_WRITES
from trivet.stores.sqlite.rows import CollectionRows, chunks, marks

if TYPE_CHECKING:
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.vector_index import VectorIndex
    from trivet.types import Vector

_MODELS = "SELECT mid, id, spec, dim, vectors FROM models WHERE cid = ?"

HALVED = 4_096  # vectors rewritten in one transaction: other writers wait for some tens of milliseconds


class SqliteVectorIndex:
    """Vectors of the passages, with one index for each model."""

    def __init__(
        self,
        rows: CollectionRows,
        feed: ChangeFeed,
        imports: SqliteImportLog,
        folder: Path,
        lock: Path,
        start: Start,
    ) -> None:
        """``folder`` has the indexes of the collection; ``lock`` is the file by which one process embeds at a time."""
        self._rows, self._cid, self._all, self._newest = rows, rows.cid, rows.all, rows.newest
        self._feed, self._imports, self._folder, self._embedding = feed, imports, folder, lock
        self._lock = threading.Lock()
        self._indexes: dict[int, VectorIndex] = {}  # by model
        self._compacting = BackgroundTask(
            start, lambda index: index.compact(), TrivetError
        )  # closed: the next one does
        self._loading = BackgroundTask(start, lambda index: index.load(), TrivetError)
        rows.on_reset(self.reset)

    # --- searching ----------------------------------------------------------------------------------------------------

    def search(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        index = self._indexes.get(model.mid) or self.index(model)
        index.catch_up(version)
        if index.wants_compacting:
            self._compacting.start(index)
        if index.wants_loading:
            self._loading.start(index)
        return index.best(vector, depth, scope)

    def is_current(self, state: State) -> bool:
        index = self._indexes.get(state.model.mid) if state.model is not None else None
        return index is not None and index.is_near(state.version, A_FEW_WRITES)

    @deadline.lifted()  # opened for every later request, not for this one alone
    def index(self, model: Model) -> VectorIndex:
        """Return the index of a model, opened if it is not."""
        from trivet.stores.sqlite.vector_index import VectorIndex

        with self._lock:
            if model.mid not in self._indexes:
                identity = f"{model.id}/{self._rows.identity}"
                folder = self._folder_of(model.mid)
                self._indexes[model.mid] = VectorIndex(folder, self._feed, model.dim, identity, model.mid)
            return self._indexes[model.mid]

    def _folder_of(self, mid: int) -> Path:
        return self._folder / f"meaning-{mid}"

    def opened(self) -> list[VectorIndex]:
        """Return the indexes in memory."""
        return list(self._indexes.values())

    def open_stored(self) -> None:
        """Open the index of the collection's model if it is on disk."""
        model = self._rows.state().model
        if model is not None and self._folder_of(model.mid).exists():
            self.index(model)

    def stored(self) -> list[VectorIndex]:
        """Return the indexes on disk, opened; delete those of models that were replaced."""
        found: list[VectorIndex] = []
        models = {row[0]: Model(*row) for row in self._all(_MODELS, (self._cid,))}
        for folder in self._folder.glob("meaning-*"):
            model = models.get(int(folder.name.rpartition("-")[2]))
            if model is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                found.append(self.index(model))
        return found

    def reset(self) -> None:
        """Drop the indexes in memory; the next search opens the files again."""
        with self._lock:
            self._indexes = {}

    def discard(self) -> None:
        """Delete every index; the next search builds it from the records."""
        with self._lock:
            for index in self._indexes.values():
                index.discard()
            self._indexes = {}

    # --- models -------------------------------------------------------------------------------------------------------

    def add_model(self, id: str, spec: str, dim: int, answers: bool) -> Model:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # a caller's own embedder may return anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        with self._rows.changing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO models (cid, id, spec, dim) VALUES (?, ?, ?, ?)", (self._cid, id, spec, dim)
            )
            connection.execute("UPDATE models SET spec = ? WHERE cid = ? AND id = ?", (spec, self._cid, id))
            row = connection.execute(f"{_MODELS} AND id = ?", (self._cid, id)).fetchone()
            if answers:
                connection.execute("UPDATE collections SET mid = ? WHERE cid = ?", (row[0], self._cid))
        return Model(*row)

    def model_id(self, mid: int) -> str:
        rows = self._all("SELECT id FROM models WHERE mid = ?", (mid,))
        return str(rows[0][0]) if rows else ""

    def _dim(self, mid: int) -> int:
        """Return the dimensions of a model; 0 for one that was replaced, which has no vectors."""
        rows = self._newest("SELECT dim FROM models WHERE mid = ?", (mid,))
        return int(rows[0][0]) if rows else 0

    def remove_other_models(self, mid: int) -> None:
        with self._lock:
            self._indexes = {known: index for known, index in self._indexes.items() if known == mid}
        with self._rows.changing() as connection:
            others = "SELECT mid FROM models WHERE cid = ? AND mid <> ?"
            connection.execute(f"DELETE FROM vectors WHERE mid IN ({others})", (self._cid, mid))
            connection.execute("DELETE FROM models WHERE cid = ? AND mid <> ?", (self._cid, mid))
        for old in self._folder.glob("meaning-*"):
            if old != self._folder_of(mid):
                shutil.rmtree(old, ignore_errors=True)

    def halve(self) -> None:
        """Rewrite the vectors that have 32 bits a number; whoever reads them gets the same numbers before and after."""
        sql = (
            "SELECT v.vid, v.data, s.sum FROM vectors v JOIN models m ON m.mid = v.mid LEFT JOIN seals s "
            "ON s.vid = v.vid WHERE v.vid > ? AND m.cid = ? AND length(v.data) = 4 * m.dim ORDER BY v.vid LIMIT ?"
        )
        vid = 0
        while True:
            with self._rows.write() as connection:
                rows = connection.execute(sql, (vid, self._cid, HALVED)).fetchall()
                # a damaged one is left as it is: a new checksum would hide the damage
                new = [(number, rounded(data)) for number, data, kept in rows if kept in (None, zlib.crc32(data))]
                connection.executemany("UPDATE vectors SET data = ? WHERE vid = ?", [(data, at) for at, data in new])
                sums = [(number, zlib.crc32(data)) for number, data in new]
                connection.executemany("INSERT OR REPLACE INTO seals VALUES (?, ?)", sums)
            if len(rows) < HALVED:
                return
            vid = rows[-1][0]

    # --- embedding ----------------------------------------------------------------------------------------------------

    def missing(self, mid: int) -> int:
        sql = "SELECT c.passages - m.vectors FROM collections c JOIN models m ON m.cid = c.cid WHERE m.mid = ?"
        rows = self._newest(sql, (mid,))
        return int(rows[0][0]) if rows else 0

    def next_missing(self, mid: int, after: int, limit: int) -> list[Text]:
        sql = (
            # the unary plus: what is new is at the end of the table, by row number
            "SELECT pid, did, start, stop FROM passages p WHERE +p.cid = ? AND pid > ? AND NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.mid = ? AND v.pid = p.pid) ORDER BY pid LIMIT ?"
        )
        return self._feed.texts(self._newest(sql, (self._cid, after, mid, limit)))

    def known(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        among = "" if pids is None else "AND p.pid IN (SELECT value FROM json_each(?)) "
        rows = self._newest(
            "SELECT p.pid, (SELECT v.data FROM passages q JOIN vectors v ON v.pid = q.pid AND v.mid = ? "
            "WHERE q.cid = p.cid AND q.hash = p.hash LIMIT 1) AS data "
            # the unary plus: the given passages are looked up by number, not among all of the collection
            f"FROM passages p WHERE {'' if pids is None else '+'}p.cid = ? {among}"
            "AND NOT EXISTS (SELECT 1 FROM vectors w WHERE w.mid = ? AND w.pid = p.pid)",
            (mid, self._cid, *([] if pids is None else [json.dumps(list(pids))]), mid),
        )
        dim = self._dim(mid)
        return [(pid, floats(data, dim)) for pid, data in rows if data is not None]

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._imports.adding_vectors() as connection:
            add_vectors(connection, mid, vectors)

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        dim = self._dim(mid)
        for chunk in chunks(dids):
            sql = (
                "SELECT p.did, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid WHERE p.did IN "
                f"({marks(chunk)}) AND (SELECT count(*) FROM passages q WHERE q.did = p.did) = 1"
            )
            found.update((did, floats(data, dim)) for did, data in self._all(sql, (mid, *chunk)))
        return found

    def by_hash(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        rows = self._all(
            "SELECT p.did, p.hash, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid "
            "WHERE p.did IN (SELECT value FROM json_each(?))",
            (mid, json.dumps(list(dids))),
        )
        found: dict[int, dict[bytes, bytes]] = {}
        dim = self._dim(mid)
        for did, digest, data in rows:
            found.setdefault(did, {})[digest] = floats(data, dim)
        return found

    @contextlib.contextmanager
    def embedding_lock(self) -> Iterator[bool]:
        self._embedding.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = acquire(self._embedding, 0)
        except Timeout:
            check_not_stopped([self._embedding])  # else a caller that waits for the vectors waits for ever
            yield False
            return
        with held:
            yield True
