"""How much are words and meaning worth for this question?"""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.fusion import weighing
from trivet.fusion.weighing import WEIGHINGS, by_query, features, fixed
from trivet.types import Ranking

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


def curve(leg: str, *scores: float, unrelated: float = 0.0, ceiling: float = 1.0) -> Ranking:
    keys = tuple(range(len(scores)))
    return Ranking(leg, keys, scores, keys, unrelated=unrelated, ceiling=ceiling)


WORDS, MEANING = curve("lexical", 6.0, 3.0, 3.0, ceiling=12.0), curve("dense", 0.8, 0.7, 0.6, unrelated=0.5)


class TestFeatures:
    def test_by_hand(self) -> None:
        found = dict(zip(weighing.FEATURES, features("how many?", WORDS, MEANING), strict=True))
        assert found["words_best"] == 0.5
        assert found["words_tenth"] == 0.0  # there is none
        assert found["words_spread"] == pytest.approx((2 * (1 / 12) ** 2 + (2 / 12) ** 2) ** 0.5 / 3**0.5)
        assert found["meaning_best"] == pytest.approx(0.6)  # (0.8 - 0.5) / (1 - 0.5)
        assert found["meaning_spread"] == pytest.approx(0.2 * (2 / 3) ** 0.5)
        assert found["length"] == pytest.approx(log(3))
        assert found["question_mark"] == 1.0

    def test_the_tenth_hit(self) -> None:
        ten = curve("lexical", *[1.0 - 0.1 * at for at in range(12)])
        assert features("x", ten, MEANING)[1] == pytest.approx(0.1)


class TestByQuery:
    def test_the_shift_is_the_logistic_model(self) -> None:
        shift = weighing.INTERCEPT
        for coefficient, value, mean, deviation in zip(
            weighing.COEFFICIENTS,
            features("how many?", WORDS, MEANING),
            weighing.MEANS,
            weighing.DEVIATIONS,
            strict=True,
        ):
            shift += coefficient * (value - mean) / deviation
        found = by_query("how many?", [WORDS, MEANING], {"lexical": 1.0, "dense": 3.0, "trigram": 0.7})
        odds = 3.0 * exp(shift)
        assert found["dense"] == pytest.approx(4.0 * odds / (1 + odds))
        assert found["lexical"] + found["dense"] == pytest.approx(4.0)
        assert found["trigram"] == 0.7

    def test_meaning_that_found_something_counts_more(self) -> None:
        flat = curve("dense", 0.6, 0.59, 0.58, unrelated=0.5)
        sharp = curve("dense", 0.95, 0.6, 0.58, unrelated=0.5)
        even = {"lexical": 0.5, "dense": 0.5}
        assert by_query("a b c", [WORDS, sharp], even)["dense"] > by_query("a b c", [WORDS, flat], even)["dense"]

    def test_a_model_that_does_not_read_the_script_decides_little(self) -> None:
        foreign = replace(MEANING, at_home=False)
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
    )
    def test_the_sum_stays_and_no_weight_is_lost(
        self, text: str, words: list[float], meaning: list[float], a: float, b: float
    ) -> None:
        rankings = [
            curve("lexical", *sorted(words, reverse=True), ceiling=50.0),
            curve("dense", *sorted(meaning, reverse=True), unrelated=0.5),
        ]
        found = by_query(text, rankings, {"lexical": a, "dense": b})
        assert found["lexical"] + found["dense"] == pytest.approx(a + b)
        assert min(found.values()) > 0.0


def test_fixed_is_fixed() -> None:
    weights = {"lexical": 0.5, "dense": 0.5}
    assert fixed("a?", [WORDS, MEANING], weights) is weights
    assert WEIGHINGS["query"] is by_query


def test_the_coefficients_are_those_that_were_measured() -> None:
    (file,) = RESULTS.glob("weighing-*.json")
    told = json.loads(file.read_text(encoding="utf-8"))
    assert tuple(told["features"]) == weighing.FEATURES
    assert tuple(told["means"]) == weighing.MEANS
    assert tuple(told["deviations"]) == weighing.DEVIATIONS
    assert tuple(told["coefficients"]) == weighing.COEFFICIENTS
    assert told["intercept"] == weighing.INTERCEPT
    assert told["mean_gain"]["unseen_set"] > 0
