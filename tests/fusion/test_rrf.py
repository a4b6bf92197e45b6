from __future__ import annotations

import pytest

from trivet.fusion import fuse
from trivet.types import Contribution, Ranking

LEXICAL = Ranking("lexical", ("a", "b", "c"), (9.0, 5.0, 1.0))
DENSE = Ranking("dense", ("c", "a", "d"), (0.9, 0.5, 0.4))


def scores(*rankings: Ranking, rrf_k: float = 60.0, **weights: float) -> dict[object, float]:
    return {c.key: c.score for c in fuse("rrf", rankings, weights, rrf_k=rrf_k)}


def test_ranks_are_one_based() -> None:
    assert scores(LEXICAL, DENSE) == pytest.approx(
        {
            "a": 1 / (60 + 1) + 1 / (60 + 2),
            "c": 1 / (60 + 3) + 1 / (60 + 1),
            "b": 1 / (60 + 2),
            "d": 1 / (60 + 3),
        }
    )


def test_the_order() -> None:
    assert [c.key for c in fuse("rrf", [LEXICAL, DENSE], {})] == ["a", "c", "b", "d"]


def test_weights() -> None:
    weighted = scores(LEXICAL, DENSE, dense=1.5, lexical=0.35)
    assert weighted["a"] == pytest.approx(0.35 / 61 + 1.5 / 62)
    assert weighted["d"] == pytest.approx(1.5 / 63)


@pytest.mark.parametrize(("rrf_k", "first"), [(60, 1 / 61), (0, 1 / 1), (4, 1 / 5), (-0.5, 1 / 0.5)])
def test_the_constant(rrf_k: float, first: float) -> None:
    assert scores(LEXICAL, rrf_k=rrf_k)["a"] == pytest.approx(first)


def test_the_account() -> None:
    fused = fuse("rrf", [LEXICAL, DENSE], {"dense": 2.0})
    assert next(c for c in fused if c.key == "c").contributions == (
        Contribution("lexical", rank=3, raw=1.0, normalised=1 / 63, weight=1.0, share=1 / 63),
        Contribution("dense", rank=1, raw=0.9, normalised=1 / 61, weight=2.0, share=2.0 * (1 / 61)),
    )


@pytest.mark.parametrize("rrf_k", [0, 5, 60])
def test_rank_r_in_both_beats_a_first_place_in_one_while_r_is_below_k_plus_2(rrf_k: int) -> None:
    """2 / (k + r) > 1 / (k + 1)  iff  r < k + 2."""

    def order(r: int) -> list[object]:
        one = Ranking("lexical", (*range(1, r), "both"), tuple(float(-i) for i in range(r)))
        other = Ranking("dense", (*range(1001, 1000 + r), "both"), tuple(float(-i) for i in range(r)))
        return [c.key for c in fuse("rrf", [one, other], {}, rrf_k=rrf_k)]

    assert order(rrf_k + 1)[0] == "both"
    assert order(rrf_k + 3)[0] == 1
