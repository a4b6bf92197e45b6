"""Feedback is recorded, read and deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.engine.validation import MAX_QUERY
from trivet.errors import InputError, NotFoundError
from trivet.types import Feedback

Open = Callable[..., Engine]
SAID: dict[str, Any] = {"query": "q", "id": "a", "good": True, "at": "2026-03-01T12:00:00Z"}


@pytest.fixture
def memory(words: Engine) -> Engine:
    words.add([{"id": "a", "text": "a red fox"}, {"id": "b", "text": "a grey heron"}])
    return words


def verdicts(memory: Engine) -> list[tuple[str, str, bool]]:
    return [(given.query, given.id, given.good) for given in memory.feedbacks()]


class TestFeedback:
    def test_what_a_search_found_can_be_judged(self, memory: Engine) -> None:
        results = memory.search("grey bird")
        before = datetime.now(UTC)
        given = memory.feedback(results.query, results[0].id)
        assert (given.query, given.id, given.good) == ("grey bird", "b", True)
        assert before <= given.at <= datetime.now(UTC)
        assert memory.feedbacks() == [given]

    def test_bad_is_said_by_name_or_place(self, memory: Engine) -> None:
        memory.feedback("q", "a", good=False)
        memory.feedback("q", "b", False)
        assert verdicts(memory) == [("q", "a", False), ("q", "b", False)]

    def test_it_is_a_frozen_noun_of_the_package(self, memory: Engine) -> None:
        given = memory.feedback("q", "a")
        assert isinstance(given, trivet.Feedback)
        with pytest.raises(FrozenInstanceError):
            given.good = False  # type: ignore[misc]

    def test_a_later_verdict_replaces_the_earlier_and_moves_to_the_end(self, memory: Engine) -> None:
        memory.feedback("q", "a")
        memory.feedback("q", "b")
        memory.feedback("q", "a", good=False)
        assert verdicts(memory) == [("q", "b", True), ("q", "a", False)]

    def test_it_is_there_when_the_store_is_opened_again(self, open_store: Open) -> None:
        first = open_store()
        first.add("fox", id="a")
        given = first.feedback("q", "a")
        first.close()
        assert open_store().feedbacks() == [given]

    def test_collections_do_not_see_each_others(self, memory: Engine) -> None:
        other = memory.collection("other", embedder="none")
        other.add("fox", id="a")
        memory.feedback("q", "a")
        assert other.feedbacks() == []
        assert other.forget_feedback() == 0
        assert len(memory.feedbacks()) == 1

    def test_a_search_is_as_before(self, memory: Engine) -> None:
        before = [(hit.id, hit.score, hit.relevance) for hit in memory.search("grey fox")]
        memory.feedback("grey fox", "a", good=False)
        assert [(hit.id, hit.score, hit.relevance) for hit in memory.search("grey fox")] == before


class TestTheSameQuestion:
    def test_half_a_character_is_cleaned_as_search_cleans_it(self, memory: Engine) -> None:
        memory.feedback("fox \ud800", "a")
        memory.feedback("fox \ufffd", "a", good=False)
        assert verdicts(memory) == [("fox \ufffd", "a", False)]
        assert memory.forget_feedback("fox \ud800") == 1

    def test_what_search_does_not_read_does_not_count(self, memory: Engine) -> None:
        long = "fox " + "x" * MAX_QUERY
        given = memory.feedback(long, "a")
        memory.feedback(long + " and more", "a", good=False)
        assert verdicts(memory) == [(long[:MAX_QUERY], "a", False)]
        assert given.query == long[:MAX_QUERY]
        assert memory.forget_feedback(long) == 1

    def test_case_and_blanks_are_the_callers(self, memory: Engine) -> None:
        for query in ("Fox", "fox", "fox "):
            memory.feedback(query, "a")
        assert len(memory.feedbacks()) == 3


class TestForget:
    def test_of_one_of_a_question_of_a_document_and_all(self, memory: Engine) -> None:
        for query in ("p", "q", "r"):
            for id in ("a", "b"):
                memory.feedback(query, id)
        assert memory.forget_feedback("p", "a") == 1
        assert memory.forget_feedback("p", "a") == 0
        assert memory.forget_feedback(query="q") == 2
        assert memory.forget_feedback(id="b") == 2
        assert verdicts(memory) == [("r", "a", True)]
        assert memory.forget_feedback() == 1
        assert memory.feedbacks() == []

    def test_of_a_document_that_is_gone(self, memory: Engine) -> None:
        memory.feedback("q", "a")
        memory.delete("a")
        assert verdicts(memory) == [("q", "a", True)]
        assert memory.forget_feedback(id="a") == 1


class TestRestore:
    def test_with_its_time_and_whatever_its_id(self, memory: Engine) -> None:
        moment = datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        given = Feedback("q", "not here yet", False, moment)
        assert memory.restore_feedback([given, SAID]) == 2
        assert memory.feedbacks() == [given, Feedback("q", "a", True, datetime(2026, 3, 1, 12, tzinfo=UTC))]
        assert memory.restore_feedback(iter([given])) == 0

    def test_what_was_said_here_later_stays(self, memory: Engine) -> None:
        memory.feedback("q", "a", good=False)
        assert memory.restore_feedback([SAID]) == 0
        assert verdicts(memory) == [("q", "a", False)]

    def test_without_a_time_it_is_said_now(self, memory: Engine) -> None:
        before = datetime.now(UTC)
        memory.restore_feedback([{"query": "q", "id": "a", "good": True}])
        assert before <= memory.feedbacks()[0].at <= datetime.now(UTC)

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ("text", "feedback 1: str is not a mapping or a Feedback"),
            ({**SAID, "colour": 1}, "feedback 1: unknown field 'colour'; known: query, id, good, at"),
            ({**SAID, "query": " "}, "feedback 1: query: it is empty"),
            ({"id": "a", "good": True}, "feedback 1: query: NoneType is not text"),
            ({**SAID, "id": 7}, "feedback 1: id: 7 is not an id"),
            ({"query": "q", "id": "a"}, "feedback 1: good: None is not True"),
            ({**SAID, "good": 1}, "feedback 1: good: 1 is not True"),
            ({**SAID, "at": "yesterday"}, "feedback 1: at: 'yesterday'"),
            ({**SAID, "at": [1]}, "feedback 1: at: "),
        ],
    )
    def test_one_that_is_wrong_is_named_and_nothing_is_kept(self, memory: Engine, wrong: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            memory.restore_feedback([SAID, wrong])
        assert memory.feedbacks() == []


def test_an_id_that_is_not_here_says_the_way_out(memory: Engine) -> None:
    with pytest.raises(
        NotFoundError, match=r"document 'nope' not found in collection 'default'; give the id that a search shows"
    ):
        memory.feedback("q", "nope")
    assert memory.feedbacks() == []
