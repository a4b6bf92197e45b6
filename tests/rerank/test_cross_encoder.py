from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trivet.rerank import Tools
from trivet.rerank.cross_encoder import NO_SCORER, CrossEncoder, blend, lead
from trivet.types import Hit, Query

MakeHit = Callable[..., Hit]
QUERY = Query("what is asked")


class Told:
    """A scorer that says what it is told to, by the passage; ``late`` ones never answer."""

    id = "told"

    def __init__(self, scores: dict[str, float], batch: int = 2, late: Sequence[str] = (), known: Sequence[str] = ()):
        self.given, self.batch, self.late, self.remembered = scores, batch, late, known
        self.asked: list[list[str]] = []
        self.fail: Exception | None = None
        self.closed: str | None = None  # what opening it says; nothing: it takes forever

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        return [self.given[text] if text in self.remembered else None for text in passages]

    def open(self) -> Future[None]:
        future: Future[None] = Future()
        if self.closed is None:
            future.set_result(None)
        elif self.closed:
            future.set_exception(RuntimeError(self.closed))
        return future

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
        self.asked.append(list(passages))
        future: Future[list[float]] = Future()
        if self.fail is not None:
            future.set_exception(self.fail)
        elif not set(passages) & set(self.late):
            future.set_result([self.given[text] for text in passages])
        else:
            future.set_running_or_notify_cancel()
        return future


@pytest.fixture
def hits(hit: MakeHit) -> list[Hit]:
    """a to e, fused at 1.0 to 0.2, each with its name as its text."""
    return [hit(name, 1.0 - 0.2 * place, rank=place + 1, text=name) for place, name in enumerate("abcde")]


SCORES = {"a": 0.0, "b": 4.0, "c": 2.0, "d": 3.0, "e": 8.0}
PLAIN = CrossEncoder(weight=1.0, head=0)


def names(found: Sequence[Hit]) -> str:
    return "".join(hit.id for hit in found)


def test_the_model_orders_and_says_why(hits: list[Hit]) -> None:
    done = PLAIN.apply(hits, QUERY, Tools(Told(SCORES)))
    assert names(done.hits) == "ebdca"
    assert [hit.rank for hit in done.hits] == [1, 2, 3, 4, 5]
    assert [hit.score for hit in done.hits] == pytest.approx([1.0, 0.6, 0.5, 0.4, 0.2]), "on the fused scale"
    assert done.degraded == ()
    assert done.note == "5 of 5 scored"
    (change,) = done.hits[0].adjustments
    assert (change.reranker, change.before, change.after) == ("cross_encoder", hits[4].score, done.hits[0].score)
    assert change.reason == "model score 8"


def test_the_arithmetic_of_the_blend(hits: list[Hit]) -> None:
    """f = 1, .75, .5, .25, 0 and m = 0, .5, .25, .375, 1; low 0.2, width 0.8; weight 0.6 and 0.25 in the head of 2."""
    done = CrossEncoder(weight=0.6, head=2, head_weight=0.25).apply(hits, QUERY, Tools(Told(SCORES)))
    mixed = {
        "a": 0.75 * 1.0 + 0.25 * 0.0,
        "b": 0.75 * 0.75 + 0.25 * 0.5,
        "c": 0.4 * 0.5 + 0.6 * 0.25,
        "d": 0.4 * 0.25 + 0.6 * 0.375,
        "e": 0.4 * 0.0 + 0.6 * 1.0,
    }
    assert {hit.id: hit.score for hit in done.hits} == pytest.approx({k: 0.2 + 0.8 * v for k, v in mixed.items()})
    assert names(done.hits) == "abecd"


def test_a_head_is_never_hurt_by_its_protection(hits: list[Hit]) -> None:
    """Where the model likes it better than the fusion did, the larger weight counts."""
    liked = {**SCORES, "b": 8.0, "e": 0.0}
    done = CrossEncoder(weight=0.6, head=2, head_weight=0.25).apply(hits, QUERY, Tools(Told(liked)))
    (second,) = [hit for hit in done.hits if hit.id == "b"]
    assert second.score == pytest.approx(0.2 + 0.8 * (0.4 * 0.75 + 0.6 * 1.0))


def test_without_a_scorer_the_way_out_is_said(hits: list[Hit]) -> None:
    done = CrossEncoder().apply(hits, QUERY, Tools())
    assert done.hits == hits
    ((part, reason),) = [(item.part, item.reason) for item in done.degraded]
    assert (part, reason) == ("cross_encoder", NO_SCORER)
    assert "--scorer" in reason and "TRIVET_SCORER" in reason and "folder:PATH" in reason


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_compare_is_nothing_missing(hits: list[Hit], count: int) -> None:
    done = CrossEncoder().apply(hits[:count], QUERY, Tools())
    assert (done.hits, done.degraded) == (hits[:count], ())


