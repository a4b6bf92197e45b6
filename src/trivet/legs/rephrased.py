"""A leg that is asked the same query in several wordings.

A document's score is the mean of its strengths over the wordings, 0 where a wording does not find it. So a document
that every wording finds comes first. Strengths are on an absolute scale, which makes the rankings comparable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trivet.legs.leg import Leg, LegQuery
from trivet.types import Key, Ranking

if TYPE_CHECKING:
    from trivet.stores.contract import State


@dataclass(frozen=True, slots=True)
class Rephrased:
    """One leg over several wordings of a query."""

    leg: Leg
    others: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.leg.name

    @property
    def seeded(self) -> bool:
        return self.leg.seeded

    @property
    def incomplete(self) -> str:
        return self.leg.incomplete

    def is_current(self, state: State) -> bool:
        return self.leg.is_current(state)

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        asked = (query, *(replace(query, text=text, vector=None, exact=()) for text in self.others))
        rankings = [self.leg.rank(each, depth) for each in asked]
        strengths: dict[Key, float] = {}
        shown: dict[Key, tuple[float, int]] = {}  # the passage of the wording that finds it best
        for ranking in rankings:
            for key, score, passage in zip(ranking.keys, ranking.scores, ranking.passages, strict=True):
                strength = ranking.strength(score)
                strengths[key] = strengths.get(key, 0.0) + strength / len(rankings)
                shown[key] = max(shown.get(key, (-1.0, passage)), (strength, passage))
        keys = sorted(strengths, key=lambda key: (-strengths[key], str(key)))[:depth]
        paths: dict[Key, tuple[Key, ...]] = {}
        for ranking in reversed(rankings):  # of the first wording that has one
            paths.update(zip(ranking.keys, ranking.paths, strict=False))
        return Ranking(
            self.name,
            tuple(keys),
            tuple(strengths[key] for key in keys),
            tuple(shown[key][1] for key in keys),
            notes=(*rankings[0].notes, f"{len(rankings)} wordings"),
            suits_query=rankings[0].suits_query,
            seeded=self.seeded,
            paths=tuple(paths.get(key, ()) for key in keys) if paths else (),
        )
