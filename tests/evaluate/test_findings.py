from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.evaluate import Answer, Lab, Run, Topic
from trivet.evaluate.findings import NONSENSE, THRESHOLDS, Findings, nonsense, percentile, summarize
from trivet.filters import Eq
from trivet.profile import PROFILES, Profile

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"x": 1, "y": 1}, "q3": {"z": 1}}
L, T, D = ("lexical",), ("trigram",), ("dense",)


def answer(
    topic: str, ids: str, relevances: tuple[float, ...], legs: tuple[tuple[str, ...], ...] = (), **rest: object
) -> Answer:
    listed = tuple(ids.split())
    return Answer(topic, listed, tuple(range(len(listed), 0, -1)), relevances, legs, **rest)  # type: ignore[arg-type]


def run(*answers: Answer) -> Run:
    return Run("hand", {each.topic: each for each in answers})


JUDGED = run(
    answer("q1", "a u b c", (0.9, 0.7, 0.4, 0.2), (L, L + D, L + D, D), ms=4.0),
    answer("q2", "v x w y", (0.8, 0.6, 0.5, 0.1), (D, D, T, L), ms=1.0, degraded=("trigram: late",)),
    Answer("q3", ms=2.0),
)


# ---- by hand


def test_what_is_returned() -> None:
    found = summarize(JUDGED, QRELS, None, None)
    assert (found.topics, found.unanswered, found.degraded) == (3, 1, 1)
    assert found.returned == pytest.approx(8 / 3)
    assert (found.right, found.precision) == (4, pytest.approx(4 / 8))  # a, b; x, y


def test_what_only_one_leg_found() -> None:
    """a by words alone, x by meaning, y by words; b by two; u, c, v and w are not right."""
    assert summarize(JUDGED, QRELS, None, None).only == {"dense": 1, "lexical": 2}


def test_a_topic_without_an_answer_is_counted() -> None:
    found = summarize(run(JUDGED.answers["q1"]), QRELS, None, None)
    assert (found.topics, found.unanswered, found.right) == (3, 2, 2)
    assert found.returned == pytest.approx(4 / 3)


def test_topics_that_were_not_judged_do_not_count() -> None:
    stranger = answer("q9", "a b c", (0.9, 0.9, 0.9), (L, L, L), ms=900.0)
    assert summarize(run(*JUDGED.answers.values(), stranger), QRELS, None, None) == summarize(JUDGED, QRELS, None, None)


def test_false_answers() -> None:
    unanswerable = run(answer("u1", "a", (0.3,)), Answer("u2"), answer("u3", "b c", (0.6, 0.1)), Answer("u4"))
    made_up = run(answer("n1", "a", (0.0,)), Answer("n2"), Answer("n3"))
    found = summarize(JUDGED, QRELS, unanswerable, made_up)
    assert (found.unanswerable, found.nonsense) == (4, 3)
    assert found.false_unanswerable == pytest.approx(2 / 4)
    assert found.false_nonsense == pytest.approx(1 / 3)  # a hit is an answer, however weak
    cut = next(cut for cut in found.cuts if cut.threshold == 0.5)
    assert (cut.false_unanswerable, cut.false_nonsense) == (pytest.approx(1 / 4), 0.0)


def test_nothing_asked_is_not_nothing_answered() -> None:
    for none in (None, Run("empty", {})):
        found = summarize(JUDGED, QRELS, none, none)
        assert (found.unanswerable, found.false_unanswerable, found.nonsense, found.false_nonsense) == (
            0,
            None,
            0,
            None,
        )
        assert found.cuts[0].false_unanswerable is None


@pytest.mark.parametrize(
    ("threshold", "precision", "answered"),
    [
        (0.0, 4 / 8, 2 / 3),
        (0.1, 4 / 8, 2 / 3),
        (0.12, 3 / 7, 2 / 3),
        (0.6, 2 / 4, 2 / 3),
        (0.62, 1 / 3, 1 / 3),
        (0.82, 1 / 1, 1 / 3),
        (0.92, None, 0),
    ],
)
def test_where_a_threshold_would_cut(threshold: float, precision: float | None, answered: float) -> None:
    """Relevances of right hits: .9 .4 | .6 .1; of wrong ones: .7 .2 | .8 .5."""
    cut = next(cut for cut in summarize(JUDGED, QRELS, None, None).cuts if cut.threshold == threshold)
    assert (cut.precision, cut.answered) == (pytest.approx(precision), pytest.approx(answered))


def test_a_threshold_that_leaves_only_wrong_hits_has_a_precision() -> None:
    cut = summarize(run(answer("q1", "u", (0.9,))), QRELS, None, None).cuts[1]
    assert cut.precision == 0.0


def test_hits_in_bins_of_relevance() -> None:
    """Right: .9 .4 | .6 .1; wrong: .7 .2 | .8 .5, and everything for what cannot be answered. 1 is in the last bin."""
    found = summarize(JUDGED, QRELS, run(answer("u1", "a b", (1.0, 0.44))), None)
    assert [(item.begin, item.hits, item.right) for item in found.bins] == [
        (0.1, 1, 1.0),
        (0.2, 1, 0.0),
        (0.4, 2, 0.5),
        (0.5, 1, 0.0),
        (0.6, 1, 1.0),
        (0.7, 1, 0.0),
        (0.8, 1, 0.0),
        (0.9, 2, 0.5),
    ]
    assert found.bins[2].told == pytest.approx(0.42)
    apart = [0.9, 0.2, 2 * 0.08, 0.5, 0.4, 0.7, 0.8, 2 * 0.45]
    assert found.calibration_error == pytest.approx(sum(apart) / 10)


