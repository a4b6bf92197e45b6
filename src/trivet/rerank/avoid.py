"""Does the hit hold what the question said it does not want?

"X but not Y": the words of Y are not looked for, and a hit that holds them goes down by a part of the spread of the
scores, the more of them the further. It is not dropped: a text may name Y only to tell it from X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, best_first, option, spread_of
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Avoid(Reranker):
    name: ClassVar[str] = "avoid"

    weight: float = option(0.3, "how far what is not wanted goes down, of the spread of the scores", low=0.0, high=2.0)

    def concerns(self, query: Query) -> bool:
        return query.understood is not None and bool(query.understood.avoided) and query.terms is not None

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        if not self.concerns(query):
            return list(hits)
        assert query.understood is not None and query.terms is not None
        unwanted = [set(query.terms(part)) for part in query.understood.avoided]
        looked_for = set(query.terms(query.understood.text))
        unwanted = [part for part in (part - looked_for for part in unwanted) if part]
        spread = spread_of(hits)

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            assert query.terms is not None
            held = set(query.terms(f"{hit.document.title}\n{hit.passage.text}"))
            share = max((len(part & held) / len(part) for part in unwanted), default=0.0)
            return hit, hit.score - self.weight * spread * share, f"holds {share:.0%} of what is not wanted"

        return best_first(self, map(judged, hits))
