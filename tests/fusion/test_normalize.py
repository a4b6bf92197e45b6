from __future__ import annotations

from math import sqrt

import pytest

from trivet.fusion.normalize import NORMALIZERS
from trivet.types import Ranking


def points(name: str, *scores: float, floor: float = 0.0) -> list[float]:
    return NORMALIZERS[name](Ranking("leg", tuple(range(len(scores))), scores, floor=floor))


#: What each gives: four plain scores, all equal, one alone, all zero.
TABLE = {
    "minmax": ([1.0, (6 - 2) / (10 - 2), (4 - 2) / (10 - 2), 0.0], 1.0, 1.0, 1.0),
    "tm2c2": ([1.0, 6 / 10, 4 / 10, 2 / 10], 1.0, 1.0, 0.0),
    "zscore": ([8 / sqrt(8.75), 4 / sqrt(8.75), 2 / sqrt(8.75), 0.0], 1.0, 1.0, 1.0),
    "dbsf": ([0.5 + d / (6 * sqrt(35 / 3)) for d in (4.5, 0.5, -1.5, -3.5)], 0.5, 0.5, 0.5),
    "max": ([1.0, 0.6, 0.4, 0.2], 1.0, 1.0, 0.0),
    "none": ([10.0, 6.0, 4.0, 2.0], 5.0, 5.0, 0.0),
}


def test_the_table_below_is_about_all_of_them() -> None:
    assert list(TABLE) == list(NORMALIZERS)


@pytest.mark.parametrize("name", TABLE)
def test_defined_answers(name: str) -> None:
    plain, equal, alone, zero = TABLE[name]
    assert points(name, 10.0, 6.0, 4.0, 2.0) == pytest.approx(plain)
    assert points(name, 5.0, 5.0, 5.0) == [equal] * 3
    assert points(name, 5.0) == [alone]
    assert points(name, 0.0, 0.0) == [zero] * 2
    assert points(name) == []


def test_negative_scores() -> None:
    assert points("minmax", -1.0, -2.0, -3.0) == [1.0, 0.5, 0.0]
    assert points("zscore", -1.0, -3.0) == [2.0, 0.0]
    assert points("dbsf", -1.0, -3.0) == pytest.approx([0.5 + 1 / (6 * sqrt(2)), 0.5 - 1 / (6 * sqrt(2))])
    assert points("max", -1.0, -2.0, -4.0) == [-0.25, -0.5, -1.0]


def test_max_keeps_the_order_of_negative_scores() -> None:
    """Divided by its negative maximum, this list would come out upside down."""
    assert points("max", -1.0, -2.0) == [-0.5, -1.0]


def test_tm2c2_counts_from_the_scorers_minimum_not_from_the_cut() -> None:
    assert points("tm2c2", 0.8, 0.6, floor=-1.0) == pytest.approx([1.0, 1.6 / 1.8])
    assert points("tm2c2", 0.8, 0.6, 0.1, floor=-1.0)[:2] == points("tm2c2", 0.8, 0.6, floor=-1.0)
    assert points("minmax", 0.8, 0.6, 0.1)[:2] != points("minmax", 0.8, 0.6)


def test_tm2c2_at_or_below_the_minimum_is_nothing() -> None:
    assert points("tm2c2", -1.0, -1.0, floor=-1.0) == [0.0, 0.0]
    assert points("tm2c2", 2.0, -1.0, floor=0.0) == [1.0, 0.0]


def test_zscore_puts_the_lowest_listed_where_the_absent_are() -> None:
    assert min(points("zscore", 5.0, 4.0, 1.0)) == 0.0


def test_dbsf_clips_an_outlier() -> None:
    outlier = points("dbsf", 1000.0, *[1.0] * 30)
    assert outlier[0] == 1.0
    assert 0.0 < outlier[1] < 0.5


@pytest.mark.parametrize("name", ["zscore", "dbsf"])
def test_equal_scores_have_no_deviation_though_their_mean_is_rounded(name: str) -> None:
    assert len(set(points(name, 0.1, 0.1, 0.1))) == 1
    assert points(name, 0.1, 0.1, 0.1)[0] in (0.5, 1.0)
