"""Reciprocal rank fusion: the ranks count, the scores are ignored.

Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR
2009.

    score(d) = sum over legs of  weight / (rrf_k + rank(d)),  rank from 1

Use it where scores cannot be compared or calibrated. With a small ``rrf_k`` the first place of one leg wins. With a
large one, a document at rank r of two equal legs beats the first place of one leg as long as r < rrf_k + 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.pool import FusedPool
from trivet.types import Candidate, Ranking


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], *, rrf_k: float) -> Sequence[Candidate]:
    points = [[1.0 / (rrf_k + rank) for rank in range(1, len(ranking) + 1)] for ranking in rankings]
    return FusedPool(rankings, weights, points)
