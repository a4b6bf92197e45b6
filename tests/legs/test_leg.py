"""Rankings made of what a store found."""

from __future__ import annotations

import pytest

from trivet.legs.leg import LegQuery, ranking

FOUND = [(0.9, 11, 1), (0.5, 12, 2), (-0.2, 13, 3)]


def test_best_first_as_found() -> None:
    made = ranking("dense", FOUND, floor=-1.0, unrelated=0.2, ceiling=1.0, notes=("a note",))
    assert (made.leg, made.keys, made.scores, made.passages) == ("dense", (1, 2, 3), (0.9, 0.5, -0.2), (11, 12, 13))
    assert (made.floor, made.unrelated, made.ceiling, made.notes) == (-1.0, 0.2, 1.0, ("a note",))


@pytest.mark.parametrize(
    ("gate", "kept"), [(None, 3), (-1.0, 3), (0.0, 2), (0.5, 2), (0.500001, 1), (0.9, 1), (1.0, 0)]
)
def test_the_gate_keeps_what_reaches_it(gate: float | None, kept: int) -> None:
    """A gate of 0 is a gate: it is not taken for missing."""
    assert ranking("dense", FOUND, gate=gate).keys == (1, 2, 3)[:kept]


def test_nothing_found() -> None:
    assert len(ranking("lexical", [])) == 0


@pytest.mark.parametrize(
    ("score", "strength"), [(0.2, 0.0), (0.6, 0.5), (1.0, 1.0), (1.5, 1.0), (0.0, 0.0), (-1.0, 0.0)]
)
def test_strength_is_where_a_score_stands_between_unrelated_and_perfect(score: float, strength: float) -> None:
    assert ranking("dense", FOUND, unrelated=0.2, ceiling=1.0).strength(score) == pytest.approx(strength)


def test_strength_without_a_scale_is_none() -> None:
    assert ranking("lexical", [], ceiling=0.0).strength(3.0) == 0.0
    assert ranking("lexical", [], unrelated=1.0, ceiling=1.0).strength(1.0) == 0.0


def test_a_query_has_no_gate_by_default() -> None:
    query = LegQuery("text", 7)
    assert (query.gate, query.scope, query.vector, query.match) == (None, None, None, "auto")
