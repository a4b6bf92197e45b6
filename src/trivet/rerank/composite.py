"""Which hit is the best mix of match, freshness and importance?

Relevance is the score over the best score of the set; recency halves every ``half_life`` days since the document was
last accessed (else updated, else created); importance is the document's own.

    additive         relevance * w_relevance + recency * w_recency + importance * w_importance
    multiplicative   relevance * (w_relevance + recency * w_recency + importance * w_importance)

With the default weights the second is relevance * (0.80 + 0.20 * quality). The additive form lets a fresh, important
document in on no match at all; multiplied, nothing is worth more than its match. Recency stays light on purpose: 0.05
was neutral or better in published runs (memini), 0.25 buried right answers that were older.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from trivet.errors import InputError
from trivet.rerank.reranker import Reranker, Verdict, best_first, option
from trivet.types import Document, Hit, Query

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Composite(Reranker):
    name: ClassVar[str] = "composite"

    relevance: float = option(0.80, "weight of the match", low=0.0, high=1.0)
    recency: float = option(0.05, "weight of the freshness", low=0.0, high=1.0)
    importance: float = option(0.15, "weight of the document's importance", low=0.0, high=1.0)
    half_life: float = option(30.0, "days in which freshness halves", low=0.01, high=36_500.0)
    form: str = option("additive", "how the three are put together", choices=("additive", "multiplicative"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relevance + self.recency + self.importance == 0.0:
            raise InputError("reranker 'composite': relevance, recency and importance are all 0; one must be above 0")

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        top = max((hit.score for hit in hits), default=0.0)
        now = _aware(query.at) if query.at else datetime.now(UTC)
        return best_first(self, (self._mixed(hit, top, now) for hit in hits))

    def _mixed(self, hit: Hit, top: float, now: datetime) -> Verdict:
        # A score at or below zero is no evidence of a match; it must not become some by dividing by a negative best.
        relevance = max(0.0, hit.score / top) if top > 0.0 else 0.0
        recency = self._recency(hit.document, now)
        importance = min(1.0, max(0.0, hit.document.importance))
        quality = recency * self.recency + importance * self.importance
        if self.form == "additive":
            score = relevance * self.relevance + quality
        else:
            score = relevance * (self.relevance + quality)
        parts = f"relevance {relevance:.3f}, recency {recency:.3f}, importance {importance:.2f}"
        return hit, score, f"{self.form}: {parts}"

    def _recency(self, document: Document, now: datetime) -> float:
        seen = document.accessed or document.updated or document.created
        if seen is None:
            return 0.0
        days = max(0.0, (now - _aware(seen)) / _DAY)
        return float(0.5 ** (days / self.half_life))


def _aware(moment: datetime) -> datetime:
    """A time without a zone is taken for UTC, or it could not be compared at all."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
