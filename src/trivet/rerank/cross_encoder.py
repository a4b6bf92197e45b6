"""Reranks with a scorer, a model that reads the query and a passage together (a cross-encoder or an LLM).

The scorer scores each passage of the pool, and its scores are mixed with the fused ones.

    score = low + width * ((1 - w) * f + w * m)

f and m are the fused score and the score of the model, each from 0 (worst of those scored) to 1 (best). low and width
are those of the fused scores: the scale stays the same for later rerankers, and hits that were not scored stay after
those that were. The weight w of the model is ``weight``; for the first ``head`` hits it is ``head_weight`` if that
ranks them higher, because a model that misreads one passage must not bury an exact hit. A hit that is better by fusion
and by model always stays ahead.

A model that is too slow or fails never fails the search: hits without a score keep the fused order, and ``degraded``
tells why. If the relevance of the first hit is far ahead (``gate``), the model is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranked, Reranker, Tools, best_first, option, renumbered
from trivet.rerank.scoring import Scores
from trivet.types import Degraded, Hit, Query

NO_SCORER = (
    "no scorer is set, so the fused order is kept; set one such as folder:PATH when the store is opened (--scorer, "
    "TRIVET_SCORER), or remove 'cross_encoder' from the rerankers"
)


@dataclass(frozen=True)
class CrossEncoder(Reranker):
    """Mixes the scores of a scorer with the fused scores."""

    name: ClassVar[str] = "cross_encoder"
    needs_scorer: ClassVar[bool] = True

    weight: float = option(0.6, "weight of the model's score", low=0.0, high=1.0)
    head: int = option(3, "number of first hits that are protected from the model", low=0, high=1000)
    head_weight: float = option(
        0.25, "weight of the model's score for protected hits, if that ranks them higher", low=0.0, high=1.0
    )
    gate: float = option(1.0, "lead in relevance from which the model is not asked; 1: always ask", low=0.0, high=1.0)
    budget_ms: float = option(1000.0, "time limit for the scorer in one search, in ms", low=1.0, high=600_000.0)

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
        scoring = Scores(tools.scorer, query.text, [_text(hit) for hit in pool])
        problem = scoring.run(self.budget_ms)
        degraded = (Degraded(self.name, problem),) if problem else ()
        scores = scoring.leading()
        if len(scores) < 2 or min(scores) == max(scores):
            return Reranked(pool, degraded, scoring.note)
        return Reranked(self._mixed(pool, scores), degraded, scoring.note)

    def _mixed(self, pool: list[Hit], scores: list[float]) -> list[Hit]:
        """Order the first ``len(scores)`` hits by their mixed scores; keep the others as they are, after them."""
        first, rest = pool[: len(scores)], pool[len(scores) :]
        mixed = blend([hit.score for hit in first], scores, self.weight, self.head, self.head_weight)
        verdicts = [
            (hit, score, f"model score {given:.4g}") for hit, score, given in zip(first, mixed, scores, strict=True)
        ]
        return renumbered([*best_first(self, verdicts), *rest])


def blend(
    fused: Sequence[float], scored: Sequence[float], weight: float, head: int = 0, head_weight: float = 1.0
) -> list[float]:
    """Return the fused scores, given best first, mixed with those of the model, on the scale of ``fused``."""
    low, width = min(fused), max(fused) - min(fused) or 1.0
    least, spread = min(scored), max(scored) - min(scored) or 1.0
    mixed = []
    for place, (score, given) in enumerate(zip(fused, scored, strict=True)):
        f, m = (score - low) / width, (given - least) / spread
        value = f + weight * (m - f)
        if place < head:
            value = max(value, f + head_weight * (m - f))
        mixed.append(low + width * value)
    return mixed


def lead(hits: Sequence[Hit]) -> float:
    """Return the relevance of the first hit minus the best of the others; below 0 if another is more relevant."""
    return hits[0].relevance - max(hit.relevance for hit in hits[1:])


def _text(hit: Hit) -> str:
    """Return what the model reads of a hit: the passage under the title, as for its vector."""
    return f"{hit.document.title}\n{hit.passage.text}" if hit.document.title else hit.passage.text
