"""Inverse square rank: only ranks count, the first ones far more than the others, and agreement is rewarded.

Mourão, Martins, Magalhães: "Multimodal medical information retrieval with unsupervised rank fusion", Computerized
Medical Imaging and Graphics 39, 2015.

    score(d) = (number of legs that found d) * sum over legs of  weight / rank(d)^2,  rank from 1

The share of each leg contains the factor, so the shares sum to the score.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.pool import FusedPool
from trivet.types import Candidate, Ranking


def isr(rankings: Sequence[Ranking], weights: Sequence[float]) -> Sequence[Candidate]:
    points = [[1.0 / (rank * rank) for rank in range(1, len(ranking) + 1)] for ranking in rankings]
    return FusedPool(rankings, weights, points, agreement=True)
