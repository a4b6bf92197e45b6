"""Two hits match about equally: which one did its author call important?

    score * (floor + (1 - floor) * importance)

A prior, not evidence: it takes at most ``1 - floor`` of a score. So a hit can be overtaken only by one whose own score
was at least ``floor`` times its own, whatever the importances. On a list fused by RRF from one leg, where the hit at
rank r has 1 / (k + r), nothing from below rank ⌊(k + r) / floor - k⌋ passes it: rank 27 passes rank 1 at k = 60
and floor 0.7, but only rank 3 at k = 4. A steep fusion keeps the prior a tie-breaker; a flat one hands it the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, Verdict, best_first, option, scaled
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Importance(Reranker):
    name: ClassVar[str] = "importance"

    floor: float = option(0.7, "what is left of the score of a document of importance 0", low=0.0, high=1.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return best_first(self, map(self._weighed, hits))

    def _weighed(self, hit: Hit) -> Verdict:
        importance = min(1.0, max(0.0, hit.document.importance))
        factor = self.floor + (1.0 - self.floor) * importance
        return hit, scaled(hit.score, factor), f"importance {importance:.2f}: × {factor:.3f}"
