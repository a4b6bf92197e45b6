"""Normalisers: map the scores of one ranking to points that can be compared with those of another leg.

A document that a leg did not list has 0 points from it. The normalisers differ in what else has 0 points: the lowest
listed score (``minmax``, ``zscore``), the guaranteed minimum of the leg (``tm2c2``), three standard deviations below
the mean (``dbsf``), or the raw score 0 (``max``, ``none``).

If all scores of a list are equal, as in a list of one, no normaliser can tell whether they are all good or all bad.
Each defines what it returns then. Set a gate on the leg to drop a list that is all bad.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, hypot, sqrt

from trivet.plugins import Registry
from trivet.types import Ranking

Normalizer = Callable[[Ranking], list[float]]

NORMALIZERS: Registry[Normalizer] = Registry(
    "normalize",
    "trivet.normalizers",
    {
        "minmax": "trivet.fusion.normalize:minmax",
        "tm2c2": "trivet.fusion.normalize:tm2c2",
        "zscore": "trivet.fusion.normalize:zscore",
        "dbsf": "trivet.fusion.normalize:dbsf",
        "max": "trivet.fusion.normalize:largest",
        "none": "trivet.fusion.normalize:none",
    },
)

#: Half the width of the window that DBSF maps to [0, 1], in standard deviations.
DBSF_SIGMAS = 3.0


def minmax(ranking: Ranking) -> list[float]:
    """Return 0 for the lowest listed score, 1 for the best; 1 each if all are equal.

    The result is the same after any positive affine change of the scores.
    """
    scores = ranking.scores
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    width = high - low
    return [(score - low) / width for score in scores]


def tm2c2(ranking: Ranking) -> list[float]:
    """Return 0 for the theoretical minimum, 1 for the best score; 0 each if none is above the minimum.

    Bruch, Gai, Ingber: "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 42(1), 2023. The guaranteed
    minimum of a leg (``Ranking.floor``: 0 for BM25, -1 for cosine) does not depend on the depth of the list, as the
    lowest listed score does.
    """
    scores = ranking.scores
    width = max(scores) - ranking.floor if scores else 0.0
    if width <= 0.0:
        return [0.0] * len(scores)
    return [max(0.0, score - ranking.floor) / width for score in scores]


def zscore(ranking: Ranking) -> list[float]:
    """Return the standard deviations above the lowest listed score; 1 each if all are equal.

    The textbook form counts from the mean. Then a document in the lower half of a list has fewer points than one that
    the leg did not find at all. Counted from the lowest, a listed document never has less than an unlisted one, and
    the differences inside the list are the same.
    """
    scores = ranking.scores
    sigma = _sigma(scores, len(scores))
    if sigma == 0.0:
        return [1.0] * len(scores)
    low = min(scores)
    return [(score - low) / sigma for score in scores]


def dbsf(ranking: Ranking) -> list[float]:
    """Return 0 at the mean minus 3 sigma, 0.5 at the mean, 1 at the mean plus 3 sigma, clipped; 0.5 if all are equal.

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
    """Return the scores divided by the largest magnitude; 0 each if all are 0.

    Dividing by a negative maximum would invert the list, so the magnitude is used. A negative score stays negative
    and counts less than an unlisted document: use ``minmax`` for a leg with negative scores.
    """
    scores = ranking.scores
    top = max(map(abs, scores), default=0.0)
    if top == 0.0:
        return [0.0] * len(scores)
    return [score / top for score in scores]


def none(ranking: Ranking) -> list[float]:
    """Return the raw scores, for legs whose scores are on one scale already."""
    return list(ranking.scores)


def _sigma(scores: tuple[float, ...], degrees: int) -> float:
    """Return the standard deviation; exactly 0 if all scores are equal, where rounding of the mean would not give 0."""
    if degrees < 1 or min(scores) == max(scores):
        return 0.0
    mean = fsum(scores) / len(scores)
    return hypot(*[score - mean for score in scores]) / sqrt(degrees)
