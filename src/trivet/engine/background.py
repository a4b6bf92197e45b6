"""Background embedding of passages that have no vector yet.

A document is durable and found by its words as soon as it is added; its vectors follow. One thread per process embeds,
and a lock of the store lets one process do so at a time. An error of the embedder is kept for ``stats`` and the work
is tried again after a growing pause. The backlog cannot be lost: it is every passage without a vector.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from trivet.errors import EmbedderError, TrivetError
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, Model
    from trivet.types import Embedder, Vector

BATCH = 64  # passages embedded and committed together
TIDY_FROM = 1_000  # passages after which the indexes are updated here rather than by the next search
PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds after a failure, doubled each time


def embed(
    collection: Collection,
    embedder: Embedder,
    model: Model,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Give every passage of the collection a vector of this model; return how many were embedded."""
    _copy_known(collection, model)
    total = collection.vectors.missing(model.mid)
    done, after = 0, 0
    seen: set[bytes] = set()  # hashes of texts: a copy gets the vector of the first
    size = getattr(embedder, "batch", BATCH)
    while not (stop and stop.is_set()) and (batch := collection.vectors.next_missing(model.mid, after, size)):
        first = {}
        for pid, _, title, text in batch:
            mark = blake2b(
                f"{title}\0{text}".encode(), digest_size=16
            ).digest()  # the hash that passages are stored with
            if mark not in seen:
                seen.add(mark)
                first[pid] = joined(title, text)
        if first:
            vectors = _checked(embedder.embed_passages(list(first.values())), embedder, len(first), model.dim)
            rows = [(pid, row.astype("<f4").tobytes()) for pid, row in zip(first, vectors, strict=True)]
            collection.vectors.add(model.mid, rows)
        after = batch[-1][0]
        done += len(batch)
        if progress:
            progress(done, max(done, total))
    if len(seen) < done:
        _copy_known(collection, model)
    if done > TIDY_FROM:
        collection.maintenance.update()
    return done


def embed_few(collection: Collection, embedder: Embedder, model: Model, pids: Sequence[int]) -> None:
    """Give these passages their vectors, and no others."""
    if not pids:
        return
    known = dict(collection.vectors.known(model.mid, pids))
    waiting = collection.vectors.next_missing(
        model.mid, min(pids) - 1, max(pids) - min(pids) + 1
    )  # others brought theirs
    fresh = [row for row in waiting if row[0] in pids and row[0] not in known]
    if fresh:
        texts = {pid: joined(title, text) for pid, _, title, text in fresh}
        once = list(dict.fromkeys(texts.values()))
        vectors = _checked(embedder.embed_passages(once), embedder, len(once), model.dim)
        rows = {text: vector.astype("<f4").tobytes() for text, vector in zip(once, vectors, strict=True)}
        known |= {pid: rows[text] for pid, text in texts.items()}
    if known:
        collection.vectors.add(model.mid, list(known.items()))


def _copy_known(collection: Collection, model: Model) -> None:
    """Give passages the vector of another passage with the same text."""
    known = collection.vectors.known(model.mid)
    for start in range(0, len(known), 1000):
        collection.vectors.add(model.mid, known[start : start + 1000])


def _checked(vectors: Any, embedder: Embedder, count: int, dim: int) -> Vector:
    """Check what an embedder returned: of the model's size, finite; make it unit length."""
    import numpy as np

    from trivet.models.embedders.rows import unit_rows

    rows = np.asarray(vectors, dtype=np.float64)
    if rows.shape != (count, dim):
        raise EmbedderError(f"embedder {embedder.spec!r} gave {rows.shape} for {count} texts; expected {(count, dim)}")
    return unit_rows(rows, embedder.spec)


def joined(title: str, text: str) -> str:
    """Return what the model reads of a passage: the title of its document, then its text."""
    return f"{title}\n{text}" if title else text


class Backlog:
    """The thread that embeds what is missing."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._guard = threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.error = ""

    def start(self, embedder: Embedder, model: Model) -> None:
        """Start the thread, or wake it."""
        with self._guard:
            self._work = embedder, model  # another process may have changed the model
            if self._thread is None and not self._stop.is_set():
                work = threading.Thread(target=self._run, name="trivet-embed", daemon=True)
                self._thread = work
                work.start()
            self._wake.set()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and not self._stop.is_set()

    def close(self) -> None:
        """Finish the current batch and end; what is left is done by the next process."""
        with self._guard:  # a concurrent `start` is seen here, or sees that the thread has ended
            self._stop.set()
            self._wake.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=60)

    def _run(self) -> None:
        pause = PAUSE
        while True:
            self._wake.clear()
            if self._stop.is_set():  # checked after clearing: `close` sets stop first and then wakes
                return
            embedder, model = self._work
            try:
                with self._collection.vectors.embedding_lock() as mine:
                    if mine:
                        embed(self._collection, embedder, model, stop=self._stop)
                        pause = PAUSE
                self.error = ""  # nothing failed, or another process is at it
            except Exception as error:  # a caller's embedder may raise anything, and the thread must go on
                self.error = str(error) if isinstance(error, TrivetError) else f"{type(error).__name__}: {error}"
                pause = min(LONGEST_PAUSE, pause * 2)
            self._wake.wait(pause if self._unfinished(model) else None)

    def _unfinished(self, model: Model) -> bool:
        try:
            return self._collection.vectors.missing(model.mid) > 0
        except TrivetError:  # the store is closed or the collection dropped: nothing left to do
            self._stop.set()
            return True
