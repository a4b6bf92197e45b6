"""Fusion: several rankings become one list of candidates, each with the share of every leg.

Everything here is pure: keys and scores in, candidates out. To judge one list again by its documents, use a reranker.

What is fused is checked: whatever passes cannot become NaN later, and whatever fails raises an error that names it,
because a fused list that is inverted or full of NaN looks like a good one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from math import isfinite
from operator import ge
from typing import Any

from trivet.errors import InputError
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.pool import FusedPool
from trivet.plugins import Registry
from trivet.types import Candidate, Ranking

__all__ = ["FUSIONS", "NORMALIZERS", "FusedPool", "alpha_weights", "check", "fuse", "settings_of"]

Pool = FusedPool  # its name in 0.2.0, for fusions of other packages

#: ``(rankings, weights) -> candidates``: the rankings are checked and the weights, one for each, are above 0. A fusion
#: that reads a setting of the profile takes it as a keyword-only argument: ``rrf_k``, or ``normalize``, a function.
Fusion = Callable[..., Sequence[Candidate]]

FUSIONS: Registry[Fusion] = Registry(
    "fusion",
    "trivet.fusions",
    {
        "rrf": "trivet.fusion.rrf:rrf",
        "convex": "trivet.fusion.convex:convex",
        "comb_sum": "trivet.fusion.comb:comb_sum",
        "comb_mnz": "trivet.fusion.comb:comb_mnz",
        "isr": "trivet.fusion.isr:isr",
    },
)

#: A larger number is an overflow in the code that made it, and sums of squares would overflow here.
LARGEST = 1e100


def fuse(
    method: str,
    rankings: Sequence[Ranking],
    weights: Mapping[str, float],
    *,
    rrf_k: float = 60.0,
    normalize: str = "minmax",
) -> Sequence[Candidate]:
    """Return the union of ``rankings``, best first, by the named ``method``.

    A leg that ``weights`` does not name has weight 1. A leg of weight 0 is left out, and so is a document that only
    this leg found. Equal scores stay in the order of the rankings as given, then of the ranks.
    """
    check_rrf_k(rrf_k)
    fusion = _with_settings(method, rrf_k, normalize)
    for leg, weight in weights.items():
        check_weight(leg, weight)
    legs: set[str] = set()
    for ranking in rankings:
        check(ranking)
        if ranking.leg in legs:
            raise InputError(f"leg {ranking.leg!r} has two rankings; give each leg one ranking")
        legs.add(ranking.leg)
    weighted = [ranking for ranking in rankings if weights.get(ranking.leg, 1.0) > 0.0]
    if not weighted:
        return []
    given = [weights.get(ranking.leg, 1.0) for ranking in weighted]
    return fusion(weighted, given)


@lru_cache
def _with_settings(method: str, rrf_k: float, normalize: str) -> Fusion:
    """Return the fusion with those settings that it reads."""
    settings: dict[str, Any] = {"rrf_k": rrf_k, "normalize": NORMALIZERS[normalize]}
    return partial(FUSIONS[method], **{name: settings[name] for name in settings_of(method)})


@lru_cache
def settings_of(method: str) -> tuple[str, ...]:
    """Return the settings that this fusion reads: those of ``rrf_k`` and ``normalize`` that it takes as arguments."""
    parameters = inspect.signature(FUSIONS[method]).parameters
    return tuple(name for name in ("rrf_k", "normalize") if name in parameters)


def alpha_weights(alpha: float) -> dict[str, float]:
    """Return the weights of the lexical and the dense leg for ``alpha``: 0 is lexical only, 1 is dense only."""
    if not 0.0 <= alpha <= 1.0:
        raise InputError(f"alpha is {alpha!r}; it must be between 0 (lexical only) and 1 (dense only)")
    return {"lexical": 1.0 - alpha, "dense": alpha}


def check(ranking: Ranking) -> None:
    """Refuse a ranking unless its keys are unique and its scores finite and best first."""
    keys, scores = ranking.keys, ranking.scores
    if len(keys) != len(scores):
        raise InputError(
            f"ranking {ranking.leg!r} has {len(keys)} keys and {len(scores)} scores; each key needs one score"
        )
    if not isfinite(ranking.floor):
        raise InputError(f"ranking {ranking.leg!r} has the floor {ranking.floor}; it must be a finite number")
    if not keys:
        return
    if len(ranking.places()) != len(keys):  # which is needed later anyway
        raise InputError(
            f"ranking {ranking.leg!r} holds the key {_repeated(keys)!r} twice; keys are unique in a ranking"
        )
    # A NaN fails this comparison too. The exact fault is looked for only after it failed.
    if not (scores[0] <= LARGEST and scores[-1] >= -LARGEST and all(map(ge, scores, scores[1:]))):
        raise InputError(f"ranking {ranking.leg!r} {_fault(ranking)}")


def check_weight(leg: str, weight: float) -> None:
    """Refuse a weight that is not a finite number from 0 up."""
    if not _is_number(weight) or not 0.0 <= weight <= LARGEST:
        raise InputError(f"weight of leg {leg!r} is {weight!r}; a weight is a finite number from 0 (leg off) up")


def check_rrf_k(rrf_k: float) -> None:
    """Refuse a constant that could divide by zero.

    Ranks count from 1 here. Where a system counts from 0 with the constant c, ``rrf_k`` is ``c - 1``.
    """
    if not _is_number(rrf_k) or not -1.0 < rrf_k <= LARGEST:
        raise InputError(f"rrf_k is {rrf_k!r}; it must be a finite number above -1 (60 is the usual one)")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _repeated(keys: Sequence[object]) -> object:
    seen: set[object] = set()
    return next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _fault(ranking: Ranking) -> str:
    for rank, (key, score) in enumerate(zip(ranking.keys, ranking.scores, strict=True), start=1):
        if not -LARGEST <= score <= LARGEST:
            return f"has the score {score} for key {key!r} at rank {rank}; scores are finite numbers"
    rank = next(r for r, (a, b) in enumerate(zip(ranking.scores, ranking.scores[1:], strict=False), start=2) if a < b)
    return (
        f"is not best first: rank {rank} has {ranking.scores[rank - 1]}, above {ranking.scores[rank - 2]} before it; "
        "higher is better on every leg"
    )
