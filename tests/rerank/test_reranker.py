from __future__ import annotations

from collections.abc import Callable

import pytest

from trivet.rerank import renumbered
from trivet.rerank.importance import Importance
from trivet.rerank.reranker import Option, best_first, scaled
from trivet.types import Adjustment, Hit

MakeHit = Callable[..., Hit]


def test_adjustments_pile_up_in_order(hit: MakeHit) -> None:
    by = Importance()
    (once,) = best_first(by, [(hit("a", 1.0), 0.5, "halved")])
    (twice,) = best_first(by, [(once, 0.25, "halved again")])
    assert twice.score == 0.25
    assert twice.adjustments == (
        Adjustment("importance", 1.0, 0.5, "halved"),
        Adjustment("importance", 0.5, 0.25, "halved again"),
    )
    assert best_first(by, [(once, 0.5, "nothing happened")]) == [once]


def test_best_first_is_stable_and_numbers_from_one(hit: MakeHit) -> None:
    verdicts = [(hit("a", 1.0, rank=9), 1.0, ""), (hit("b", 0.5, rank=9), 2.0, "up"), (hit("c", 1.0, rank=9), 1.0, "")]
    assert [(h.rank, h.id) for h in best_first(Importance(), verdicts)] == [(1, "b"), (2, "a"), (3, "c")]


def test_renumbered_keeps_the_order(hit: MakeHit) -> None:
    assert [(h.rank, h.id) for h in renumbered([hit("b", 1.0, rank=5), hit("a", 2.0, rank=2)])] == [(1, "b"), (2, "a")]


@pytest.mark.parametrize(
    ("score", "factor", "after"), [(2.0, 0.7, 1.4), (-2.0, 0.7, -2.6), (0.0, 0.7, 0.0), (-1, 1.1, -0.9)]
)
def test_scaling_down_is_down_on_both_sides_of_zero(score: float, factor: float, after: float) -> None:
    assert scaled(score, factor) == pytest.approx(after)


def test_what_an_option_allows() -> None:
    share, count, word = (
        Option(0.5, "", low=0, high=1),
        Option(3, "", low=1, high=9),
        Option("a", "", choices=("a", "b")),
    )
    assert [share.accepts(v) for v in (0, 1, 0.5, 1.01, -1, float("nan"), "0.5", None, True)] == [True] * 3 + [
        False
    ] * 6
    assert [count.accepts(v) for v in (1, 9, 0, 10, 2.0, "2", True)] == [True] * 2 + [False] * 5
    assert [word.accepts(v) for v in ("a", "b", "c", 1, None, ["a"])] == [True] * 2 + [False] * 4
    assert [o.allowed for o in (share, count, word)] == [
        "a number from 0 to 1",
        "a whole number from 1 to 9",
        "one of a, b",
    ]
    assert Option(0, "").allowed == "a whole number"
