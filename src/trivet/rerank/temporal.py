"""Promotes documents from the period of time that the query names.

A hit inside the period gains a part of the spread of the scores; outside, the gain falls with the distance. It falls
more slowly after the period than before it, because people often write about an event soon after it.
``text/document_dates.py`` defines the time of a document.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.text.document_dates import time_of
from trivet.types import Hit, Query

_DAY = timedelta(days=1)
NAMED_DAY = 2.0  # factor of the weight for an exact date, which is meant more strictly than "last month"
BEFORE, AFTER = 0.25, 0.5  # scale of the fall, as parts of the length of the period; at least one day and three days


@dataclass(frozen=True)
class Temporal(Reranker):
    """Promotes documents from the period of time that the query names."""

    name: ClassVar[str] = "temporal"
    sees: ClassVar[int] = 100
    requires: ClassVar[str] = "window"

    weight: float = option(0.5, "largest promotion, as a part of the spread of the scores", low=0.0, high=2.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        if query.understood is None or query.understood.window is None:
            return list(hits)
        window = query.understood.window
        begin, end = window.begin, window.end
        bonus = self.weight * spread_of(hits) * (NAMED_DAY if window.named else 1.0)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            moment = time_of(hit.document)
            fit = 0.0 if moment is None else _fit(moment, begin, end)
            date = f"{moment:%Y-%m-%d}" if moment else "no date"
            return hit, hit.score + bonus * fit, f"{date} fits {fit:.2f}"

        return best_first(self, map(judged, hits))


def _fit(moment: datetime, begin: datetime, end: datetime) -> float:
    """Return 1 inside the period, less the further outside."""
    width = end - begin
    if moment < begin:
        return math.exp(-((begin - moment) / max(_DAY, width * BEFORE)))
    if moment >= end:
        return math.exp(-((moment - end) / max(3 * _DAY, width * AFTER)))
    return 1.0
