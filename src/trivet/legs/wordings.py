"""The same question in other words: what does a leg say to all of them?

Each wording is asked, and a document's strength is the mean over the wordings, 0 where one does not find it. So what
every wording finds comes first, and one odd wording alone decides nothing. Strengths are absolute, which is what makes
lists of different questions comparable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trivet.legs.question import Leg, Question
from trivet.types import Key, Ranking


@dataclass(frozen=True, slots=True)
class Wordings:
    leg: Leg
    others: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.leg.name

    def rank(self, question: Question, depth: int) -> Ranking:
        asked = (question, *(replace(question, text=text, vector=None, exact=()) for text in self.others))
        rankings = [self.leg.rank(each, depth) for each in asked]
        strengths: dict[Key, float] = {}
        shown: dict[Key, tuple[float, int]] = {}  # the passage of the wording that finds it best
        for ranking in rankings:
            for key, score, passage in zip(ranking.keys, ranking.scores, ranking.passages, strict=True):
                strength = ranking.strength(score)
                strengths[key] = strengths.get(key, 0.0) + strength / len(rankings)
                shown[key] = max(shown.get(key, (-1.0, passage)), (strength, passage))
        keys = sorted(strengths, key=lambda key: (-strengths[key], str(key)))[:depth]
        return Ranking(
            self.name,
            tuple(keys),
            tuple(strengths[key] for key in keys),
            tuple(shown[key][1] for key in keys),
            notes=(*rankings[0].notes, f"{len(rankings)} wordings"),
            at_home=rankings[0].at_home,
        )
