"""Two hits match about equally: which one is newer?

A light tie-breaker: the newest goes up by a part of the spread of the scores, and freshness halves every ``half_life``
days before the moment of the question. Light on purpose: 0.05 was neutral or better in published runs (memini), 0.25
buried right answers that were older.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from trivet.moments import time_of
from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.types import Hit, Query

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Recency(Reranker):
    name: ClassVar[str] = "recency"

    weight: float = option(0.05, "how far the newest goes up, of the spread of the scores", low=0.0, high=1.0)
    half_life: float = option(30.0, "days in which freshness halves", low=0.01, high=36_500.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        now = query.at or datetime.now(UTC)
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
        spread = spread_of(hits)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            moment = time_of(hit.document)
            days = max(0.0, (now - moment) / _DAY) if moment else float("inf")
            fresh = 0.5 ** (days / self.half_life)
            return hit, hit.score + self.weight * spread * fresh, f"freshness {fresh:.2f}"

        return best_first(self, map(judged, hits))