def test_a_run_that_says_nothing_of_relevance_has_no_bins() -> None:
    found = summarize(run(Answer("q1", ("a", "u"), (2.0, 1.0))), QRELS, None, None)
    assert (found.bins, found.calibration_error) == ((), None)


def test_a_result_from_before_there_were_bins_is_read() -> None:
    plain = summarize(JUDGED, QRELS, None, None).to_dict()
    del plain["bins"]
    assert Findings.from_dict(plain).bins == ()


def test_another_systems_run_has_no_thresholds() -> None:
    """It says nothing of relevance: a curve of zeros would be a claim."""
    theirs = run(Answer("q1", ("a", "u"), (2.0, 1.0)), Answer("q2", ("x",), (1.0,)))
    found = summarize(theirs, QRELS, None, None)
    assert found.cuts == ()
    assert (found.right, found.precision, found.only) == (2, pytest.approx(2 / 3), {})


def test_a_run_without_a_hit() -> None:
    found = summarize(Run("silent", {}), QRELS, None, None)
    assert (found.unanswered, found.returned, found.precision, found.right) == (3, 0.0, 0.0, 0)
    assert [cut.answered for cut in found.cuts] == [0.0] * len(THRESHOLDS)


def test_times() -> None:
    found = summarize(JUDGED, QRELS, None, None, [5.0, 3.0, 9.0])
    assert (found.p50_ms, found.p95_ms, found.embed_ms) == (2.0, 4.0, 5.0)
    assert summarize(JUDGED, QRELS, None, None).embed_ms is None


@pytest.mark.parametrize(
    ("count", "share", "value"), [(1, 0.5, 0), (1, 0.95, 0), (2, 0.5, 1), (3, 0.5, 1), (100, 0.95, 95), (100, 1.0, 99)]
)
def test_percentiles(count: int, share: float, value: float) -> None:
    assert percentile([float(each) for each in range(count)], share) == value
    assert percentile([], share) == 0.0


# ---- what must hold


RELEVANCE = st.floats(0, 1)
HITS = st.lists(st.tuples(st.sampled_from("abcuvw"), RELEVANCE), max_size=6, unique_by=lambda hit: hit[0])


@given(st.lists(HITS, min_size=1, max_size=5), st.lists(HITS, min_size=1, max_size=4))
def test_a_higher_threshold_answers_no_more(
    judged: list[list[tuple[str, float]]], other: list[list[tuple[str, float]]]
) -> None:
    def made(kind: str, answers: list[list[tuple[str, float]]]) -> Run:
        return run(
            *(
                answer(f"{kind}{number}", " ".join(id for id, _ in hits), tuple(value for _, value in hits))
                for number, hits in enumerate(answers)
            )
        )

    asked = made("q", judged)
    found = summarize(asked, {topic: {"a": 1, "b": 1} for topic in asked.answers}, made("u", other), made("n", other))
    assert [cut.threshold for cut in found.cuts] == list(THRESHOLDS)
    for before, after in pairwise(found.cuts):
        assert before.answered >= after.answered
        assert before.false_unanswerable is not None and after.false_unanswerable is not None
        assert before.false_unanswerable >= after.false_unanswerable
        assert before.false_nonsense == before.false_unanswerable
    first = found.cuts[0]
    assert (first.precision or 0.0, first.false_unanswerable) == (found.precision, found.false_unanswerable)
    assert all(0.0 <= cut.precision <= 1.0 for cut in found.cuts if cut.precision is not None)
    assert sum(item.hits for item in found.bins) == sum(map(len, (*judged, *other)))


def test_findings_go_to_json_and_back() -> None:
    found = summarize(JUDGED, QRELS, run(Answer("u1")), None, [1.0])
    assert Findings.from_dict(json.loads(json.dumps(found.to_dict()))) == found


# ---- nonsense


def test_nonsense_is_the_same_for_everyone() -> None:
    topics = [Topic("q1", "x", where=Eq("scope", "red")), Topic("q2", "y")]
    made = nonsense(topics)
    assert made == nonsense(topics) and len(made) == NONSENSE
    assert [topic.text for topic in made] == [topic.text for topic in nonsense(())]
    assert made[0].text == "vanuztuqz soxipyxu nipyxu foozesyxryxu?"
    assert nonsense(topics, seed=1) != made
    assert len({topic.text for topic in made}) == len({topic.id for topic in made}) == NONSENSE
    assert all(re.fullmatch(r"([a-z]{4,} ){3}[a-z]{4,}\?", topic.text) for topic in made)


def test_nonsense_is_asked_where_real_questions_are() -> None:
    red, blue = Eq("scope", "red"), Eq("scope", "blue")
    made = nonsense([Topic("q1", "x", where=red), Topic("q2", "y", where=blue), Topic("q3", "z")], count=7)
    assert [topic.where for topic in made] == [red, blue, None, red, blue, None, red]
    assert {topic.stratum for topic in made} == {"nonsense"}


def test_the_demo_has_no_word_of_it(demo_lab: Lab) -> None:
    words = Profile(name="words", weights={"lexical": 1.0})
    asked = nonsense(demo_lab.dataset.topics)
    assert not any(answer.ids for answer in demo_lab.rerun(words, asked).answers.values())
    found = summarize(
        demo_lab.rerun(PROFILES["default"]), demo_lab.dataset.qrels, None, demo_lab.rerun(PROFILES["default"], asked)
    )
    assert found.false_nonsense is not None and found.nonsense == NONSENSE
