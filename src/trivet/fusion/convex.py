"""Scores, put on one scale: what is the weighted mean of what the legs say?

Bruch, Gai, Ingber: "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 42(1), 2023.

    score(d) = sum over legs of  weight / (sum of weights) * normalised(d)

The weights are divided by their sum over the legs that answered (an empty list is an answer). So with ``minmax``,
``tm2c2`` or ``dbsf`` the score stays in [0, 1] whatever the weights and however many legs there are. A contribution
shows the divided weight. Not divided, it is CombSUM: the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.normalize import Normalizer
from trivet.fusion.pool import Pool
from trivet.types import Candidate, Ranking


def convex(
    rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: float, normalizer: Normalizer
) -> Sequence[Candidate]:
    total = sum(weights)  # above 0: legs of weight 0 do not come this far
    return Pool(rankings, [weight / total for weight in weights], [normalizer(ranking) for ranking in rankings])
