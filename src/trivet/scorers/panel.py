"""Was this passage scored for this question before, and who waits for a scorer that is slow?

A ``Panel`` is a scorer with a memory and a few threads. Paging, retries and comparing profiles ask the same again, and
the model need not; a scorer that hangs holds one of its own threads, not the search; and what it says too late for the
search that asked is remembered for the next one. Scores are checked here, whichever scorer gave them.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from trivet.errors import ScorerError
from trivet.pools import Pool

if TYPE_CHECKING:
    from trivet.types import Scorer

T = TypeVar("T")

#: Scores kept, about 100 bytes each.
SIZE = 100_000
#: Calls of the scorer at a time; further ones wait, each as long as its own search allows.
THREADS = 4


class Panel:
    """Thread-safe."""

    def __init__(self, scorer: Scorer, size: int = SIZE) -> None:
        self.scorer = scorer
        self._size, self._lock = size, threading.Lock()
        self._scores: OrderedDict[bytes, float] = OrderedDict()
        self._opening: Future[None] | None = None
        self._threads = Pool(THREADS, "trivet-scorer")

    @property
    def id(self) -> str:
        return self.scorer.id

    @property
    def batch(self) -> int:
        return max(1, self.scorer.batch)

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        keys = self._keys(query, passages)
        with self._lock:
            for key in keys:
                if key in self._scores:
                    self._scores.move_to_end(key)
            return [self._scores.get(key) for key in keys]

    def open(self) -> Future[None]:
        """Opened once, by a scorer that has an ``open``; one that could not be opened is tried again."""
        with self._lock:
            before = self._opening
            if before is None or before.cancelled() or (before.done() and before.exception() is not None):
                self._opening = self._submit(getattr(self.scorer, "open", lambda: None))
            assert self._opening is not None
            return self._opening

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
        return self._submit(self.score, query, list(passages))

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        try:
            return self._threads.submit(work, *arguments)
        except RuntimeError:  # shut down
            raise ScorerError("the store was closed while a search was under way; open it again") from None

    def score(self, query: str, passages: list[str]) -> list[float]:
        """What the scorer says, checked and remembered; each different passage is scored once."""
        once = list(dict.fromkeys(passages))
        given = dict(zip(once, checked(self.scorer.scores(query, once), len(once), self.id), strict=True))
        with self._lock:
            for key, passage in zip(self._keys(query, once), once, strict=True):
                self._scores[key] = given[passage]
            while len(self._scores) > self._size:
                self._scores.popitem(last=False)
        return [given[passage] for passage in passages]

    def _keys(self, query: str, passages: Sequence[str]) -> list[bytes]:
        """Everything that changes a score, as 16 bytes: the scorer, the question and the passage's content."""
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
        self._threads.close()


def checked(scores: Sequence[float], count: int, name: str) -> list[float]:
    """The scores as floats; another number of them, or one that is none, is the scorer's failure."""
    try:
        found = [float(score) for score in scores]
    except (TypeError, ValueError):
        raise ScorerError(f"scorer {name!r} gave something that is not a list of numbers") from None
    if len(found) != count:
        raise ScorerError(f"scorer {name!r} gave {len(found)} scores for {count} passages")
    if bad := next((score for score in found if not math.isfinite(score)), None):
        raise ScorerError(f"scorer {name!r} gave {bad} as a score: check the model or the endpoint")
    return found
