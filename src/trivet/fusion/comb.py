"""Scores, added up: how much do the legs say in all, and do they agree?

Fox, Shaw: "Combination of Multiple Searches", TREC-2, NIST Special Publication 500-215, 1994.

    CombSUM(d) = sum over legs of  weight * normalised(d)
    CombMNZ(d) = (number of legs that found d) * CombSUM(d)

"Found" is being listed, not having a score above 0: the lowest of a min-max list has 0 and was found all the same. Each
leg's share in CombMNZ carries the factor, so that the shares still sum to the score.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.normalize import Normalizer
from trivet.fusion.pool import Pool
from trivet.types import Candidate, Ranking


def comb_sum(
    rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: float, normalizer: Normalizer
) -> Sequence[Candidate]:
    return Pool(rankings, weights, [normalizer(ranking) for ranking in rankings])


def comb_mnz(
    rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: float, normalizer: Normalizer
) -> Sequence[Candidate]:
    return Pool(rankings, weights, [normalizer(ranking) for ranking in rankings], agreement=True)
