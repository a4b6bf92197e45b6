from __future__ import annotations

import pytest

from trivet.fusion import alpha_weights, fuse
from trivet.types import Contribution, Ranking

LEXICAL = Ranking("lexical", ("a", "b", "c"), (9.0, 5.0, 1.0))
DENSE = Ranking("dense", ("c", "d", "a"), (0.8, 0.6, 0.4), floor=-1.0)


def scores(normalize: str, **weights: float) -> dict[object, float]:
    return {c.key: c.score for c in fuse("convex", [LEXICAL, DENSE], weights, normalize=normalize)}


def test_minmax_by_hand() -> None:
    assert scores("minmax", lexical=0.4, dense=0.6) == pytest.approx(
        {
            "a": 0.4 * 1.0 + 0.6 * 0.0,
            "b": 0.4 * (5 - 1) / (9 - 1),
            "c": 0.4 * 0.0 + 0.6 * 1.0,
            "d": 0.6 * (0.6 - 0.4) / (0.8 - 0.4),
        }
    )


def test_tm2c2_by_hand() -> None:
    assert scores("tm2c2", **alpha_weights(0.5)) == pytest.approx(
        {
            "a": 0.5 * 9 / 9 + 0.5 * (0.4 + 1) / (0.8 + 1),
            "b": 0.5 * 5 / 9,
            "c": 0.5 * 1 / 9 + 0.5 * 1.0,
            "d": 0.5 * (0.6 + 1) / (0.8 + 1),
        }
    )


def test_only_the_proportion_of_the_weights_counts() -> None:
    assert scores("minmax", lexical=2.0, dense=6.0) == pytest.approx(scores("minmax", lexical=0.25, dense=0.75))


def test_the_weight_shown_is_the_one_used() -> None:
    fused = fuse("convex", [LEXICAL, DENSE], {"lexical": 1.0, "dense": 3.0})
    assert fused[0].contributions == (
        Contribution("lexical", rank=3, raw=1.0, normalised=0.0, weight=0.25, share=0.0),
        Contribution("dense", rank=1, raw=0.8, normalised=1.0, weight=0.75, share=0.75),
    )


def test_a_leg_that_found_nothing_leaves_its_part_of_the_score_empty() -> None:
    assert fuse("convex", [LEXICAL, Ranking("dense")], {})[0].score == 0.5
    assert fuse("convex", [LEXICAL], {})[0].score == 1.0
