"""Scores of the hits of one search by a scorer, within a time limit.

A model that is too slow or fails never fails the search: the hits without a score keep their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as OutOfTime

from trivet.concurrency import deadline
from trivet.concurrency.admission import SEARCHES
from trivet.rerank.reranker import Scoring

#: Seconds that the first search of a process waits for the model to load; the time limit is for scoring only.
OPENING = 10.0


class Scores:
    """The scores of the hits of one search, as far as the scorer has returned them."""

    def __init__(self, scorer: Scoring, query: str, texts: Sequence[str]) -> None:
        """``texts`` are what the scorer reads of each hit, in the order of the hits."""
        self._scorer, self._query, self._texts = scorer, query, texts
        self._scores: list[float | None] = [None] * len(texts)
        self._cached = 0

    def run(self, ms: float, enough: Callable[[Sequence[float]], bool] | None = None) -> str:
        """Score in batches, in the fused order, for at most ``ms`` milliseconds; return what went wrong.

        ``enough`` gets the scores so far after each batch and tells whether the others need not be scored.
        """
        try:
            self._scores = self._scorer.known(self._query, self._texts)
            missing = [place for place, score in enumerate(self._scores) if score is None]
            self._cached = len(self._scores) - len(missing)
            if missing:
                self._open()
            ends = time.monotonic() + deadline.within(ms / 1000)
            for start in range(0, len(missing), self._scorer.batch):
                if enough is not None and enough(self.leading()):
                    return ""
                if problem := self._ask(missing[start : start + self._scorer.batch], ends, ms):
                    return problem
        except Exception as error:  # a scorer may raise anything, and the search goes on with the fused order
            return self._problem(str(error) or type(error).__name__)
        return ""

    def _open(self) -> None:
        opening = self._scorer.open()
        try:
            with SEARCHES.aside():
                opening.result(deadline.within(OPENING))
        except OutOfTime:
            if opening.done():  # raised by the scorer itself
                raise
            raise OutOfTime(f"the scorer did not load within {OPENING:g} s") from None

    def _ask(self, places: Sequence[int], ends: float, ms: float) -> str:
        late = self._problem(f"the time limit of {ms:g} ms is over; raise budget_ms, or lower the profile's pool")
        if time.monotonic() >= ends:
            return late
        future = self._scorer.ask(self._query, [self._texts[place] for place in places])
        try:
            with SEARCHES.aside():
                scores = future.result(max(0.0, ends - time.monotonic()))
        except OutOfTime as error:
            future.cancel()
            # since Python 3.11 this is the built-in TimeoutError, which a scorer may raise itself
            if future.done() and not future.cancelled() and future.exception() is error:
                raise
            return late
        for place, score in zip(places, scores, strict=True):
            self._scores[place] = score
        return ""

    def leading(self) -> list[float]:
        """Return the scores up to the first hit without one."""
        scored: list[float] = []
        for score in self._scores:
            if score is None:
                break
            scored.append(score)
        return scored

    @property
    def note(self) -> str:
        """How many hits are scored, for the trace."""
        scored = sum(score is not None for score in self._scores)
        cached = f", {self._cached} of them from the cache" if self._cached else ""
        return f"{scored} of {len(self._scores)} scored{cached}"

    def _problem(self, why: str) -> str:
        scored = len(self.leading())
        kept = "the fused order is kept" if scored < 2 else f"from hit {scored + 1} on the fused order is kept"
        return f"{kept}: {why}"
