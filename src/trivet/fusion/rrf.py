"""Ranks only, scores ignored: which document do the legs place highest?

Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR
2009.

    score(d) = sum over legs of  weight / (rrf_k + rank(d)),  rank from 1

Useful where scores cannot be compared or calibrated. A small ``rrf_k`` lets one leg's first place win; with a large one
a document at rank r in both of two equal legs beats a first place in one alone as long as r < rrf_k + 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.normalize import Normalizer
from trivet.fusion.pool import Pool
from trivet.types import Candidate, Ranking


def rrf(
    rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: float, normalizer: Normalizer
) -> Sequence[Candidate]:
    points = [[1.0 / (rrf_k + rank) for rank in range(1, len(ranking) + 1)] for ranking in rankings]
    return Pool(rankings, weights, points)
