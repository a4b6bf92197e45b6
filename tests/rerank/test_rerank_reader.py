"""The reader reorders what it has read, keeps the others behind, and steps aside where it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank import Tools
from trivet.rerank.reader import ELSEWHERE, PATIENCE, Reader, enough, mix, shown
from trivet.types import Document, Hit, Query

MakeHit = Callable[..., Hit]
QUERY = Query("where is the key")
finite = st.floats(-11, 11)


class Given:
    """Scores by the last word of the passage; a batch with the word "late" is never done."""

    id, batch = "given", 2

    def __init__(self, scores: dict[str, float], error: Exception | None = None) -> None:
        self.scores, self.error, self.texts = scores, error, list[str]()

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        return [None] * len(passages)

    def open(self) -> Future[None]:
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
        self.texts += passages
        future: Future[list[float]] = Future()
        if self.error is not None:
            future.set_exception(self.error)
        elif not any("late" in text for text in passages):
            future.set_result([self.scores[text.split()[-1]] for text in passages])
        return future


@pytest.fixture
def hits(hit: MakeHit) -> list[Hit]:
    """a to e, fused at 1.0 to 0.2, each with its name as its text."""
    return [hit(name, 1.0 - 0.2 * place, rank=place + 1, text=name) for place, name in enumerate("abcde")]


def test_a_passage_that_answers_comes_first(hits: list[Hit]) -> None:
    scorer = Given({"a": -8.0, "b": -9.0, "c": 6.0, "d": -7.0, "e": -8.0})
    done = Reader(weight_others=1.0).apply(hits, QUERY, Tools(reader=scorer))
    assert done.hits[0].id == "c"
    assert done.hits[0].adjustments[-1].reason == "logit +6.0"
    assert done.read == {"a": -8.0, "b": -9.0, "c": 6.0, "d": -7.0, "e": -8.0}
    assert {hit.score for hit in done.hits} >= {1.0, hits[-1].score}  # the scale stays


def test_among_talk_the_reader_counts_more(hits: list[Hit]) -> None:
    reads = {"a": -9.0, "b": -1.0, "c": -9.0, "d": -9.0, "e": -9.0}
    turns = [replace(hit, document=replace(hit.document, meta={"session": 1, "speaker": "Ann"})) for hit in hits]
    assert Reader().apply(hits, QUERY, Tools(reader=Given(reads))).hits[0].id == "a"
    assert Reader().apply(turns, QUERY, Tools(reader=Given(reads))).hits[0].id == "b"


def test_what_an_assistant_wrote_counts_in_part(hits: list[Hit]) -> None:
    """Of two turns that read alike, the one of the person gains more; b and d are 0.4 apart before."""
    reads = {"a": -9.0, "b": 3.0, "c": -9.0, "d": 3.0, "e": -9.0}
    speakers = ("user", "assistant", "user", "user", "user")
    turns = [
        replace(hit, document=replace(hit.document, meta={"session": 1, "speaker": speaker}))
        for hit, speaker in zip(hits, speakers, strict=True)
    ]
    assert [hit.id for hit in Reader().apply(turns, QUERY, Tools(reader=Given(reads))).hits[:2]] == ["d", "b"]
    whole = Reader(assistants=1.0).apply(turns, QUERY, Tools(reader=Given(reads)))
    assert [hit.id for hit in whole.hits[:2]] == ["b", "d"]


def test_of_passages_about_something_else_the_order_stays(hits: list[Hit]) -> None:
    reads = {"a": -10.0, "b": -6.0, "c": -9.0, "d": -7.0, "e": -8.0}
    assert [hit.id for hit in Reader().apply(hits, QUERY, Tools(reader=Given(reads))).hits] == list("abcde")


def test_the_order_stays_where_all_read_alike(hits: list[Hit]) -> None:
    done = Reader().apply(hits, QUERY, Tools(reader=Given(dict.fromkeys("abcde", -8.0))))
    assert [hit.id for hit in done.hits] == list("abcde")


def test_hits_that_are_not_read_stay_behind(hits: list[Hit]) -> None:
    done = Reader(most_others=2, weight_others=1.0).apply(hits, QUERY, Tools(reader=Given({"a": -9.0, "b": 5.0})))
    assert [hit.id for hit in done.hits] == ["b", "a", "c", "d", "e"]
    assert not done.degraded


def test_reading_ends_after_hits_about_something_else(hit: MakeHit) -> None:
    names = [f"n{place}" for place in range(20)]
    many = [hit(name, 1.0 - place / 100, rank=place + 1, text=name) for place, name in enumerate(names)]
    scorer = Given({**dict.fromkeys(names, ELSEWHERE - 1), "n0": 4.0})
    done = Reader().apply(many, QUERY, Tools(reader=scorer))
    assert len(scorer.texts) == PATIENCE + 2  # batches of two
    assert done.hits[0].id == "n0"


def test_the_time_limit_is_named(hits: list[Hit]) -> None:
    late = [*hits[:2], *(replace(hit, passage=replace(hit.passage, text="late")) for hit in hits[2:])]
    done = Reader(budget_ms=20, weight_others=1.0).apply(late, QUERY, Tools(reader=Given({"a": -9.0, "b": 5.0})))
    assert [hit.id for hit in done.hits] == ["b", "a", "c", "d", "e"]
    assert "from hit 3 on the fused order is kept: the time limit of 20 ms is over" in done.degraded[0].reason


def test_a_failure_keeps_the_order(hits: list[Hit]) -> None:
    done = Reader().apply(hits, QUERY, Tools(reader=Given({}, MemoryError("no memory"))))
    assert [hit.id for hit in done.hits] == list("abcde")
    assert done.degraded[0].reason == "the fused order is kept: no memory"


@pytest.mark.parametrize(
    ("text", "language", "reason"),
    [("钥匙在哪里", "en", "another script"), ("wo ist der Schlüssel", "de", "the collection's language is 'de'")],
)
def test_it_steps_aside_for_what_it_cannot_read(hits: list[Hit], text: str, language: str, reason: str) -> None:
    done = Reader().apply(hits, Query(text), Tools(reader=Given({}), language=language))
    assert [hit.id for hit in done.hits] == list("abcde")
    assert reason in done.degraded[0].reason


def test_without_a_reader_the_order_is_kept_and_said_so(hits: list[Hit]) -> None:
    assert "no reader" in Reader().apply(hits, QUERY, Tools()).degraded[0].reason


def test_nothing_to_read_is_no_failure(hits: list[Hit]) -> None:
    assert Reader().apply([], QUERY, Tools()).hits == []
    assert not Reader().apply(hits, Query(" "), Tools()).degraded


def test_a_turn_is_shown_with_its_date_and_the_turn_before(hit: MakeHit) -> None:
    meta = {"session": "s1", "speaker": "Ben", "timestamp": "2023-05-08T10:00:00Z"}
    turn = replace(hit("t2", 1.0, text="In Lund."), document=Document("t2", "In Lund.", meta=meta))
    tools = Tools(before=lambda turns: {"t2": "Ann: Where was it?"})
    assert shown([turn], QUERY, tools, 600) == ["8 May 2023\nAnn: Where was it?\nBen: In Lund."]


def test_a_long_passage_is_shown_by_its_best_window_under_its_title(hit: MakeHit) -> None:
    text = "Nothing of it here. " * 40 + "The key is in the drawer. " + "Nothing of it here. " * 40
    long = replace(hit("n", 1.0, text=text), document=Document("n", text, title="Keys"))
    (seen,) = shown([long], QUERY, Tools(), 100)
    assert seen.startswith("Keys\n")
    assert "The key is in the drawer." in seen
    assert len(seen) < 120


@given(st.lists(st.tuples(st.floats(-3, 3), finite), min_size=1, max_size=12), st.floats(0, 5))
def test_better_by_both_stays_ahead_and_the_scale_is_kept(rows: list[tuple[float, float]], weight: float) -> None:
    scores, read = zip(*rows, strict=True)
    mixed = mix(scores, [weight * logit for logit in read], 0.7)
    for one, (score, logit) in zip(mixed, rows, strict=True):
        for other, (lower, less) in zip(mixed, rows, strict=True):
            assert not (score > lower and logit > less) or one >= other
    assert min(mixed) == pytest.approx(min(scores), abs=1e-9)
    assert max(mixed) <= max(max(scores), min(scores) + 1.0) + 1e-9


@given(st.lists(finite, max_size=30))
def test_reading_never_ends_while_one_of_the_last_may_answer(read: list[float]) -> None:
    if any(score >= ELSEWHERE for score in read[-PATIENCE:]):
        assert not enough(read)
