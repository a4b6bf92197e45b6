from __future__ import annotations

import pytest

from trivet.fusion import fuse
from trivet.types import Ranking

LEXICAL = Ranking("lexical", ("a", "b", "c"), (9.0, 5.0, 1.0))
DENSE = Ranking("dense", ("c", "d", "a"), (0.8, 0.6, 0.4))


def scores(method: str, normalize: str = "minmax", **weights: float) -> dict[object, float]:
    return {c.key: c.score for c in fuse(method, [LEXICAL, DENSE], weights, normalize=normalize)}


def test_comb_sum() -> None:
    assert scores("comb_sum") == pytest.approx({"a": 1.0 + 0.0, "b": 0.5, "c": 0.0 + 1.0, "d": 0.5})


def test_comb_mnz_counts_the_legs_that_listed_it_even_at_a_score_of_zero() -> None:
    assert scores("comb_mnz") == pytest.approx({"a": 2 * (1.0 + 0.0), "b": 1 * 0.5, "c": 2 * (0.0 + 1.0), "d": 1 * 0.5})


def test_weights() -> None:
    assert scores("comb_sum", dense=3.0) == pytest.approx({"a": 1.0, "b": 0.5, "c": 3.0, "d": 1.5})
    assert scores("comb_mnz", dense=3.0) == pytest.approx({"a": 2 * 1.0, "b": 0.5, "c": 2 * 3.0, "d": 1.5})


def test_raw_scores() -> None:
    assert scores("comb_mnz", "none") == pytest.approx({"a": 2 * (9 + 0.4), "b": 5, "c": 2 * (1 + 0.8), "d": 0.6})


def test_a_leg_of_weight_zero_does_not_count_as_agreement() -> None:
    assert scores("comb_mnz", dense=0.0) == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0})


def test_shares_carry_the_factor() -> None:
    account = fuse("comb_mnz", [LEXICAL, DENSE], {}, normalize="none")[0].contributions
    assert [c.share for c in account] == pytest.approx([2 * 9.0, 2 * 0.4])