def test_a_question_without_words_is_not_read(hits: list[Hit]) -> None:
    scorer = Told(SCORES)
    assert CrossEncoder().apply(hits, Query("  "), Tools(scorer)).hits == hits
    assert scorer.asked == []


def test_it_is_asked_in_batches_in_the_fused_order_and_only_for_news(hits: list[Hit]) -> None:
    scorer = Told(SCORES, batch=2, known=["b"])
    done = PLAIN.apply(hits, QUERY, Tools(scorer))
    assert scorer.asked == [["a", "c"], ["d", "e"]]
    assert names(done.hits) == "ebdca"
    assert done.note == "5 of 5 scored, 1 of them from the cache"


def test_out_of_time_the_rest_keeps_its_fused_order(hits: list[Hit]) -> None:
    scorer = Told({**SCORES, "c": 9.0}, batch=1, late=["d"])
    done = CrossEncoder(weight=1.0, head=0, budget_ms=50).apply(hits, QUERY, Tools(scorer))
    assert names(done.hits) == "cbade"
    assert [hit.score for hit in done.hits[3:]] == [hit.score for hit in hits[3:]], "untouched"
    assert all(one.score >= other.score for one, other in pairwise(done.hits))
    (told,) = done.degraded
    assert told.part == "cross_encoder"
    assert told.reason == (
        "from hit 4 on the fused order is kept: the time limit of 50 ms is over; "
        "raise budget_ms, or lower the profile's pool"
    )
    assert done.note == "3 of 5 scored"
    assert scorer.asked[-1] == ["d"], "nothing more is asked for"


def test_out_of_time_at_once(hits: list[Hit]) -> None:
    done = CrossEncoder(budget_ms=1).apply(hits, QUERY, Tools(Told(SCORES, late=["a"])))
    assert done.hits == hits
    assert done.degraded[0].reason.startswith("the fused order is kept: the time limit of 1 ms is over")


@pytest.mark.parametrize("error", [RuntimeError("it broke"), TimeoutError("it broke")])
def test_a_failing_scorer_costs_its_opinion(hits: list[Hit], error: Exception) -> None:
    scorer = Told(SCORES)
    scorer.fail = error
    done = CrossEncoder().apply(hits, QUERY, Tools(scorer))
    assert done.hits == hits
    assert done.degraded[0].reason == "the fused order is kept: it broke"


def test_an_error_without_words_is_told_by_its_kind(hits: list[Hit]) -> None:
    scorer = Told(SCORES)
    scorer.fail = KeyError()
    assert CrossEncoder().apply(hits, QUERY, Tools(scorer)).degraded[0].reason.endswith("KeyError")


def test_a_model_that_cannot_be_opened(hits: list[Hit]) -> None:
    scorer = Told(SCORES)
    scorer.closed = "the file is broken"
    done = CrossEncoder().apply(hits, QUERY, Tools(scorer))
    assert (done.hits, scorer.asked) == (hits, [])
    assert done.degraded[0].reason == "the fused order is kept: the file is broken"
    scorer.remembered = list("abcde")
    assert CrossEncoder().apply(hits, QUERY, Tools(scorer)).degraded == (), "what is remembered needs no model"


