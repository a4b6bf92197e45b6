"""Scores on incomparable scales: how much is each worth next to another leg's?

A normaliser maps one ranking's scores onto points. A document that a leg did not list has 0 points from it, so the
question to ask of each is what stands at 0: the lowest listed (``minmax``, ``zscore``), the scorer's own guaranteed
minimum (``tm2c2``), three deviations below the mean (``dbsf``), the raw zero (``max``, ``none``).

A list whose scores are all equal, a single hit included, does not tell its documents apart. Each normaliser has a
defined answer for it, given in its first line, but no list by itself can say whether it is equally good or equally bad:
an absolute gate on the leg has to come before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, hypot, sqrt

from trivet.types import Ranking

Normalizer = Callable[[Ranking], list[float]]

#: Half of the window that DBSF takes for the whole distribution, in standard deviations.
DBSF_SIGMAS = 3.0


def minmax(ranking: Ranking) -> list[float]:
    """Lowest listed 0, best 1; all equal: 1 each. Unmoved by any positive affine change of the scores."""
    scores = ranking.scores
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    width = high - low
    return [(score - low) / width for score in scores]


def tm2c2(ranking: Ranking) -> list[float]:
    """Theoretical minimum 0, best 1; nothing above the minimum: 0 each.

    Bruch, Gai, Ingber: "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 42(1), 2023. The scorer's
    guaranteed minimum (``Ranking.floor``: 0 for BM25, -1 for cosine) does not move with the depth at which the list was
    cut, as the lowest listed does.
    """
    scores = ranking.scores
    width = max(scores) - ranking.floor if scores else 0.0
    if width <= 0.0:
        return [0.0] * len(scores)
    return [max(0.0, score - ranking.floor) / width for score in scores]


def zscore(ranking: Ranking) -> list[float]:
    """Standard deviations above the lowest listed; all equal: 1 each.

    The textbook form counts from the mean. There a document in the lower half of a list has negative points while one
    that the leg did not find at all has 0: being found would cost. Counted from the lowest listed, absent is never
    better than present, and differences inside the list are the same.
    """
    scores = ranking.scores
    sigma = _sigma(scores, len(scores))
    if sigma == 0.0:
        return [1.0] * len(scores)
    low = min(scores)
    return [(score - low) / sigma for score in scores]


def dbsf(ranking: Ranking) -> list[float]:
    """Mean minus 3 sigma 0, the mean 0.5, mean plus 3 sigma 1, clipped; all equal: 0.5 each, for each is the mean.

    Mazzeschi: "Distribution-Based Score Fusion (DBSF)", 2023. Sample deviation (n - 1) and the 0.5 as in Qdrant.
    """
    scores = ranking.scores
    sigma = _sigma(scores, len(scores) - 1)
    if sigma == 0.0:
        return [0.5] * len(scores)
    mean, window = fsum(scores) / len(scores), 2.0 * DBSF_SIGMAS * sigma
    points = [0.5 + (score - mean) / window for score in scores]
    return [0.0 if point < 0.0 else 1.0 if point > 1.0 else point for point in points]


def largest(ranking: Ranking) -> list[float]:
    """Raw zero 0, the largest magnitude 1; all zero: 0 each.

    By magnitude, because dividing by a negative maximum would turn the list upside down. Negative scores stay negative
    and then weigh less than absence does: ``minmax`` is the one for such a leg.
    """
    scores = ranking.scores
    top = max(map(abs, scores), default=0.0)
    if top == 0.0:
        return [0.0] * len(scores)
    return [score / top for score in scores]


def none(ranking: Ranking) -> list[float]:
    """The raw scores: for legs that already speak one scale."""
    return list(ranking.scores)


NORMALIZERS: dict[str, Normalizer] = {
    "minmax": minmax,
    "tm2c2": tm2c2,
    "zscore": zscore,
    "dbsf": dbsf,
    "max": largest,
    "none": none,
}


def _sigma(scores: tuple[float, ...], degrees: int) -> float:
    """Standard deviation; exactly 0 where all are equal, which the rounding of the mean alone would miss."""
    if degrees < 1 or min(scores) == max(scores):
        return 0.0
    mean = fsum(scores) / len(scores)
    return hypot(*[score - mean for score in scores]) / sqrt(degrees)
