"""Is the hit of the time the question speaks of?

Within the window a hit goes up by a part of the spread of the scores; outside, by less the further away it is. What is
told of a time is mostly told in it or soon after, so the edge behind the window is the softer one. ``moments.py`` says
what a hit's time is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from trivet.moments import time_of
from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.types import Hit, Query

_DAY = timedelta(days=1)
NAMED_DAY = 2.0  # times the weight: who gives a date means it
BEFORE, AFTER = 0.25, 0.5  # edges, as parts of the window's width; a day and three days at least


@dataclass(frozen=True)
class Temporal(Reranker):
    name: ClassVar[str] = "temporal"
    sees: ClassVar[int] = 100

    weight: float = option(0.5, "how far a hit of that time goes up, of the spread of the scores", low=0.0, high=2.0)

    def concerns(self, query: Query) -> bool:
        return query.understood is not None and query.understood.window is not None

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        if query.understood is None or query.understood.window is None:
            return list(hits)
        window = query.understood.window
        begin, end = window.begin, window.end
        bonus = self.weight * spread_of(hits) * (NAMED_DAY if window.named else 1.0)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            moment = time_of(hit.document)
            fit = 0.0 if moment is None else _fit(moment, begin, end)
            told = f"{moment:%Y-%m-%d}" if moment else "no time"
            return hit, hit.score + bonus * fit, f"{told} fits {fit:.2f}"

        return best_first(self, map(judged, hits))


def _fit(moment: datetime, begin: datetime, end: datetime) -> float:
    """1 in the window, falling off outside."""
    width = end - begin
    if moment < begin:
        return math.exp(-((begin - moment) / max(_DAY, width * BEFORE)))
    if moment >= end:
        return math.exp(-((moment - end) / max(3 * _DAY, width * AFTER)))
    return 1.0
