"""Convex combination: the weighted mean of the normalised scores.

Bruch, Gai, Ingber: "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 42(1), 2023.

    score(d) = sum over legs of  weight / (sum of weights) * normalised(d)

The sum of weights is over the legs that returned a ranking, even an empty one. So with ``minmax``, ``tm2c2`` or
``dbsf`` the score stays in [0, 1] for any weights and any number of legs. A contribution shows the divided weight.
Without the division it is CombSUM, which gives the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fusion.normalize import Normalizer
from trivet.fusion.pool import FusedPool
from trivet.types import Candidate, Ranking


def convex(rankings: Sequence[Ranking], weights: Sequence[float], *, normalize: Normalizer) -> Sequence[Candidate]:
    total = sum(weights)  # above 0: a leg of weight 0 does not get here
    return FusedPool(rankings, [weight / total for weight in weights], [normalize(ranking) for ranking in rankings])
