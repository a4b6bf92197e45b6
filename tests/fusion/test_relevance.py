"""Does relevance say what it should of a document, whatever the fusion and the page?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import exp
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trivet
from trivet.fusion import relevance
from trivet.fusion.relevance import LEAST, TENTH, Standing, probability, standings
from trivet.types import Ranking

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
EVEN = {"lexical": 0.5, "dense": 0.5, "graph": 0.4}


def ranked(leg: str, found: dict[str, float]) -> Ranking:
    """Its strengths are these."""
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    keys = tuple(key for key, _ in ordered)
    return Ranking(leg, keys, tuple(score for _, score in ordered), tuple(range(len(keys))))


def told(key: str, *rankings: Ranking, weights: dict[str, float] = EVEN) -> float:
    return probability(standings(rankings, weights)(key))


class TestStandings:
    def test_by_hand(self) -> None:
        words = ranked("lexical", {"a": 0.8, "b": 0.4})  # no tenth: above 0, of 0.8
        meaning = ranked("dense", {"b": 0.6} | {f"n{at}": 0.2 for at in range(TENTH + 1)})  # above 0.2, of 0.4
        of = standings([words, meaning], {"lexical": 1.0, "dense": 3.0})
        assert of("a") == Standing(pytest.approx(0.2), pytest.approx(0.25), pytest.approx(0.25 - 0.875))
        # 0.25 × 0.4 + 0.75 × 0.6; 0.25 × 0.5 + 0.75 × 1; over the next
        assert of("b") == Standing(pytest.approx(0.55), pytest.approx(0.875), pytest.approx(0.875 - 0.25))
        assert of("n3") == Standing(pytest.approx(0.15), 0.0, pytest.approx(-0.875))
        assert of("nobody") == Standing(0.0, 0.0, pytest.approx(-0.875))

    def test_two_that_are_level_lead_nobody(self) -> None:
        of = standings([ranked("lexical", {"a": 0.8, "b": 0.8, "c": 0.1})], EVEN)
        assert of("a").lead == of("b").lead == 0.0

    def test_in_a_list_that_is_all_alike_nobody_stands_high(self) -> None:
        level = ranked("dense", {f"n{at:02}": 0.5 - at / 1000 for at in range(30)})
        assert standings([level], EVEN)("n00").height == pytest.approx(0.009 / LEAST)

    def test_a_leg_without_a_weight_has_no_say(self) -> None:
        words, meaning = ranked("lexical", {"a": 0.8}), ranked("dense", {"b": 0.9, "a": 0.1})
        alone = {"lexical": 1.0, "dense": 0.0}
        assert standings([words, meaning], alone)("a") == standings([words], alone)("a")
        assert told("b", words, meaning, weights=alone) == 0.0

    def test_a_leg_that_did_not_answer_holds_nothing_against_anybody(self) -> None:
        words = ranked("lexical", {"a": 0.8})
        assert standings([words, Ranking("dense")], EVEN)("a") == standings([words], EVEN)("a")

    def test_the_silence_of_a_seeded_leg_says_nothing(self) -> None:
        words, walk = ranked("lexical", {"a": 0.8}), ranked("graph", {"z": 0.7})
        assert standings([words, walk], EVEN)("a") == standings([words], EVEN)("a")
        assert standings([words, walk], EVEN)("z").way == pytest.approx(0.7)
        assert told("z", words, walk) > 0.0

    def test_no_ranking_at_all(self) -> None:
        assert standings([], EVEN)("a") == Standing()


class TestProbability:
    def test_by_hand(self) -> None:
        odds = (
            relevance.INTERCEPT
            + 0.5 * relevance.STRENGTH
            + 0.75 * relevance.HEIGHT
            - 0.25 * relevance.LEAD
            + 0.1 * relevance.WAY
        )
        assert probability(Standing(0.5, 0.75, -0.25, 0.1)) == pytest.approx(1 / (1 + exp(-odds)))

    def test_what_no_leg_has_a_word_for_is_no_answer(self) -> None:
        assert probability(Standing(0.0, 0.0, -1.0)) == 0.0
        assert told("nobody", ranked("lexical", {"a": 0.8})) == 0.0

    def test_a_lone_weak_match_is_low_and_a_perfect_one_high(self) -> None:
        assert told("a", ranked("lexical", {"a": 0.05})) < 0.3
        assert told("a", ranked("lexical", {"a": 1.0}), ranked("dense", {"a": 1.0})) > 0.9

    def test_one_among_equals_is_lower_than_one_that_stands_out(self) -> None:
        many = ranked("lexical", {f"n{at}": 0.6 for at in range(5)} | {"a": 0.6})
        assert told("a", many) < told("a", ranked("lexical", {"a": 0.6}))


strengths = st.dictionaries(st.sampled_from([f"n{at}" for at in range(14)] + ["a"]), st.floats(0, 1), max_size=15)


@given(words=strengths, meaning=strengths, walk=strengths, weight=st.floats(0.01, 5))
def test_it_is_a_probability(
    words: dict[str, float], meaning: dict[str, float], walk: dict[str, float], weight: float
) -> None:
    rankings = [ranked("lexical", words), ranked("dense", meaning), ranked("graph", walk)]
    of = standings(rankings, {**EVEN, "dense": weight})
    for key in {*words, *meaning, *walk, "nobody"}:
        standing = of(key)
        assert 0.0 <= probability(standing) < 1.0
        assert 0.0 <= standing.strength <= 1.0 + 1e-9
        assert -1e-9 <= standing.height <= 1.0 + 1e-9
        assert -1.0 - 1e-9 <= standing.lead <= standing.height + 1e-9


@given(words=strengths, meaning=strengths, walk=strengths, more=st.floats(0, 1), leg=st.sampled_from(list(EVEN)))
def test_a_stronger_match_is_never_less_relevant(
    words: dict[str, float], meaning: dict[str, float], walk: dict[str, float], more: float, leg: str
) -> None:
    found = {"lexical": words, "dense": meaning, "graph": walk}
    if "a" not in found[leg]:  # to be found by one leg more is another matter: that leg has a say from then on
        found[leg] = {**found[leg], "a": 0.0}
    stronger = {**found, leg: {**found[leg], "a": max(found[leg]["a"], more)}}
    before = told("a", *(ranked(*item) for item in found.items()))
    assert told("a", *(ranked(*item) for item in stronger.items())) >= before - 1e-9


@pytest.fixture(scope="module")
def memory() -> Iterator[trivet.Engine]:
    things = ("kettle", "heron", "gate", "ladder", "lamp")
    with trivet.open(":memory:", embedder="hashing:64") as memory:
        memory.add([{"id": f"d{n:02}", "text": f"the {things[n % 5]} by the {things[n % 3]}, {n}"} for n in range(40)])
        memory.wait()
        yield memory


class TestInASearch:
    def relevances(self, memory: trivet.Engine, **how: object) -> dict[str, float]:
        return {hit.id: hit.relevance for hit in memory.search("kettle by the lamp", **how)}

    def test_it_does_not_depend_on_the_fusion_nor_on_rerankers(self, memory: trivet.Engine) -> None:
        usual = self.relevances(memory, k=40, rerankers=[])
        assert len(usual) == 40
        assert len(set(usual.values())) > 5
        for how in ({"fusion": "rrf"}, {"fusion": "isr"}, {"normalize": "minmax"}, {"rerankers": ["learned"]}):
            changed = self.relevances(memory, **{"k": 40, "rerankers": [], **how})
            assert changed == pytest.approx(usual), how

    def test_nor_on_the_page(self, memory: trivet.Engine) -> None:
        whole = self.relevances(memory, k=40)
        paged = {}
        for offset in range(0, 40, 10):
            paged |= self.relevances(memory, k=10, offset=offset)
        assert paged == pytest.approx(whole)

    def test_a_threshold_works_on_it(self, memory: trivet.Engine) -> None:
        whole = self.relevances(memory, k=40)
        middle = sorted(whole.values())[20]
        kept = self.relevances(memory, k=40, min_relevance=middle)
        assert kept == pytest.approx({id: value for id, value in whole.items() if value >= middle})


def test_the_numbers_are_those_that_were_measured() -> None:
    """`make calibration` writes the file: what ships is what it fitted, and it holds on topics it has not seen."""
    (file,) = RESULTS.glob("calibration-*.json")
    fitted = json.loads(file.read_text(encoding="utf-8"))
    assert fitted["line"] == {name: getattr(relevance, name) for name in fitted["line"]}
    assert {"INTERCEPT", "STRENGTH", "HEIGHT", "LEAD", "WAY"} == set(fitted["line"])
    assert fitted["judged"]["calibration_error"] < 0.03
    assert fitted["judged"]["log_loss"] < fitted["judged"]["log_loss_of_the_mean"]
