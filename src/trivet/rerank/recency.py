"""Promotes newer documents slightly, to break ties.

A new document gains a part of the spread of the scores; the gain halves every ``half_life`` days of age. The default
weight is low: in the published runs of memini, 0.05 was neutral or better, and 0.25 ranked relevant older documents too
low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.text.document_dates import aware, time_of
from trivet.types import Hit, Query

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Recency(Reranker):
    """Promotes newer documents slightly."""

    name: ClassVar[str] = "recency"

    weight: float = option(0.05, "largest promotion, as a part of the spread of the scores", low=0.0, high=1.0)
    half_life: float = option(30.0, "days in which recency halves", low=0.01, high=36_500.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        now, spread = query.at or datetime.now(UTC), spread_of(hits)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            recency = recency_of(time_of(hit.document), now, self.half_life)
            return hit, hit.score + self.weight * spread * recency, f"recency {recency:.2f}"

        return best_first(self, map(judged, hits))


def recency_of(moment: datetime | None, now: datetime, half_life: float) -> float:
    """Return 1 for now or later, halved for every ``half_life`` days before; 0 without a time."""
    if moment is None:
        return 0.0
    return float(0.5 ** (max(0.0, (aware(now) - aware(moment)) / _DAY) / half_life))
