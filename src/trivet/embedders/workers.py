"""How do several processes embed a bulk load together?

Each loads the model by its spec and is handed texts; what comes back is committed by the one process that asked, so a
worker that is killed loses nothing but its share of one batch, which is given to the next.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from trivet.embedders import load_embedder
from trivet.errors import EmbedderError, InputError

if TYPE_CHECKING:
    from trivet.embedders.ray import RayWorkers
    from trivet.types import Embedder, Vector

SHARE = 64  # texts a worker is handed at a time
TRIES = 3  # a batch that ends its workers this often is what ends them
MOST = 64


def crew(embedder: Embedder, workers: int | str) -> Workers | RayWorkers:
    """Who embeds: so many processes here, or the machines of a Ray cluster."""
    if isinstance(workers, str) and workers.startswith("ray://"):
        from trivet.embedders.ray import RayWorkers

        return RayWorkers(embedder, workers)
    if isinstance(workers, str):
        if not workers.isdecimal():
            raise InputError(f"workers: {workers!r} is neither a number of processes nor ray://HOST:PORT")
        workers = int(workers)
    return Workers(embedder, workers)


class Workers:
    """An embedder whose passages are embedded by ``count`` processes; use as a context manager."""

    def __init__(self, embedder: Embedder, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
            raise InputError(f"workers: {count!r} is not a number of processes from 1 to {MOST}")
        self._inner, self._count = embedder, count
        self.id, self.spec, self.dim, self.unrelated = embedder.id, embedder.spec, embedder.dim, embedder.unrelated
        self.batch = SHARE * count  # what the backlog takes at a time
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        # spawned: a forked child would share this process's threads, locks and connections
        context = get_context("spawn")
        return ProcessPoolExecutor(self._count, context, initializer=_load, initargs=(self.spec, self.id))

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        import numpy as np

        size = max(1, -(-len(texts) // self._count))
        shares = [texts[start : start + size] for start in range(0, len(texts), size)]
        for _ in range(TRIES):
            try:
                return np.concatenate(list(self._pool.map(_embed, shares)))
            except BrokenProcessPool:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._started()
        told = f"{len(texts)} texts ended their workers {TRIES} times"
        raise EmbedderError(f"embedder {self.spec!r}: {told} (out of memory?); try fewer workers")

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


_loaded: Any = None  # of a worker process


def _load(spec: str, identifier: str) -> None:
    global _loaded
    _loaded = load_embedder(spec)
    if _loaded is None or _loaded.id != identifier:
        raise EmbedderError(f"embedder {spec!r} is another model in a process of its own")


def _embed(texts: list[str]) -> Any:
    return _loaded.embed_passages(texts)