def test_a_model_that_is_opened_for_too_long(hits: list[Hit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.rerank.scoring.OPENING", 0.02)
    scorer = Told(SCORES)
    scorer.closed = ""
    done = CrossEncoder().apply(hits, QUERY, Tools(scorer))
    assert done.degraded[0].reason == "the fused order is kept: the scorer did not load within 0.02 s"


def test_scores_that_are_all_the_same_are_no_opinion(hits: list[Hit]) -> None:
    done = PLAIN.apply(hits, QUERY, Tools(Told(dict.fromkeys("abcde", 3.0))))
    assert (done.hits, done.degraded) == (hits, ())


def test_the_gate_spares_the_model_where_the_first_is_certain(hits: list[Hit]) -> None:
    sure = [replace(hits[0], relevance=0.9), *(replace(hit, relevance=0.4) for hit in hits[1:])]
    scorer = Told(SCORES)
    done = CrossEncoder(gate=0.5).apply(sure, QUERY, Tools(scorer))
    assert (done.hits, scorer.asked) == (sure, [])
    assert done.note == "skipped: the first is 0.50 ahead, the gate is 0.5"
    assert CrossEncoder(gate=0.51).apply(sure, QUERY, Tools(scorer)).note == "5 of 5 scored"
    certain = [replace(hits[0], relevance=1.0), *(replace(hit, relevance=0.0) for hit in hits[1:])]
    assert CrossEncoder(gate=1.0).apply(certain, QUERY, Tools(scorer)).note == "5 of 5 scored", "1: always ask"


def test_the_lead_is_over_every_other_hit(hits: list[Hit]) -> None:
    mixed = [replace(hit, relevance=r) for hit, r in zip(hits, [0.5, 0.2, 0.7, 0.1, 0.1], strict=True)]
    assert lead(mixed) == pytest.approx(-0.2)


def test_the_title_is_read_too(hit: MakeHit) -> None:
    scorer = Told({"Doors\nopen": 1.0, "closed": 2.0})
    titled = [hit("a", 1.0, text="open", title="Doors"), hit("b", 0.5, text="closed")]
    assert names(PLAIN.apply(titled, QUERY, Tools(scorer)).hits) == "ba"


def test_equal_fused_scores_are_ordered_by_the_model(hit: MakeHit) -> None:
    flat = [hit(name, 0.5, text=name) for name in "abe"]
    done = PLAIN.apply(flat, QUERY, Tools(Told(SCORES)))
    assert names(done.hits) == "eba"
    assert all(found.score >= 0.5 for found in done.hits), "what comes after them stays after them"


def test_a_future_that_comes_late_is_let_go(hits: list[Hit]) -> None:
    """In a real thread: the search goes on while it still runs."""
    from concurrent.futures import ThreadPoolExecutor

    gate = threading.Event()

    class Threaded(Told):
        def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
            return pool.submit(lambda: [1.0] if gate.wait(60) else [])

    with ThreadPoolExecutor(1) as pool:
        done = CrossEncoder(budget_ms=20).apply(hits, QUERY, Tools(Threaded(SCORES, batch=1)))
        gate.set()
    assert done.hits == hits
    assert "the time limit of 20 ms is over" in done.degraded[0].reason


# --- what holds whatever the numbers ----------------------------------------------------------------------------------

numbers = st.floats(-100, 100).map(lambda value: round(value, 3))
shares = st.floats(0, 1)


@st.composite
def lists(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    size = draw(st.integers(2, 12))
    fused = sorted(draw(st.lists(numbers, min_size=size, max_size=size)), reverse=True)
    return fused, draw(st.lists(numbers, min_size=size, max_size=size))


@given(lists(), shares, st.integers(0, 12), shares)
def test_blended_scores_stay_on_the_fused_scale(
    pair: tuple[list[float], list[float]], weight: float, head: int, head_weight: float
) -> None:
    fused, scored = pair
    assume(fused[0] > fused[-1])
    mixed = blend(fused, scored, weight, head, head_weight)
    slack = 1e-9 * (1 + abs(fused[0]) + abs(fused[-1]))
    assert all(fused[-1] - slack <= score <= fused[0] + slack for score in mixed)


@given(lists(), shares, st.integers(0, 12), shares)
def test_better_by_both_stays_ahead(
    pair: tuple[list[float], list[float]], weight: float, head: int, head_weight: float
) -> None:
    fused, scored = pair
    mixed = blend(fused, scored, weight, head, min(weight, head_weight))
    for one in range(len(fused)):
        for other in range(one + 1, len(fused)):
            if scored[one] >= scored[other]:
                assert mixed[one] >= mixed[other] - 1e-9


@given(lists(), st.integers(0, 12))
def test_weight_0_changes_nothing_and_weight_1_is_the_models_order(
    pair: tuple[list[float], list[float]], head: int
) -> None:
    fused, scored = pair
    assert blend(fused, scored, 0.0) == pytest.approx(fused)
    assume(fused[0] > fused[-1])
    mixed = blend(fused, scored, 1.0)
    order = sorted(range(len(fused)), key=lambda place: -scored[place])
    assert all(mixed[one] >= mixed[other] - 1e-9 for one, other in pairwise(order))


@given(lists(), shares, shares)
def test_the_first_of_the_head_keeps_its_part(
    pair: tuple[list[float], list[float]], weight: float, head_weight: float
) -> None:
    fused, scored = pair
    mixed = blend(fused, scored, weight, 1, head_weight)
    assert mixed[0] >= fused[-1] + (1 - head_weight) * (fused[0] - fused[-1]) - 1e-9


@given(lists(), shares, st.floats(0.1, 50), numbers)
def test_the_models_scale_does_not_matter(
    pair: tuple[list[float], list[float]], weight: float, stretch: float, shift: float
) -> None:
    fused, scored = pair
    assume(len(set(scored)) == 1 or max(scored) - min(scored) > 0.01)
    moved = [score * stretch + shift for score in scored]
    assert blend(fused, moved, weight, 3, 0.25) == pytest.approx(blend(fused, scored, weight, 3, 0.25), abs=1e-6)
