"""Demotes hits that contain what the query excludes.

In "X but not Y" the words of Y are not searched for, and a hit is demoted by the share of them that it contains. It is
not dropped: a text may name Y only to distinguish it from X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranked, Reranker, Tools, best_first, option, spread_of
from trivet.types import Hit, Query


@dataclass(frozen=True)
class Avoid(Reranker):
    """Demotes hits that contain what the query excludes."""

    name: ClassVar[str] = "avoid"
    requires: ClassVar[str] = "avoided"

    weight: float = option(0.3, "largest demotion, as a part of the spread of the scores", low=0.0, high=2.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return self.apply(hits, query, Tools()).hits

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        if query.understood is None or query.terms is None or not query.understood.avoided:
            return Reranked(list(hits))
        terms = query.terms
        searched = set(terms(query.understood.text))
        excluded = [part for part in (set(terms(part)) - searched for part in query.understood.avoided) if part]
        sought = set().union(*excluded)
        # the index knows the positions of terms; to analyse sixty passages again takes 50 ms
        found = tools.places([hit.id for hit in hits], sought) if tools.places is not None and sought else {}
        spread = spread_of(hits)

        def contained(hit: Hit) -> set[str]:
            if hit.id not in found:
                return set(terms(f"{hit.document.title}\n{hit.passage.text}"))
            title, places = found[hit.id]
            return {*title, *places}

        def judged(hit: Hit) -> tuple[Hit, float, str]:
            own = contained(hit)
            share = max((len(part & own) / len(part) for part in excluded), default=0.0)
            return hit, hit.score - self.weight * spread * share, f"contains {share:.0%} of what the query excludes"

        return Reranked(best_first(self, map(judged, hits)))
