"""The weights of the legs for one query."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.fusion.weighing import LONG, WEIGHINGS, by_query, fixed
from trivet.types import Ranking


def curve(leg: str, *scores: float, unrelated: float = 0.0, ceiling: float = 1.0) -> Ranking:
    keys = tuple(range(len(scores)))
    return Ranking(leg, keys, scores, keys, unrelated=unrelated, ceiling=ceiling)


WORDS, MEANING = curve("lexical", 6.0, 3.0, 3.0, ceiling=12.0), curve("dense", 0.8, 0.7, 0.6, unrelated=0.5)


class TestByQuery:
    @pytest.mark.parametrize("text", ["GatewaySession.reconnect", "how many?", "kettle"])
    def test_the_weights_of_the_profile_are_used(self, text: str) -> None:
        weights = {"lexical": 1.0, "dense": 3.0, "trigram": 0.7}
        assert by_query(text, [WORDS, MEANING], weights) == weights

    @pytest.mark.parametrize("length", [1, 2, 10, 99, 100, 250])
    def test_the_graph_counts_less_beside_short_lists(self, length: int) -> None:
        listed = curve("lexical", *[1.0 / at for at in range(1, length + 1)])
        found = by_query("a", [listed, MEANING], {"lexical": 0.5, "dense": 0.5, "graph": 0.4})
        longest = max(length, len(MEANING))
        assert found["graph"] == pytest.approx(0.4 * min(1.0, log(1 + longest) / log(1 + LONG)))

    def test_the_graph_alone_keeps_its_weight(self) -> None:
        weights = {"lexical": 0.0, "dense": 0.0, "graph": 1.0}
        assert by_query("a", [curve("graph", 0.3, 0.1)], weights) == weights

    def test_a_model_that_does_not_read_the_script_decides_little(self) -> None:
        foreign = replace(MEANING, suits_query=False)
        found = by_query("金融", [WORDS, foreign], {"lexical": 1.0, "dense": 1.0})
        assert found == {"lexical": pytest.approx(1.8), "dense": pytest.approx(0.2)}
        least = {"lexical": 0.95, "dense": 0.05}  # who wants it to count less still is not overruled
        assert by_query("金融", [WORDS, foreign], least) == pytest.approx(least)

    @pytest.mark.parametrize("weights", [{"lexical": 1.0, "dense": 0.0}, {"lexical": 0.0, "dense": 1.0}])
    def test_a_leg_at_zero_stays_there(self, weights: dict[str, float]) -> None:
        assert by_query("a", [WORDS, MEANING], weights) == weights

    @pytest.mark.parametrize(
        "rankings", [[], [WORDS], [MEANING], [WORDS, Ranking("dense")], [Ranking("lexical"), MEANING]]
    )
    def test_one_leg_alone_is_not_weighed(self, rankings: list[Ranking]) -> None:
        weights = {"lexical": 0.5, "dense": 0.5}
        assert by_query("a", rankings, weights) is weights

    @given(
        st.text(max_size=40),
        st.lists(st.floats(0, 50), min_size=1, max_size=30),
        st.lists(st.floats(-1, 1), min_size=1, max_size=30),
        st.floats(0.01, 5),
        st.floats(0.01, 5),
        st.booleans(),
    )
    def test_the_sum_stays_and_no_weight_is_lost(
        self, text: str, words: list[float], meaning: list[float], a: float, b: float, suits_query: bool
    ) -> None:
        rankings = [
            curve("lexical", *sorted(words, reverse=True), ceiling=50.0),
            replace(curve("dense", *sorted(meaning, reverse=True), unrelated=0.5), suits_query=suits_query),
        ]
        found = by_query(text, rankings, {"lexical": a, "dense": b})
        assert found["lexical"] + found["dense"] == pytest.approx(a + b)
        assert min(found.values()) > 0.0
        assert found["lexical"] >= a * (1 - 1e-9)  # only a foreign script moves weight, and only to the words


def test_fixed_is_fixed() -> None:
    weights = {"lexical": 0.5, "dense": 0.5}
    assert fixed("a?", [WORDS, MEANING], weights) is weights
    assert WEIGHINGS["query"] is by_query
