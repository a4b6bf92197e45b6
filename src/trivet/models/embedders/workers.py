"""Bulk embedding in several processes.

Each process loads the model by its spec and gets texts; the calling process commits the vectors. A worker that is
killed loses only its share of one batch, which is embedded again.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import load_embedder

if TYPE_CHECKING:
    from trivet.models.embedders.ray import RayWorkers
    from trivet.types import Embedder, Vector

SHARE = 64  # texts that a worker gets at a time
ATTEMPTS = 3  # for a batch whose worker processes die
MOST = 64  # processes


def workers_for(embedder: Embedder, workers: int | str) -> Workers | RayWorkers:
    """Return the embedder spread over that many processes, or over the machines of a Ray cluster (``ray://``)."""
    if isinstance(workers, str) and workers.startswith("ray://"):
        from trivet.models.embedders.ray import RayWorkers

        return RayWorkers(embedder, workers)
    if isinstance(workers, str):
        if not workers.isdecimal():
            raise InputError(f"workers: {workers!r} is neither a number of processes nor ray://HOST:PORT")
        workers = int(workers)
    return Workers(embedder, workers)


class Workers:
    """An embedder that embeds passages in ``count`` processes; a context manager."""

    def __init__(self, embedder: Embedder, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
            raise InputError(f"workers: {count!r} is not a number of processes from 1 to {MOST}")
        self._inner, self._count = embedder, count
        self.id, self.spec, self.dim, self.unrelated = embedder.id, embedder.spec, embedder.dim, embedder.unrelated
        self.batch = SHARE * count  # passages that the background embedding takes at a time
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        # spawn: a forked child would share this process's threads, locks and connections
        context = get_context("spawn")
        return ProcessPoolExecutor(self._count, context, initializer=_load, initargs=(self.spec, self.id))

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        import numpy as np

        size = max(1, -(-len(texts) // self._count))
        shares = [texts[start : start + size] for start in range(0, len(texts), size)]
        for _ in range(ATTEMPTS):
            try:
                return np.concatenate(list(self._pool.map(_embed, shares)))
            except BrokenProcessPool:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._started()
        raise EmbedderError(
            f"embedder {self.spec!r}: the worker processes died {ATTEMPTS} times on a batch of {len(texts)} texts, "
            "perhaps out of memory; use fewer workers"
        )

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def load_same(spec: str, identifier: str) -> Embedder:
    """Return the embedder of a spec in a worker; ``EmbedderError`` where it is not the model with this id."""
    embedder = load_embedder(spec)
    if embedder is None or embedder.id != identifier:
        raise EmbedderError(f"embedder {spec!r} is a different model in the worker; use the same files everywhere")
    return embedder


_loaded: Any = None  # the embedder of a worker process


def _load(spec: str, identifier: str) -> None:
    global _loaded
    _loaded = load_same(spec, identifier)


def _embed(texts: list[str]) -> Any:
    return _loaded.embed_passages(texts)
