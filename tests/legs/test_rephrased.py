"""Several wordings of one query, asked of one leg."""

from __future__ import annotations

from dataclasses import dataclass

from trivet.legs.leg import LegQuery
from trivet.legs.lexical import SHARE, expanded
from trivet.legs.rephrased import Rephrased
from trivet.text.analysis import ParsedQuery
from trivet.types import Ranking


@dataclass
class Leg:
    answers: dict[str, Ranking]
    name: str = "lexical"
    seeded: bool = False

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        return self.answers[query.text]


def test_the_mean_of_the_strengths() -> None:
    one = Ranking("lexical", (1, 2), (8.0, 4.0), (10, 20), ceiling=10.0, notes=("any word",))
    two = Ranking("lexical", (2, 3), (5.0, 1.0), (21, 30), ceiling=5.0)
    found = Rephrased(Leg({"a": one, "b": two}), ("b",)).rank(LegQuery("a", 1), 10)
    # 1: .8 / 2; 2: (.4 + 1) / 2; 3: .2 / 2
    assert dict(zip(found.keys, found.scores, strict=True)) == {2: 0.7, 1: 0.4, 3: 0.1}
    assert found.passages == (21, 10, 30)  # of 2, the passage of the wording that finds it best
    assert found.notes == ("any word", "2 wordings")
    assert found.strength(found.scores[0]) == 0.7


def test_no_deeper_than_was_asked_for() -> None:
    one = Ranking("lexical", (1, 2), (2.0, 1.0), (10, 20), ceiling=2.0)
    assert Rephrased(Leg({"a": one}), ()).rank(LegQuery("a", 1), 1).keys == (1,)


def test_a_seeded_leg_keeps_its_paths() -> None:
    one = Ranking("graph", (1,), (2.0,), (10,), ceiling=2.0, seeded=True, paths=((7, "heron", 1),))
    two = Ranking(
        "graph", (1, 2), (2.0, 1.0), (10, 20), ceiling=2.0, seeded=True, paths=((8, "gate", 1), (8, "lamp", 2))
    )
    found = Rephrased(Leg({"a": one, "b": two}, "graph", seeded=True), ("b",)).rank(LegQuery("a", 1), 10)
    assert found.seeded
    assert found.paths == ((7, "heron", 1), (8, "lamp", 2))


class TestExpansion:
    def test_by_hand(self) -> None:
        query = ParsedQuery(terms=("lamp",), required=("lamp",))
        made = expanded(query, [(3.0, "lamp oil oil"), (1.0, "lamp wick")], str.split, 2)
        # oil: 3/4 * 2/3 = 1/2; wick: 1/4 * 1/2 = 1/8; together they get SHARE of the whole
        assert made.terms == ("lamp", "oil", "wick")
        assert made.required == ("lamp",)
        weights = dict(made.weights)
        assert abs(weights["oil"] / weights["wick"] - 4.0) < 1e-9
        assert abs(sum(weights.values()) / (sum(weights.values()) + 1.0) - SHARE) < 1e-9

    def test_nothing_new_nothing_changed(self) -> None:
        query = ParsedQuery(terms=("lamp",), required=("lamp",))
        assert expanded(query, [(1.0, "lamp lamp")], str.split, 5) is query
        assert expanded(query, [], str.split, 5) is query
        assert expanded(query, [(0.0, "oil")], str.split, 5) is query
