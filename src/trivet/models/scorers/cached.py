"""A scorer with a cache and a few threads of its own, which is how the engine uses any scorer.

Paging, retries and comparing profiles score the same passages again, and the cache saves the model that. A scorer that
hangs blocks one of these threads, not the search; scores that come too late for their search are cached for the next
one. Every scorer's scores are checked here.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from trivet.concurrency.threads import ThreadPool
from trivet.errors import ScorerError

if TYPE_CHECKING:
    from trivet.types import Scorer

T = TypeVar("T")

SIZE = 100_000  # cached scores, about 100 bytes each
THREADS = 4  # calls of the scorer at the same time; further calls wait, each as long as its search allows


class CachedScorer:
    """Caches the scores of a scorer and calls it in its own threads. Thread-safe."""

    def __init__(self, scorer: Scorer, size: int = SIZE) -> None:
        self.scorer = scorer
        self._size, self._lock = size, threading.Lock()
        self._scores: OrderedDict[bytes, float] = OrderedDict()
        self._opening: Future[None] | None = None
        self._threads = ThreadPool(THREADS, "trivet-scorer")

    @property
    def id(self) -> str:
        return self.scorer.id

    @property
    def batch(self) -> int:
        return max(1, self.scorer.batch)

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        """Return the cached scores of these passages, None for each one that is not cached."""
        keys = self._keys(query, passages)
        with self._lock:
            for key in keys:
                if key in self._scores:
                    self._scores.move_to_end(key)
            return [self._scores.get(key) for key in keys]

    def open(self) -> Future[None]:
        """Open a scorer that has an ``open`` method, once; after a failure, try again."""
        with self._lock:
            before = self._opening
            if before is None or before.cancelled() or (before.done() and before.exception() is not None):
                self._opening = self._submit(getattr(self.scorer, "open", lambda: None))
            assert self._opening is not None
            return self._opening

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
        """Score the passages in one of the threads."""
        return self._submit(self.score, query, list(passages))

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        try:
            return self._threads.submit(work, *arguments)
        except RuntimeError:  # shut down
            raise ScorerError("the store was closed while a search was under way; open it again") from None

    def score(self, query: str, passages: list[str]) -> list[float]:
        """Score the passages now, check the scores and cache them; equal passages are scored once."""
        distinct = list(dict.fromkeys(passages))
        scores = checked(self.scorer.scores(query, distinct), len(distinct), self.id)
        by_passage = dict(zip(distinct, scores, strict=True))
        with self._lock:
            self._scores.update(zip(self._keys(query, distinct), scores, strict=True))
            while len(self._scores) > self._size:
                self._scores.popitem(last=False)
        return [by_passage[passage] for passage in passages]

    def _keys(self, query: str, passages: Sequence[str]) -> list[bytes]:
        """Return a 16-byte hash for each passage, of the scorer, the query and the passage."""
        start = blake2b(digest_size=16)
        for part in (self.id, query):
            start.update(len(part).to_bytes(8, "little") + part.encode("utf-8", "replace"))
        keys = []
        for passage in passages:
            whole = start.copy()
            whole.update(passage.encode("utf-8", "replace"))
            keys.append(whole.digest())
        return keys

    def close(self) -> None:
        """End the threads."""
        self._threads.close()


def checked(scores: Sequence[float], count: int, name: str) -> list[float]:
    """Return the scores as floats; raise ``ScorerError`` for a wrong number of them or a value that is no score."""
    try:
        found = [float(score) for score in scores]
    except (TypeError, ValueError):
        raise ScorerError(f"scorer {name!r} gave something that is not a list of numbers") from None
    if len(found) != count:
        raise ScorerError(f"scorer {name!r} gave {len(found)} scores for {count} passages")
    if bad := next((score for score in found if not math.isfinite(score)), None):
        raise ScorerError(f"scorer {name!r} gave {bad} as a score: check the model or the endpoint")
    return found
