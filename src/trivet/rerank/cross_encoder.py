"""Read question and passage together: which of the fused hits answers best?

A scorer reads each passage of the pool, before the page is cut from it, and its scores are mixed with the fused ones.

    score = low + width * ((1 - w) * f + w * m)

f and m are fused and model score, each from 0 (worst of those scored) to 1 (best); low and width are those of the fused
scores, so that what comes after sees the scale it knows, and what was not scored stays behind what was. The model's
part w is ``weight``; of the first ``head`` hits it is ``head_weight`` where that leaves them higher, because a model
that misreads one passage must not bury an exact hit. Both ways a hit that is better by fusion and by model stays ahead.

Out of time or out of order, the model costs its opinion and never the search: what it did not score keeps its fused
order, and ``degraded`` says so. Where the first hit is far ahead in relevance (``gate``) the model is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass
from typing import ClassVar

from trivet import deadline
from trivet.rerank.reranker import Reranked, Reranker, Scoring, Tools, best_first, option, renumbered
from trivet.types import Degraded, Hit, Query

#: Seconds the first search of a process waits for a model to be opened; the budget is for asking it.
OPENING = 10.0
NO_SCORER = (
    "no scorer is set, the fused order stands; open the store with scorer='folder:PATH' (--scorer, TRIVET_SCORER), "
    "or take 'cross_encoder' out of the rerankers"
)


@dataclass(frozen=True)
class CrossEncoder(Reranker):
    name: ClassVar[str] = "cross_encoder"

    weight: float = option(0.6, "the model's part in the score", low=0.0, high=1.0)
    head: int = option(3, "first hits that the model may not bury", low=0, high=1000)
    head_weight: float = option(
        0.25, "the model's part in their score, where that is better for them", low=0.0, high=1.0
    )
    gate: float = option(1.0, "lead in relevance from which the first is certain; 1: always ask", low=0.0, high=1.0)
    budget_ms: float = option(1000.0, "milliseconds the scorer is given for a search", low=1.0, high=600_000.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return self.apply(hits, query, Tools()).hits

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        pool = renumbered(hits)
        if len(pool) < 2 or not query.text.strip():
            return Reranked(pool, note="nothing to compare")
        if tools.scorer is None:
            return Reranked(pool, (Degraded(self.name, NO_SCORER),))
        ahead = lead(pool)
        if self.gate < 1.0 and ahead >= self.gate:
            return Reranked(pool, note=f"skipped: the first is {ahead:.2f} ahead, the gate is {self.gate:g}")
        asked = _Asked(tools.scorer, query.text, pool)
        trouble = asked.within(self.budget_ms)
        degraded = (Degraded(self.name, trouble),) if trouble else ()
        scored = asked.leading()
        if len(scored) < 2 or min(scored) == max(scored):
            return Reranked(pool, degraded, asked.note)
        return Reranked(self._mixed(pool, scored), degraded, asked.note)

    def _mixed(self, pool: list[Hit], scored: list[float]) -> list[Hit]:
        """The first ``len(scored)`` hits by their mixed scores; the others stay as they are, behind them."""
        first, rest = pool[: len(scored)], pool[len(scored) :]
        mixed = blend([hit.score for hit in first], scored, self.weight, self.head, self.head_weight)
        verdicts = [
            (hit, score, f"read together: {given:.4g}") for hit, score, given in zip(first, mixed, scored, strict=True)
        ]
        return renumbered([*best_first(self, verdicts), *rest])


def blend(
    fused: Sequence[float], scored: Sequence[float], weight: float, head: int = 0, head_weight: float = 1.0
) -> list[float]:
    """``fused``, best first, mixed with what the model says; on the scale of ``fused``."""
    low, width = min(fused), max(fused) - min(fused) or 1.0
    least, spread = min(scored), max(scored) - min(scored) or 1.0
    mixed = []
    for place, (score, given) in enumerate(zip(fused, scored, strict=True)):
        f, m = (score - low) / width, (given - least) / spread
        better = f + weight * (m - f)
        if place < head:
            better = max(better, f + head_weight * (m - f))
        mixed.append(low + width * better)
    return mixed


def lead(hits: Sequence[Hit]) -> float:
    """How far is the first hit ahead of every other in relevance? Below 0 where another is more relevant."""
    return hits[0].relevance - max(hit.relevance for hit in hits[1:])


class _Asked:
    """What the scorer is asked for one search, and what it has said so far."""

    def __init__(self, scorer: Scoring, query: str, hits: Sequence[Hit]) -> None:
        self._scorer, self._query = scorer, query
        self._texts = [_read(hit) for hit in hits]
        self._scores: list[float | None] = [None] * len(hits)
        self._remembered = 0

    def within(self, ms: float) -> str:
        """Ask in batches, in the fused order, until the time is over; returns what went wrong."""
        try:
            self._scores = self._scorer.known(self._query, self._texts)
            missing = [place for place, score in enumerate(self._scores) if score is None]
            self._remembered = len(self._scores) - len(missing)
            if missing:
                self._open()
            ends = time.monotonic() + deadline.within(ms / 1000)
            for start in range(0, len(missing), self._scorer.batch):
                if trouble := self._ask(missing[start : start + self._scorer.batch], ends, ms):
                    return trouble
        except Exception as error:  # whatever a scorer does, the fused order is an answer
            return self._told(str(error) or type(error).__name__)
        return ""

    def _open(self) -> None:
        opening = self._scorer.open()
        try:
            opening.result(deadline.within(OPENING))
        except OutOfTime:
            if opening.done():  # its own error
                raise
            raise OutOfTime(f"the scorer was not opened within {OPENING:g} s") from None

    def _ask(self, places: Sequence[int], ends: float, ms: float) -> str:
        late = self._told(f"{ms:g} ms were over; raise budget_ms, or lower the profile's pool")
        if time.monotonic() >= ends:
            return late
        future = self._scorer.ask(self._query, [self._texts[place] for place in places])
        try:
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
        """The scores up to the first hit that has none."""
        scored: list[float] = []
        for score in self._scores:
            if score is None:
                break
            scored.append(score)
        return scored

    @property
    def note(self) -> str:
        scored = sum(score is not None for score in self._scores)
        remembered = f", {self._remembered} of them remembered" if self._remembered else ""
        return f"{scored} of {len(self._scores)} scored{remembered}"

    def _told(self, why: str) -> str:
        scored = len(self.leading())
        kept = "the fused order stands" if scored < 2 else f"from hit {scored + 1} on the fused order stands"
        return f"{kept}: {why}"


def _read(hit: Hit) -> str:
    """What the model reads of a hit: as for its vector, the title says what a cut passage is about."""
    return f"{hit.document.title}\n{hit.passage.text}" if hit.document.title else hit.passage.text
