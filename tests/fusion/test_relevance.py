"""Relevance is a probability of the query and the document alone, and never increases down the list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trivet
from trivet.fusion import relevance
from trivet.fusion.relevance import Match, Matches, coefficients, features, never_increasing, probability
from trivet.types import Ranking

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
EVEN = {"lexical": 0.5, "dense": 0.5, "graph": 0.4}
unit = st.floats(0, 1)
logit = st.floats(-11, 11)


def ranked(leg: str, found: dict[str, float], **more: Any) -> Ranking:
    """A ranking whose strengths are these."""
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    keys = tuple(key for key, _ in ordered)
    seeded = leg == "graph"
    return Ranking(leg, keys, tuple(score for _, score in ordered), tuple(range(len(keys))), seeded=seeded, **more)


class TestMatches:
    def test_by_hand(self) -> None:
        rankings = [ranked("lexical", {"a": 0.8, "b": 0.4}), ranked("dense", {"b": 0.6}), ranked("graph", {"c": 0.7})]
        of = Matches(rankings, EVEN)
        assert of("a") == Match(0.8, 0.0)
        assert of("b") == Match(0.4, 0.6)
        assert of("c") == Match(0.0, 0.0)  # a path matches nothing
        assert of("nobody") == Match(0.0, 0.0)

    def test_a_leg_without_a_weight_is_ignored(self) -> None:
        rankings = [ranked("lexical", {"a": 0.8}), ranked("dense", {"b": 0.9})]
        assert Matches(rankings, {"lexical": 1.0, "dense": 0.0})("a") == Match(0.8, None)

    def test_the_best_leg_that_compares_words_counts(self) -> None:
        rankings = [ranked("lexical", {"a": 0.2}), ranked("trigram", {"a": 0.9})]
        assert Matches(rankings, {"lexical": 1.0, "trigram": 1.0})("a") == Match(0.9, None)

    def test_a_leg_that_found_nothing_counts_and_one_that_had_nothing_to_search_for_does_not(self) -> None:
        words = ranked("lexical", {"a": 0.8})
        assert Matches([words, Ranking("dense")], EVEN)("a") == Match(0.8, 0.0)
        assert Matches([words, Ranking("dense", notes=("nothing in the query to embed",))], EVEN)("a").meaning is None

    @pytest.mark.parametrize("legs", [("lexical", "dense"), ("lexical", "trigram"), ("dense",), ("graph",)])
    def test_the_probabilities_of_many_are_those_of_each(self, legs: tuple[str, ...]) -> None:
        found = {"lexical": {"a": 0.8, "b": 0.4}, "trigram": {"a": 0.9, "d": 0.2}, "dense": {"b": 0.6, "c": 1.0}}
        of = Matches([ranked(leg, found.get(leg, {"a": 0.7})) for leg in legs], dict.fromkeys(legs, 1.0))
        keys = ["a", "b", "c", "d", "nobody"]
        assert of.probabilities(keys) == [probability(of(key)) for key in keys]


class TestProbability:
    @pytest.mark.parametrize("match", [Match(0.5, 0.4), Match(0.5), Match(None, 0.5)])
    @pytest.mark.parametrize("read", [None, 1.0])
    def test_there_is_a_coefficient_for_every_feature(self, match: Match, read: float | None) -> None:
        assert len(features(match, read)) == len(coefficients(match, read))

    def test_what_was_read_decides_alone(self) -> None:
        assert probability(Match(0.9, 0.1), 3.0) == probability(Match(None, 0.2), 3.0) == probability(Match(), 3.0)
        assert probability(Match(0.9, 0.9), -3.0) < probability(Match(0.1, 0.1), 3.0)

    def test_what_no_leg_found_is_not_relevant(self) -> None:
        assert probability(Match(0.0, 0.0)) == 0.0
        assert probability(Match()) == 0.0

    def test_a_weak_match_is_low_and_a_perfect_one_high(self) -> None:
        assert probability(Match(0.1, 0.05)) < 0.1
        assert probability(Match(1.0, 1.0)) > 0.6
        assert probability(Match(), read=-10.0) < 0.05 < 0.5 < probability(Match(), read=7.0)

    @given(words=st.none() | unit, meaning=st.none() | unit, read=st.none() | logit)
    def test_it_is_a_probability(self, words: float | None, meaning: float | None, read: float | None) -> None:
        assert 0.0 <= probability(Match(words, meaning), read) <= 1.0

    @given(words=unit, meaning=unit, more=unit)
    def test_a_stronger_match_is_never_less_relevant(self, words: float, meaning: float, more: float) -> None:
        assert probability(Match(max(words, more), meaning)) >= probability(Match(words, meaning))
        assert probability(Match(words, max(meaning, more))) >= probability(Match(words, meaning))

    @given(read=logit, more=st.floats(0, 5))
    def test_what_reads_better_is_never_less_relevant(self, read: float, more: float) -> None:
        assert probability(Match(), read + more) >= probability(Match(), read)


@given(st.lists(unit, max_size=30))
def test_never_increasing(values: list[float]) -> None:
    found = never_increasing(values)
    assert all(before >= after for before, after in pairwise(found))
    assert sum(found) == pytest.approx(sum(values))
    assert never_increasing(found) == pytest.approx(found)
    assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for value in found)


def test_never_increasing_by_hand() -> None:
    assert never_increasing([0.5, 0.9, 0.1]) == pytest.approx([0.7, 0.7, 0.1])
    assert never_increasing([0.2, 0.4, 0.9]) == pytest.approx([0.5, 0.5, 0.5])
    assert never_increasing([0.9, 0.4, 0.2]) == [0.9, 0.4, 0.2]


@pytest.fixture(scope="module")
def memory() -> Iterator[trivet.Engine]:
    things = ("kettle", "heron", "gate", "ladder", "lamp")
    with trivet.open(":memory:", embedder="hashing:64") as memory:
        memory.add(
            [
                {
                    "id": f"d{n:02}",
                    "text": f"the {things[n % 5]} by the {things[n % 3]}, {n}",
                    "meta": {"odd": n % 2 == 1},
                }
                for n in range(40)
            ]
        )
        memory.wait()
        yield memory


class TestInASearch:
    def relevances(self, memory: trivet.Engine, **how: Any) -> dict[str, float]:
        return {hit.id: hit.relevance for hit in memory.search("kettle by the lamp", **how)}

    @pytest.mark.parametrize("how", [{}, {"rerankers": []}, {"profile": "careful"}, {"fusion": "rrf"}, {"alpha": 1.0}])
    def test_it_never_increases_down_the_list(self, memory: trivet.Engine, how: dict[str, Any]) -> None:
        found = list(self.relevances(memory, k=40, **how).values())
        assert len(found) == 40
        assert all(before >= after for before, after in pairwise(found))

    @pytest.mark.parametrize("how", [{}, {"rerankers": []}])
    def test_it_does_not_depend_on_k_or_the_page(self, memory: trivet.Engine, how: dict[str, Any]) -> None:
        whole = self.relevances(memory, k=40, **how)
        paged = {}
        for offset in range(0, 40, 10):
            paged |= self.relevances(memory, k=10, offset=offset, **how)
        assert paged == pytest.approx(whole)
        assert self.relevances(memory, k=3, **how) == pytest.approx(dict(list(whole.items())[:3]))

    def test_a_filter_does_not_change_it_where_the_order_agrees(self, memory: trivet.Engine) -> None:
        alone = {"rerankers": [], "graph_weight": 0.0, "dense_weight": 0.0, "k": 40}
        whole = self.relevances(memory, **alone)
        odd = self.relevances(memory, where={"odd": True}, **alone)
        assert odd and odd == pytest.approx({id: whole[id] for id in odd}, abs=0.02)

    def test_a_hit_that_was_not_read_is_no_more_relevant_than_those_that_were(self, memory: trivet.Engine) -> None:
        hits = memory.search(
            "kettle by the lamp", k=40, profile="careful", rerankers=[{"name": "reader", "most_others": 5}]
        )
        read = [any(note.reranker == "reader" for note in hit.adjustments) for hit in hits]
        assert read == [True] * 5 + [False] * 35
        assert hits[5].relevance <= hits[4].relevance

    def test_importance_is_no_part_of_it(self) -> None:
        with trivet.open(":memory:", embedder="none") as memory:
            memory.add("A kettle by the lamp.", id="right", importance=0.0)
            memory.add("A heron by the gate.", id="wrong", importance=1.0)
            plain = {hit.id: hit.relevance for hit in memory.search("kettle by the lamp")}
            pushed = memory.search("kettle by the lamp", rerankers=[{"name": "importance", "floor": 0.0}])
            assert sum(hit.relevance for hit in pushed) == pytest.approx(sum(plain.values()))
            assert max(hit.relevance for hit in pushed) <= plain["right"]

    def test_a_threshold_works_on_it(self, memory: trivet.Engine) -> None:
        whole = self.relevances(memory, k=40)
        middle = sorted(whole.values())[20]
        kept = self.relevances(memory, k=40, min_relevance=middle)
        assert kept == pytest.approx({id: value for id, value in whole.items() if value >= middle})

    def test_a_hit_has_a_word_for_it(self, memory: trivet.Engine) -> None:
        hits = memory.search("kettle by the lamp", k=40)
        order = ("strong", "likely", "weak")
        assert [hit.confidence for hit in hits] == sorted((hit.confidence for hit in hits), key=order.index)


def test_the_coefficients_are_those_that_were_fitted() -> None:
    """`make relevance` writes the file; every set in it was measured without its family."""
    (file,) = RESULTS.glob("relevance-*.json")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert {name: tuple(line) for name, line in found["coefficients"].items()} == {
        name: getattr(relevance, name) for name in ("READ", "BOTH", "WORDS", "MEANING")
    }
    assert all(profile["error"] < 0.08 for profile in found["profiles"].values())
