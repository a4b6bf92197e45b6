"""Promotes short passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank import Reranker, best_first, option
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Shortest(Reranker):
    """Promotes short passages."""

    name: ClassVar[str] = "shortest"

    weight: float = option(1.0, "largest promotion, added to the score", low=0.0, high=100.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        longest = max((len(hit.text) for hit in hits), default=0) or 1
        return best_first(
            self,
            [
                (hit, hit.score + self.weight * (1 - len(hit.text) / longest), f"{len(hit.text)} characters")
                for hit in hits
            ],
        )
