"""Lowers the score of less important documents, as a prior.

    score * (floor + (1 - floor) * importance)

It takes at most ``1 - floor`` of a score, so a hit can be overtaken only by one whose score was at least ``floor``
times its own. In a list fused by RRF from one leg, where the hit at rank r has 1 / (k + r), a hit is overtaken at most
by rank ⌊(k + r) / floor - k⌋: with floor 0.7 rank 27 can pass rank 1 at k = 60, and only rank 3 at k = 4. After a steep
fusion the prior only breaks ties; after a flat one it decides the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, Verdict, best_first, option, scaled
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Importance(Reranker):
    """Lowers the score of less important documents."""

    name: ClassVar[str] = "importance"

    floor: float = option(0.7, "the part of the score that a document of importance 0 keeps", low=0.0, high=1.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return best_first(self, map(self._weighed, hits))

    def _weighed(self, hit: Hit) -> Verdict:
        importance = min(1.0, max(0.0, hit.document.importance))
        factor = self.floor + (1.0 - self.floor) * importance
        return hit, scaled(hit.score, factor), f"importance {importance:.2f}: × {factor:.3f}"
