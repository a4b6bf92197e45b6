"""CombSUM and CombMNZ: the sum of the normalised scores, and that sum times the number of legs that found the document.

Fox, Shaw: "Combination of Multiple Searches", TREC-2, NIST Special Publication 500-215, 1994.

    CombSUM(d) = sum over legs of  weight * normalised(d)
    CombMNZ(d) = (number of legs that found d) * CombSUM(d)

A document is found by a leg that lists it, also with score 0: the last of a min-max list has 0. The share of each leg
in CombMNZ contains the factor, so the shares sum to the score.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.normalize import Normalizer
from trivet.fusion.pool import FusedPool
from trivet.types import Candidate, Ranking


def comb_sum(rankings: Sequence[Ranking], weights: Sequence[float], *, normalize: Normalizer) -> Sequence[Candidate]:
    return FusedPool(rankings, weights, [normalize(ranking) for ranking in rankings])


def comb_mnz(rankings: Sequence[Ranking], weights: Sequence[float], *, normalize: Normalizer) -> Sequence[Candidate]:
    return FusedPool(rankings, weights, [normalize(ranking) for ranking in rankings], agreement=True)
