"""How likely is it that this document answers the question?

A score orders one list and means nothing beside another list's; a threshold needs a number that means the same for
every question and every way of fusing. So it is made from what the legs say, not from the fused score: how strong the
match is on each leg's absolute scale, how far it stands above the tenth of the leg's list, and how far it leads all
others. A logistic model over the three, fitted to judged questions by ``benchmarks/calibration.py``, makes a
probability of them: of hits at 0.8, about eight in ten were judged right on questions it was not fitted to. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from trivet.types import Key, Ranking

TENTH = 9  # the tenth hit: where a list has stopped being about the answer
SEEDED = ("graph",)  # legs that go on from what the others found
LEAST = 0.3  # of strength between the best and the tenth: in a list that is all alike, nobody stands high


@dataclass(frozen=True, slots=True)
class Standing:
    """What the legs say of one document, each 0 to 1 (``lead`` from -1): weighted means over the legs that answered."""

    strength: float = 0.0
    height: float = 0.0  # above the tenth of the list; 1 is the best of every leg
    lead: float = 0.0  # over the best other document; below 0 where another is higher
    way: float = 0.0  # how strong is the way that leads to it from what others found?


#: What one of each adds to the log-odds.
INTERCEPT, STRENGTH, HEIGHT, LEAD, WAY = -2.06, 0.43, 2.59, 1.95, 4.36


def standings(rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Callable[[Key], Standing]:
    """``weights`` are this question's. Legs without a weight have no say; one that goes on from what others found can
    speak for a document, and its silence says nothing against one."""
    weighty = [ranking for ranking in rankings if len(ranking) and weights.get(ranking.leg, 0.0) > 0]
    seeded = [(ranking, ranking.places()) for ranking in weighty if ranking.leg in SEEDED]
    heard = [ranking for ranking in weighty if ranking.leg not in SEEDED]
    total = sum(weights[ranking.leg] for ranking in heard) or 1.0
    shares = [(ranking, ranking.places(), weights[ranking.leg] / total) for ranking in heard]
    heights: dict[Key, float] = {}
    for ranking, _, share in shares:
        values = [ranking.strength(score) for score in ranking.scores[: TENTH + 1]]
        tenth = values[TENTH] if len(values) > TENTH else 0.0
        width = max(LEAST, values[0] - tenth)
        for key, value in zip(ranking.keys[:TENTH], values, strict=False):  # nobody below stands above the tenth
            heights[key] = heights.get(key, 0.0) + share * (value - tenth) / width
    first, second = [*sorted(heights.values(), reverse=True), 0.0, 0.0][:2]

    def of(key: Key) -> Standing:
        match = way = 0.0
        for ranking, places, share in shares:
            if (at := places.get(key)) is not None:
                match += share * ranking.strength(ranking.scores[at])
        for ranking, places in seeded:
            if (at := places.get(key)) is not None:
                way = max(way, ranking.strength(ranking.scores[at]))
        height = heights.get(key, 0.0)
        ahead = height - (second if height >= first else first)
        return Standing(match, height, ahead, way)

    return of


def probability(standing: Standing) -> float:
    """A document that no leg has a word for is no answer."""
    if standing.strength <= 0.0 and standing.way <= 0.0:
        return 0.0
    own = STRENGTH * standing.strength + HEIGHT * standing.height + LEAD * standing.lead
    return 1.0 / (1.0 + exp(-(INTERCEPT + own + WAY * standing.way)))
