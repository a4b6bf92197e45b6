"""Feedback becomes a dataset."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.evaluate.feedback import FEWEST, from_feedback
from trivet.evaluate.lab import Lab
from trivet.evaluate.space import Space
from trivet.evaluate.tuning import tune
from trivet.profile import Profile

pytest.importorskip("ir_measures")
pytest.importorskip("scipy.stats")


@pytest.fixture
def memory(words: Engine) -> Engine:
    """Ten birds; of the first six somebody said which is right."""
    words.add([{"id": f"bird{n}", "text": f"a bird of kind{n}"} for n in range(10)])
    for n in range(6):
        words.feedback(f"which is kind{n}?", f"bird{n}")
    return words


def grades(memory: Engine) -> dict[str, dict[str, int]]:
    """Question → document → grade."""
    found = from_feedback(memory)
    return {topic.text: dict(found.qrels[topic.id]) for topic in found.topics}


class TestFromFeedback:
    def test_good_is_1_and_bad_is_0(self, memory: Engine) -> None:
        memory.feedback("which is kind0?", "bird7", good=False)
        found = grades(memory)
        assert found["which is kind0?"] == {"bird0": 1, "bird7": 0}
        assert len(found) == 6

    def test_what_it_is_called(self, memory: Engine) -> None:
        found = from_feedback(memory)
        assert (found.name, found.split) == ("feedback", "feedback")
        assert found.documents == ()
        assert found.notes == ()
        assert all(topic.where is None for topic in found.topics)
        assert found.qrels.keys() == {topic.id for topic in found.topics}

    def test_the_latest_verdict_counts(self, memory: Engine) -> None:
        memory.feedback("which is kind5?", "bird4")
        memory.feedback("which is kind5?", "bird5", good=False)
        assert grades(memory)["which is kind5?"] == {"bird4": 1, "bird5": 0}

    def test_what_is_gone_is_passed_over_and_counted(self, memory: Engine) -> None:
        memory.feedback("which is kind1?", "bird9", good=False)
        memory.delete("bird9")
        found = from_feedback(memory)
        assert grades(memory)["which is kind1?"] == {"bird1": 1}
        assert found.notes == ("judgements of deleted documents, left out: 1 of 7",)

    def test_a_question_with_nothing_good_is_not_asked_and_counted(self, memory: Engine) -> None:
        memory.feedback("which is no bird?", "bird0", good=False)
        memory.delete("bird3")
        found = from_feedback(memory)
        assert {topic.text for topic in found.topics} == {f"which is kind{n}?" for n in (0, 1, 2, 4, 5)}
        assert found.notes[1] == "queries without a document judged good, left out: 2 of 7"

    def test_a_topic_keeps_its_id_when_more_is_said(self, memory: Engine) -> None:
        before = from_feedback(memory)
        memory.feedback("another", "bird8")
        after = from_feedback(memory)
        assert {topic.id for topic in before.topics} < {topic.id for topic in after.topics}
        assert before.identity != after.identity

    def test_the_same_verdicts_have_the_same_identity(self, memory: Engine) -> None:
        before = from_feedback(memory).identity
        memory.feedback("which is kind0?", "bird0")  # said again: it moves to the end
        assert from_feedback(memory).identity == before

    @pytest.mark.parametrize("said", range(FEWEST))
    def test_too_few_are_refused_and_the_way_out_is_named(self, words: Engine, said: int) -> None:
        words.add([{"id": f"d{n}", "text": f"text {n}"} for n in range(5)])
        for n in range(said):
            words.feedback(f"question {n}", f"d{n}")
        with pytest.raises(InputError, match=f"feedback: {said} .*; learning needs at least 5; .*`trivet feedback"):
            from_feedback(words)

    def test_enough_that_are_gone_are_too_few_and_it_says_why(self, memory: Engine) -> None:
        memory.delete([f"bird{n}" for n in range(3)])
        with pytest.raises(InputError, match=r"feedback: 3 queries have .*deleted documents, left out: 3 of 6"):
            from_feedback(memory)


def test_from_what_was_said_to_the_settings_in_use(taught: Callable[..., object]) -> None:
    """End to end: people keep saying that the hit by meaning was right and the one by words was not."""
    count = 36
    model = taught(*(f"meaning{n}" for n in range(count)))
    start = Profile(name="wordy", normalize="minmax").with_changes({"alpha": 0.1})
    with trivet.open(":memory:", embedder=model) as memory:  # type: ignore[arg-type]
        memory.add([{"id": f"right{n}", "text": f"meaning{n}"} for n in range(count)])
        memory.add([{"id": f"wrong{n}", "text": f"word{n} next{n} after{n}"} for n in range(count)])
        memory.wait()
        for n in range(count):
            asked = memory.search(f"word{n} next{n} after{n} meaning{n}", profile=start)
            assert asked[0].id == f"wrong{n}"
            memory.feedback(asked.query, f"right{n}")
            memory.feedback(asked.query, asked[0].id, good=False)
        with Lab(from_feedback(memory), memory) as lab:
            found = tune(lab, start, space=Space(({"alpha": (0.3, 0.5, 0.7, 0.9)},)))
        assert found.changed
        assert found.dataset.startswith("feedback/feedback#")
        memory.update_settings(found.profile)  # the lab left the caller's engine open
        assert memory.search("word3 next3 after3 meaning3")[0].id == "right3"
        assert memory.settings.name == "tuned"
