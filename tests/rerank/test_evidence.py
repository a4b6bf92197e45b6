"""Each feature of a hit, computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank.learned import NEAR, Evidence, evidence, session_of
from trivet.text.conversation import ASSISTANTS
from trivet.types import Hit

MakeHit = Callable[..., Hit]


def terms(text: str) -> list[str]:
    return [word.strip(".,?!") for word in text.lower().split()]


def gathered(hits: list[Hit], asked: str = "") -> list[Evidence]:
    return evidence(hits, terms(asked), terms)


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


def test_which_conversation() -> None:
    assert session_of({"topic": "tea", "user": "anna"}) == ()
    assert session_of({"thread_id": 7, "user": "anna"}) != session_of({"thread_id": 7, "user": "ben"})
    assert session_of({"thread_id": 7, "topic": "tea"}) == session_of({"topic": "rent", "thread_id": "7"})


class TestSpeaker:
    @pytest.mark.parametrize("meta", [{"role": "assistant"}, {"speaker": "AI"}, {"role": "user", "speaker": "bot"}])
    def test_said_by_an_assistant(self, hit: MakeHit, meta: dict[str, str]) -> None:
        hits = [hit("a", 1.0, meta=meta), hit("b", 0.5, meta={"role": "user"})]
        assert [item.assistant for item in gathered(hits, "what is tea")] == [1.0, 0.0]
        assert "model" in ASSISTANTS


def test_no_hits() -> None:
    assert evidence([], ["anything"], terms) == []


def test_the_wording_can_be_left_out(hit: MakeHit) -> None:
    hits = [hit("a", 1.0, text="red kettle", meta={"role": "assistant"}), hit("b", 0.5, text="gate")]
    assert evidence(hits, ["red"], terms, wording=False) == [Evidence(assistant=1.0), Evidence()]


texts = st.lists(st.sampled_from(["red", "Kettle", "gate", "yesterday", "you", "2019"]), max_size=6).map(" ".join)
metas = st.fixed_dictionaries(
    {}, optional={"session": st.integers(1, 2), "role": st.sampled_from(["user", "assistant"])}
)


@given(
    made=st.lists(st.tuples(st.floats(-2, 2), texts, texts, metas), max_size=25),
    asked=texts,
)
def test_every_number_is_of_the_order_of_one(
    hit: MakeHit,
    made: list[tuple[float, str, str, dict[str, object]]],
    asked: str,
) -> None:
    scored = sorted(made, key=lambda item: -item[0])
    hits = [
        hit(str(at), score, text=text or "-", title=title, meta=meta)
        for at, (score, text, title, meta) in enumerate(scored)
    ]
    found = evidence(hits, terms(asked), terms)
    assert len(found) == len(hits)
    for item in found:
        assert all(-1.0 <= value <= 1.0 + 1e-9 for value in item)
        assert min(item.words, item.assistant) >= 0.0
