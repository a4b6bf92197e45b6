"""Is the evidence what it is said to be, number by number?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank.evidence import ASSISTANTS, NEAR, OTHERS, REACH, Evidence, evidence, session_of
from trivet.types import Contribution, Hit

MakeHit = Callable[..., Hit]


def terms(text: str) -> list[str]:
    return [word.strip(".,?!") for word in text.lower().split()]


def gathered(hits: list[Hit], asked: str = "", **order: int) -> list[Evidence]:
    return evidence(hits, asked, terms(asked), terms, order)


def rarity(count: int, among: int) -> float:
    return log(1 + (among - count + 0.5) / (count + 0.5))


class TestWords:
    def test_rare_ones_count_more_and_the_best_holds_one(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="red kettle"), hit("b", 0.9, text="red gate"), hit("c", 0.8, text="green gate")]
        red, kettle = rarity(2, 3), rarity(1, 3)
        assert kettle > red
        assert [item.words for item in gathered(hits, "red kettle")] == pytest.approx([1.0, red / (red + kettle), 0.0])

    def test_a_title_is_read_too(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="it boils", title="Kettle"), hit("b", 0.9, text="it leans")]
        assert [item.words for item in gathered(hits, "kettle")] == [1.0, 0.0]

    def test_it_is_the_passage_that_is_read_not_the_whole_document(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="kettle. gate.", passage="gate."), hit("b", 0.9, text="kettle")]
        assert [item.words for item in gathered(hits, "kettle")] == [0.0, 1.0]

    def test_none_of_them_has_any(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="one"), hit("b", 0.9, text="other")]
        assert gathered(hits, "kettle") == [Evidence(), Evidence()]

    def test_a_question_without_words(self, hit: MakeHit) -> None:
        assert gathered([hit("a", 1.0), hit("b", 0.5)], "") == [Evidence(), Evidence()]


class TestRuns:
    def test_neighbours_of_the_question_that_stand_together_above_the_mean(self, hit: MakeHit) -> None:
        hits = [
            hit("both", 1.0, text="broken garden gate"),  # two of two pairs
            hit("one", 0.9, text="broken garden and then the gate"),  # one of two: the gate is too far
            hit("none", 0.8, text="gate garden broken"),  # the wrong way round
        ]
        assert [item.runs for item in gathered(hits, "broken garden gate")] == pytest.approx([0.5, 0.0, -0.5])

    @pytest.mark.parametrize(("between", "together"), [(0, True), (NEAR - 1, True), (NEAR, False)])
    def test_how_near_is_near(self, hit: MakeHit, between: int, together: bool) -> None:
        text = " ".join(["broken", *["then"] * between, "gate"])
        hits = [hit("a", 1.0, text=text), hit("b", 0.9, text="neither")]
        assert [item.runs for item in gathered(hits, "broken gate")] == ([0.5, -0.5] if together else [0.0, 0.0])

    def test_one_word_has_nothing_to_stand_beside(self, hit: MakeHit) -> None:
        assert {item.runs for item in gathered([hit("a", 1.0, text="gate"), hit("b", 0.9)], "gate")} == {0.0}


class TestNames:
    def test_capitalised_words_but_the_first(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="melanie paints"), hit("b", 0.9, text="what john paints")]
        assert [item.names for item in gathered(hits, "What does Melanie paint")] == [0.5, -0.5]

    def test_a_question_that_names_nobody(self, hit: MakeHit) -> None:
        assert {item.names for item in gathered([hit("a", 1.0, text="what"), hit("b", 0.9)], "What is it")} == {0.0}


class TestCompany:
    SESSION = {"meta": {"session": "s1"}}  # noqa: RUF012

    def test_the_turn_beside_a_good_one(self, hit: MakeHit) -> None:
        hits = [hit("best", 3.0, **self.SESSION), hit("far", 2.0, **self.SESSION), hit("next", 1.0, **self.SESSION)]
        found = gathered(hits, "", best=10, next=11, far=11 + REACH + 1)
        assert [item.neighbour for item in found] == [0.0, 0.0, 1.0]  # beside the worst, apart, beside the best

    def test_a_session_is_spoken_for_by_its_best_others(self, hit: MakeHit) -> None:
        hits = [hit(f"h{at}", 4.0 - at, **self.SESSION) for at in range(5)]  # worth 1, .75, .5, .25, 0
        found = [item.session for item in gathered(hits)]
        assert OTHERS == 3
        assert found == pytest.approx([(0.75 + 0.5 + 0.25) / 3, 1.75 / 3, 2.0 / 3, 2.25 / 3, 2.25 / 3])

    def test_a_few_others_speak_with_less(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, **self.SESSION), hit("b", 0.0, **self.SESSION)]
        assert [item.session for item in gathered(hits)] == pytest.approx([0.0, 1 / 3])

    def test_another_session_or_none_is_no_company(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, **self.SESSION), hit("b", 0.5, meta={"session": "s2"}), hit("c", 0.0)]
        assert gathered(hits, "", a=1, b=2, c=3) == [Evidence()] * 3

    def test_what_was_added_when_nobody_knows_is_beside_nothing(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, **self.SESSION), hit("b", 0.0, **self.SESSION)]
        assert [item.neighbour for item in gathered(hits)] == [0.0, 0.0]
        assert [item.neighbour for item in gathered(hits, "", a=1)] == [0.0, 0.0]

    def test_scores_that_are_all_alike(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, **self.SESSION), hit("b", 1.0, **self.SESSION)]
        assert gathered(hits, "", a=1, b=2) == [Evidence(), Evidence()]

    def test_which_conversation(self) -> None:
        assert session_of({"topic": "tea", "user": "anna"}) == ()
        assert session_of({"thread_id": 7, "user": "anna"}) != session_of({"thread_id": 7, "user": "ben"})
        assert session_of({"thread_id": 7, "topic": "tea"}) == session_of({"topic": "rent", "thread_id": "7"})


class TestConnected:
    def test_by_the_clearest_way_there_is(self, hit: MakeHit) -> None:
        def reached(id: str, raw: float) -> Hit:
            return replace(hit(id, 1.0), contributions=(Contribution("graph", 1, raw, 1.0, 0.4, 0.4),))

        found = gathered([reached("a", 0.2), hit("b", 1.0), reached("c", 0.8)])
        assert [item.connected for item in found] == [0.25, 0.0, 1.0]


class TestTime:
    @pytest.mark.parametrize(
        ("asked", "said", "dated"),
        [
            ("when did she leave", "she left last Friday", 1.0),
            ("What year was it?", "it was 2019", 1.0),
            ("Wann ging sie?", "sie ging gestern", 1.0),
            ("她什么时候走的", "昨天走的", 1.0),
            ("when did she leave", "she left the house", 0.0),
            ("why did she leave", "she left last Friday", 0.0),
            ("whenever she left", "she left last Friday", 0.0),
        ],
    )
    def test_asked_when_and_told_a_time(self, hit: MakeHit, asked: str, said: str, dated: float) -> None:
        assert gathered([hit("a", 1.0, text=said), hit("b", 0.5)], asked)[0].dated == dated


class TestSpeaker:
    @pytest.mark.parametrize("meta", [{"role": "assistant"}, {"speaker": "AI"}, {"role": "user", "speaker": "bot"}])
    def test_said_by_an_assistant(self, hit: MakeHit, meta: dict[str, str]) -> None:
        hits = [hit("a", 1.0, meta=meta), hit("b", 0.5, meta={"role": "user"})]
        assert [item.assistant for item in gathered(hits, "what is tea")] == [1.0, 0.0]
        assert [item.addressed for item in gathered(hits, "what is tea")] == [0.0, 0.0]
        assert [item.addressed for item in gathered(hits, "what did you say of tea")] == [1.0, 0.0]

    def test_a_word_within_a_word_is_nobody(self, hit: MakeHit) -> None:
        assert gathered([hit("a", 1.0, meta={"role": "assistant"})], "youth bayou")[0].addressed == 0.0
        assert "model" in ASSISTANTS


def test_no_hits() -> None:
    assert evidence([], "anything", ["anything"], terms, {}) == []


texts = st.lists(st.sampled_from(["red", "Kettle", "gate", "yesterday", "you", "2019"]), max_size=6).map(" ".join)
metas = st.fixed_dictionaries(
    {}, optional={"session": st.integers(1, 2), "role": st.sampled_from(["user", "assistant"])}
)


@given(
    made=st.lists(st.tuples(st.floats(-2, 2), texts, texts, metas), max_size=25),
    asked=texts,
    order=st.dictionaries(st.integers(0, 24).map(str), st.integers(1, 60)),
)
def test_every_number_is_of_the_order_of_one(
    hit: MakeHit,
    made: list[tuple[float, str, str, dict[str, object]]],
    asked: str,
    order: dict[str, int],
) -> None:
    scored = sorted(made, key=lambda item: -item[0])
    hits = [
        hit(str(at), score, text=text or "-", title=title, meta=meta)
        for at, (score, text, title, meta) in enumerate(scored)
    ]
    found = evidence(hits, asked, terms(asked), terms, order)
    assert len(found) == len(hits)
    for item in found:
        assert all(-1.0 <= value <= 1.0 + 1e-9 for value in item)
        assert min(item.words, item.neighbour, item.session, item.dated, item.assistant) >= 0.0
        assert item.addressed <= item.assistant
