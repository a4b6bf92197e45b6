"""Several rankings: give me one.

*Useful for* merging what independent legs found, with the account of every leg's share. *Not useful for* judging one
list again in the light of its documents: that is a reranker. Pure: keys and scores in, candidates out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from trivet.errors import InputError
from trivet.fusion.checks import check, check_rrf_k, check_weight
from trivet.fusion.comb import comb_mnz, comb_sum
from trivet.fusion.convex import convex
from trivet.fusion.isr import isr
from trivet.fusion.normalize import NORMALIZERS, Normalizer
from trivet.fusion.rrf import rrf
from trivet.types import Candidate, Ranking

__all__ = ["FUSIONS", "NORMALIZERS", "alpha_weights", "check", "fuse"]

#: (checked rankings, their weights, all above 0, rrf_k, normalizer) -> candidates; each takes from these what it needs.
Fusion = Callable[[Sequence[Ranking], Sequence[float], float, Normalizer], Sequence[Candidate]]

FUSIONS: dict[str, Fusion] = {
    "rrf": rrf,
    "convex": convex,
    "comb_sum": comb_sum,
    "comb_mnz": comb_mnz,
    "isr": isr,
}

_T = TypeVar("_T")


def fuse(
    method: str,
    rankings: Sequence[Ranking],
    weights: Mapping[str, float],
    *,
    rrf_k: float = 60.0,
    normalize: str = "minmax",
) -> Sequence[Candidate]:
    """The union of ``rankings``, best first, by the named ``method``.

    A leg that ``weights`` does not name has weight 1. At weight 0 a leg gives nothing, and no document enters by it
    alone. Equal scores keep first-seen order: the rankings as given, then by rank.
    """
    fusion, normalizer = _named("fusion", method, FUSIONS), _named("normalizer", normalize, NORMALIZERS)
    check_rrf_k(rrf_k)
    for leg, weight in weights.items():
        check_weight(leg, weight)
    legs: set[str] = set()
    for ranking in rankings:
        check(ranking)
        if ranking.leg in legs:
            raise InputError(f"leg {ranking.leg!r} is given two rankings; legs are told apart by their name")
        legs.add(ranking.leg)
    taking_part = [ranking for ranking in rankings if weights.get(ranking.leg, 1.0) > 0.0]
    if not taking_part:
        return []
    return fusion(taking_part, [weights.get(ranking.leg, 1.0) for ranking in taking_part], rrf_k, normalizer)


def alpha_weights(alpha: float) -> dict[str, float]:
    """One knob between words and meaning: 0 is lexical only, 1 is dense only."""
    if not 0.0 <= alpha <= 1.0:
        raise InputError(f"alpha is {alpha!r}; it must be between 0 (lexical only) and 1 (dense only)")
    return {"lexical": 1.0 - alpha, "dense": alpha}


def _named(kind: str, name: str, table: Mapping[str, _T]) -> _T:
    if name not in table:
        raise InputError(f"{kind} {name!r} is not known; known: {', '.join(table)}")
    return table[name]
