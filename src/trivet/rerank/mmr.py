"""Diversifies the hits by maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

The next hit is always the one with the largest

    weight * match - (1 - weight) * similarity to the most similar hit already taken

The match is the score on a scale from the worst of the pool (0) to the best (1). The similarity of two texts is the
cosine of their sets of words. The value above, brought back to the scale of the scores, is the new score. No profile
that ships uses it: where several documents together answer a query, they are often similar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.text.tokens import comparable
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Mmr(Reranker):
    """Demotes hits that are similar to a hit above them."""

    name: ClassVar[str] = "mmr"

    weight: float = option(0.8, "weight of the match against novelty; 1 changes nothing", low=0.0, high=1.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        if self.weight == 1.0 or not hits:
            return list(hits)
        terms = query.terms or (lambda text: comparable(text).split())
        words = [set(terms(hit.passage.text)) for hit in hits]
        spread, low = spread_of(hits), min(hit.score for hit in hits)
        match = [(hit.score - low) / spread for hit in hits]
        nearest = [0.0] * len(hits)  # similarity to the most similar hit already taken

        def value(at: int) -> float:
            return self.weight * match[at] - (1.0 - self.weight) * nearest[at]

        left, taken = list(range(len(hits))), []
        while left:
            best = max(left, key=lambda at: (value(at), -at))
            left.remove(best)
            taken.append((hits[best], low + spread * value(best), f"similarity to a hit above it {nearest[best]:.2f}"))
            for at in left:
                nearest[at] = max(nearest[at], _cosine(words[best], words[at]))
        return best_first(self, taken)


def _cosine(one: set[str], other: set[str]) -> float:
    return len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0
