"""Limits the hits that share a value of a field, such as the same session, thread or file.

The best ``most`` hits of each value keep their score. The others are moved after all the rest by twice the spread of
the scores, in their order. A document without the field is not limited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.filters import values_of
from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Cap(Reranker):
    """Moves the hits of a value that has had ``most`` hits after all others."""

    name: ClassVar[str] = "cap"

    most: int = option(2, "hits of one value that keep their score", low=1, high=1_000)
    field: str = option("session", "the field that is counted: a metadata key or a built-in field")

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        seen: Counter[object] = Counter()
        down = 2.0 * spread_of(hits)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            values = values_of(hit.document, self.field)
            full = any(seen[value] >= self.most for value in values)
            seen.update(values)
            return hit, hit.score - down if full else hit.score, f"more than {self.most} of one {self.field}"

        return best_first(self, [judged(hit) for hit in hits])
