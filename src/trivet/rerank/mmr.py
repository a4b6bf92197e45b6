"""Which hits say something that the ones before them have not said?

Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): the next hit is the one with the best

    weight * match - (1 - weight) * likeness to the likest hit already taken

The match is the score between the worst and the best of the pool, the likeness of two texts the cosine of their words,
each counted once; the value above, on the scale of the scores, is the new score. Off by default: where several
documents together are the answer, being like a right hit is no fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.folding import fold
from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Mmr(Reranker):
    name: ClassVar[str] = "mmr"

    weight: float = option(0.8, "weight of the match against novelty; 1 changes nothing", low=0.0, high=1.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        if self.weight == 1.0 or not hits:
            return list(hits)
        terms = query.terms or (lambda text: fold(text).split())
        words = [set(terms(hit.passage.text)) for hit in hits]
        spread, low = spread_of(hits), min(hit.score for hit in hits)
        match = [(hit.score - low) / spread for hit in hits]
        likest = [0.0] * len(hits)

        def value(at: int) -> float:
            return self.weight * match[at] - (1.0 - self.weight) * likest[at]

        left, taken = list(range(len(hits))), []
        while left:
            best = max(left, key=lambda at: (value(at), -at))
            left.remove(best)
            taken.append((hits[best], low + spread * value(best), f"likeness to a hit before it {likest[best]:.2f}"))
            for at in left:
                likest[at] = max(likest[at], _cosine(words[best], words[at]))
        return best_first(self, taken)


def _cosine(one: set[str], other: set[str]) -> float:
    return len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0
