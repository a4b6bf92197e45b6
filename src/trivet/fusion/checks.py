"""Is this a ranking, a weight, a constant that fusion can work with?

What passes here cannot make a NaN further on; what does not is refused by name, because a fused list that is silently
inverted or poisoned looks just like a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import ge

from trivet.errors import InputError
from trivet.types import Ranking

#: Beyond this a number is an overflow in whoever made it, and sums of squares would become one here.
LARGEST = 1e100


def check(ranking: Ranking) -> None:
    """Refuses a ranking that breaks its own promise: unique keys, finite scores, best first, higher is better."""
    keys, scores = ranking.keys, ranking.scores
    if len(keys) != len(scores):
        raise InputError(
            f"ranking {ranking.leg!r} has {len(keys)} keys and {len(scores)} scores; each key needs one score"
        )
    if not isfinite(ranking.floor):
        raise InputError(f"ranking {ranking.leg!r} has the floor {ranking.floor}; it must be a finite number")
    if not keys:
        return
    if len(set(keys)) != len(keys):
        raise InputError(
            f"ranking {ranking.leg!r} holds the key {_repeated(keys)!r} twice; keys are unique in a ranking"
        )
    # Written so that a NaN fails it too; the reason is looked for only then.
    if not (scores[0] <= LARGEST and scores[-1] >= -LARGEST and all(map(ge, scores, scores[1:]))):
        raise InputError(f"ranking {ranking.leg!r} {_fault(ranking)}")


def check_weight(leg: str, weight: float) -> None:
    if not _is_number(weight) or not 0.0 <= weight <= LARGEST:
        raise InputError(f"weight of leg {leg!r} is {weight!r}; a weight is a finite number from 0 (leg off) up")


def check_rrf_k(rrf_k: float) -> None:
    """Ranks are 1-based: the 0-based constant c of other systems is ``rrf_k = c - 1``, and only -1 divides by zero."""
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
