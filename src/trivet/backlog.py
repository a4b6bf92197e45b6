"""Who embeds what was stored faster than it could be embedded?

Documents are durable and found by their words first; their meaning follows. One thread per process works the backlog
off, and a lock of the store lets only one process do so at a time: the vectors are in the truth, so nobody has to do
them twice. A failure of the embedder is kept for ``stats`` and tried again with a growing pause; the backlog itself
cannot be lost, it is what has no vector.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from trivet.errors import EmbedderError, TrivetError

if TYPE_CHECKING:
    from trivet.stores.contract import Model, Shelf
    from trivet.types import Embedder, Vector

BATCH = 64  # passages embedded and committed together
TIDY_FROM = 1_000  # passages after which the projections are brought up to date here rather than by the next search
PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds after a failure, doubled each time
Progress = Callable[[int, int], None]


def embed(
    shelf: Shelf,
    embedder: Embedder,
    model: Model,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Give every passage of the collection a vector of this model; returns how many were embedded."""
    _copy_known(shelf, model)
    total = shelf.unembedded(model.mid)
    done, after = 0, 0
    seen: set[bytes] = set()  # copies of a text wait for the first one's vector
    size = getattr(embedder, "batch", BATCH)
    while not (stop and stop.is_set()) and (batch := shelf.next_pending(model.mid, after, size)):
        first = {}
        for pid, _, title, text in batch:
            mark = blake2b(f"{title}\0{text}".encode(), digest_size=16).digest()  # the hash passages are kept under
            if mark not in seen:
                seen.add(mark)
                first[pid] = joined(title, text)
        if first:
            vectors = _checked(embedder.embed_passages(list(first.values())), embedder, len(first), model.dim)
            rows = [(pid, row.astype("<f4").tobytes()) for pid, row in zip(first, vectors, strict=True)]
            shelf.add_vectors(model.mid, rows)
        after = batch[-1][0]
        done += len(batch)
        if progress:
            progress(done, max(done, total))
    if len(seen) < done:
        _copy_known(shelf, model)
    if done > TIDY_FROM:
        shelf.tidy()
    return done


def embed_few(shelf: Shelf, embedder: Embedder, model: Model, pids: Sequence[int]) -> None:
    """Give just these passages their vectors; what else waits goes on waiting."""
    if not pids:
        return
    known = dict(shelf.known_vectors(model.mid, pids))
    waiting = shelf.next_pending(model.mid, min(pids) - 1, max(pids) - min(pids) + 1)  # others brought theirs
    fresh = [row for row in waiting if row[0] in pids and row[0] not in known]
    if fresh:
        texts = {pid: joined(title, text) for pid, _, title, text in fresh}
        once = list(dict.fromkeys(texts.values()))
        vectors = _checked(embedder.embed_passages(once), embedder, len(once), model.dim)
        rows = {text: vector.astype("<f4").tobytes() for text, vector in zip(once, vectors, strict=True)}
        known |= {pid: rows[text] for pid, text in texts.items()}
    if known:
        shelf.add_vectors(model.mid, list(known.items()))


def _copy_known(shelf: Shelf, model: Model) -> None:
    """Give passages the vector that another passage of the same text has already."""
    known = shelf.known_vectors(model.mid)
    for start in range(0, len(known), 1000):
        shelf.add_vectors(model.mid, known[start : start + 1000])


def _checked(vectors: Any, embedder: Embedder, count: int, dim: int) -> Vector:
    """A caller's own embedder may give anything; what is stored is of the model's size, finite and of unit length."""
    import numpy as np

    from trivet.embedders.rows import unit_rows

    rows = np.asarray(vectors, dtype=np.float64)
    if rows.shape != (count, dim):
        raise EmbedderError(f"embedder {embedder.spec!r} gave {rows.shape} for {count} texts; expected {(count, dim)}")
    return unit_rows(rows, embedder.spec)


def joined(title: str, text: str) -> str:
    """What the model reads of a passage: its title says what a cut passage is about."""
    return f"{title}\n{text}" if title else text


class Backlog:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._guard = threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.error = ""

    def start(self, embedder: Embedder, model: Model) -> None:
        """Work in the background; at once if it slept."""
        with self._guard:
            self._work = embedder, model  # another process may have changed the model since the last time
            if self._thread is None and not self._stop.is_set():
                work = threading.Thread(target=self._run, name="trivet-embed", daemon=True)
                self._thread = work
                work.start()
            self._wake.set()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and not self._stop.is_set()

    def close(self) -> None:
        """Finish the batch in hand; what is left waits in the store for the next process."""
        with self._guard:  # whoever starts it meanwhile is seen here, or sees that it has ended
            self._stop.set()
            self._wake.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=60)

    def _run(self) -> None:
        pause = PAUSE
        while True:
            self._wake.clear()
            if self._stop.is_set():  # asked after the clearing: ``close`` stops it and then wakes it
                return
            embedder, model = self._work
            try:
                with self._shelf.embedding() as mine:
                    if mine:
                        embed(self._shelf, embedder, model, stop=self._stop)
                        pause = PAUSE
                self.error = ""  # nothing failed here, or another process is at it
            except Exception as error:  # a caller's own embedder may raise anything: the thread must not die of it
                self.error = str(error) if isinstance(error, TrivetError) else f"{type(error).__name__}: {error}"
                pause = min(LONGEST_PAUSE, pause * 2)
            self._wake.wait(pause if self._unfinished(model) else None)

    def _unfinished(self, model: Model) -> bool:
        try:
            return self._shelf.unembedded(model.mid) > 0
        except TrivetError:  # the store is closed or the collection dropped: nothing left to do
            self._stop.set()
            return True
