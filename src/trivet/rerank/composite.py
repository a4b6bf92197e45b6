"""Mixes the match, the recency and the importance of a document into one score.

Relevance is the score divided by the best score. Recency halves every ``half_life`` days since the document was last
accessed (else updated, else created). Importance is the document's own.

    additive         relevance * w_relevance + recency * w_recency + importance * w_importance
    multiplicative   relevance * (w_relevance + recency * w_recency + importance * w_importance)

With the default weights the second is relevance * (0.80 + 0.20 * quality). The additive form ranks a recent, important
document high even if it does not match; the multiplicative form does not. The default weight of recency is low: in the
published runs of memini, 0.05 was neutral or better, and 0.25 ranked relevant older documents too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from trivet.errors import InputError
from trivet.rerank.recency import recency_of
from trivet.rerank.reranker import Reranker, Verdict, best_first, option
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Composite(Reranker):
    """Scores hits by a mix of match, recency and importance."""

    name: ClassVar[str] = "composite"

    relevance: float = option(0.80, "weight of the match", low=0.0, high=1.0)
    recency: float = option(0.05, "weight of the recency", low=0.0, high=1.0)
    importance: float = option(0.15, "weight of the document's importance", low=0.0, high=1.0)
    half_life: float = option(30.0, "days in which recency halves", low=0.01, high=36_500.0)
    form: str = option("additive", "how the three are combined", choices=("additive", "multiplicative"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relevance + self.recency + self.importance == 0.0:
            raise InputError("reranker 'composite': relevance, recency and importance are all 0; one must be above 0")

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        top = max((hit.score for hit in hits), default=0.0)
        now = query.at or datetime.now(UTC)
        return best_first(self, (self._mixed(hit, top, now) for hit in hits))

    def _mixed(self, hit: Hit, top: float, now: datetime) -> Verdict:
        # A score of 0 or less is no match; dividing it by a negative best score would make it one.
        relevance = max(0.0, hit.score / top) if top > 0.0 else 0.0
        document = hit.document
        recency = recency_of(document.accessed or document.updated or document.created, now, self.half_life)
        importance = min(1.0, max(0.0, document.importance))
        quality = recency * self.recency + importance * self.importance
        if self.form == "additive":
            score = relevance * self.relevance + quality
        else:
            score = relevance * (self.relevance + quality)
        parts = f"relevance {relevance:.3f}, recency {recency:.3f}, importance {importance:.2f}"
        return hit, score, f"{self.form}: {parts}"
