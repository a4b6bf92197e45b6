from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_sets import MakeRun

from trivet.errors import InputError, NotFoundError
from trivet.evaluate import MEASURES, Dataset, Evaluation, Lab, Run, evaluate, judge, read_evaluation, read_run
from trivet.evaluate.evaluation import commit, made
from trivet.evaluate.findings import NONSENSE
from trivet.profile import PROFILES, Profile

WORDS = Profile(name="words", weights={"lexical": 1.0})


@pytest.fixture(scope="module")
def evaluation(small_lab: Lab) -> Evaluation:
    return evaluate(small_lab, PROFILES["default"])


# ---- what is evaluated


def test_an_evaluation_says_what_it_is_of(evaluation: Evaluation, small: Dataset) -> None:
    assert (evaluation.name, evaluation.dataset) == ("default", small.identity)
    assert evaluation.profile == PROFILES["default"] and evaluation.model == "hashing/64/1"
    assert list(evaluation.scores) == list(MEASURES)
    assert set(evaluation.strata) == set(evaluation.texts) == set(evaluation.qrels) == set(small.qrels)
    assert set(evaluation.made) == {"commit", "version", "python", "machine", "at"}
    assert evaluation.findings.topics == 9 and evaluation.findings.nonsense == NONSENSE
    assert evaluation.findings.unanswerable == 0 and evaluation.findings.false_unanswerable is None
    assert evaluation.findings.embed_ms is not None and evaluation.findings.p50_ms > 0


def test_means_and_strata(evaluation: Evaluation) -> None:
    values = evaluation.of("nDCG@10")
    assert evaluation.mean("ndcg@10") == pytest.approx(sum(values.values()) / 9)
    by_stratum = evaluation.by_stratum("nDCG@10")
    assert {stratum: set(topics) for stratum, topics in by_stratum.items()} == {
        "all": {"q0", "q3", "q6", "q7"},
        "scoped": {"q1", "q2", "q8"},
        "typo": {"q4"},
        "dated": {"q5"},
    }
    with pytest.raises(InputError, match=r"P@3 was not computed for default; it has: nDCG@10, R@5"):
        evaluation.of("P@3")


def test_fast_is_the_same_without_times(small_lab: Lab, evaluation: Evaluation) -> None:
    fast = evaluate(small_lab, PROFILES["default"], fast=True)
    assert fast.scores == evaluation.scores
    assert fast.findings.p95_ms == 0.0 and fast.findings.embed_ms is None
    assert replace(evaluation.findings, p50_ms=0.0, p95_ms=0.0, embed_ms=None) == fast.findings


def test_unanswerable_questions_are_asked_too(demo_lab: Lab) -> None:
    found = evaluate(demo_lab, WORDS, fast=True).findings
    assert found.unanswerable == len(demo_lab.dataset.unanswerable) > 0
    assert found.false_unanswerable is not None and found.false_nonsense == 0.0
    strict = evaluate(demo_lab, replace(PROFILES["default"], min_relevance=0.9), fast=True).findings
    assert strict.false_unanswerable == 0.0 and strict.returned < found.returned


def test_a_topic_that_nothing_answers_counts_0(small_lab: Lab) -> None:
    found = evaluate(small_lab, WORDS, fast=True)
    assert found.run.answers["q7"].ids == ()  # "zzyzx"
    assert {measure: values["q7"] for measure, values in found.scores.items()} == dict.fromkeys(MEASURES, 0.0)
    assert found.findings.unanswered == sum(not answer.ids for answer in found.run.answers.values()) > 0


def test_a_mistyped_measure_is_refused_before_anything_is_asked(
    small_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_lab, "run", lambda *given, **options: pytest.fail("it was asked"))
    with pytest.raises(InputError, match="'nDGC@10' is unknown"):
        evaluate(small_lab, WORDS, measures=["R@5", "nDGC@10"])


def test_a_name_of_its_own(small_lab: Lab) -> None:
    found = evaluate(small_lab, WORDS, name="BM25", measures=["MRR"], fast=True)
    assert (found.name, found.run.name, list(found.scores)) == ("BM25", "BM25", ["RR"])
    assert found.profile == WORDS


# ---- to JSON and back


def test_saved_with_answers_and_read_back(evaluation: Evaluation, tmp_path: Path) -> None:
    found = read_evaluation(evaluation.save(tmp_path / "new" / "folder"))
    for part in ("name", "dataset", "profile", "model", "scores", "strata", "texts", "qrels", "findings", "made"):
        assert getattr(found, part) == getattr(evaluation, part), part
    assert found.notes == evaluation.notes
    for topic, answer in evaluation.run.answers.items():
        back = found.run.answers[topic]
        assert (back.ids, back.legs, back.degraded) == (answer.ids, answer.legs, answer.degraded)
        assert back.scores == pytest.approx(answer.scores, abs=1e-6)
        assert back.relevances == pytest.approx(answer.relevances, abs=1e-4)
    assert judge(_set_of(found), found.run).scores == evaluation.scores  # it can be scored again


def _set_of(found: Evaluation) -> Dataset:
    return Dataset("small", "test", [], (), found.qrels, "0" * 12)


def test_scores_are_stored_as_they_are(evaluation: Evaluation, tmp_path: Path) -> None:
    """A third rounded to six places is another number: the stored run would differ from itself on every such topic."""
    thirds = replace(evaluation, scores={"R@5": dict.fromkeys(evaluation.strata, 1 / 3)})
    assert read_evaluation(thirds.save(tmp_path)).scores == thirds.scores


def test_saved_without_answers_it_holds_nothing_of_the_set(evaluation: Evaluation, tmp_path: Path) -> None:
    path = evaluation.save(tmp_path, answers=False)
    text = path.read_text()
    assert "kettle" not in text and '"d1"' not in text
    found = read_evaluation(path)
    assert (found.scores, found.strata, found.findings) == (evaluation.scores, evaluation.strata, evaluation.findings)
    assert (found.run.answers, found.texts, found.qrels) == ({}, {}, {})


def test_the_summary_is_for_people(evaluation: Evaluation) -> None:
    record = evaluation.to_dict()
    assert record["overall"]["nDCG@10"] == round(evaluation.mean("nDCG@10"), 4)
    assert record["strata"]["scoped"]["topics"] == 3
    values = evaluation.by_stratum("R@5")["scoped"].values()
    assert record["strata"]["scoped"]["R@5"] == round(sum(values) / 3, 4)
    assert record["identity"] == PROFILES["default"].identity
    json.dumps(record)


def test_degraded_answers_are_in_the_file(small: Dataset, tmp_path: Path) -> None:
    with Lab.fill(small, embedder="none") as lab:
        found = evaluate(lab, PROFILES["default"], fast=True)
    assert found.findings.degraded == 9 and found.model is None
    back = read_evaluation(found.save(tmp_path))
    assert back.run == replace(found.run, answers=back.run.answers)
    assert all(answer.degraded == found.run.answers[topic].degraded for topic, answer in back.run.answers.items())


def test_the_file_is_named_by_commit_profile_and_dataset(evaluation: Evaluation) -> None:
    known = replace(evaluation, made={"commit": "abc1234+"})
    identity = PROFILES["default"].identity.replace("#", "-")
    assert known.file_name == f"eval-abc1234+-{identity}-small-test-000000000000.json"
    for other in (
        replace(known, made={"commit": "abc1235"}),
        replace(known, profile=replace(PROFILES["default"], k=11)),
        replace(known, dataset="small/test#111111111111"),
        replace(known, dataset="small/train#000000000000"),
    ):
        assert other.file_name != known.file_name
    assert replace(known, model="another", notes=("x",)).file_name == known.file_name


@pytest.mark.parametrize("name", ["../../up", "a/b", "a b\n", "C:\\x", "…", "."])
def test_another_systems_name_does_not_leave_the_folder(evaluation: Evaluation, tmp_path: Path, name: str) -> None:
    theirs = replace(evaluation, name=name, profile=None, dataset=f"{name}/test#0")
    path = theirs.save(tmp_path / "results")
    assert path.parent == tmp_path / "results" and list(path.parent.iterdir()) == [path]
    assert read_evaluation(path).name == name


# ---- files that are no evaluation


def damaged(evaluation: Evaluation, change: Callable[[dict[str, Any]], Any]) -> str:
    record = json.loads(json.dumps(evaluation.to_dict()))
    change(record)
    return json.dumps(record)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a result of trivet eval"),
        ("{", "not a result of trivet eval"),
        ("[" * 100_000, "not a result of trivet eval"),
        (b"\xff\xfe", "not a result of trivet eval"),
        ("[]", "expected a result of trivet eval, got list"),
        ("{}", "format None is not 1; run trivet eval again"),
        ('{"format": 2}', "format 2 is not 1"),
        ('{"format": 1}', "not a whole result of trivet eval .*name"),
    ],
)
def test_a_broken_file_is_a_clear_error(tmp_path: Path, text: str | bytes, reason: str) -> None:
    (tmp_path / "x.json").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError, match=f"x.json: .*{reason}"):
        read_evaluation(tmp_path / "x.json")


@pytest.mark.parametrize(
    "key", ["name", "dataset", "profile", "model", "scores", "stratum_of", "findings", "made", "notes"]
)
def test_a_file_without_a_part(tmp_path: Path, evaluation: Evaluation, key: str) -> None:
    (tmp_path / "x.json").write_text(damaged(evaluation, lambda record: record.pop(key)))
    with pytest.raises(InputError, match=f"x.json: not a whole result .*{key}"):
        read_evaluation(tmp_path / "x.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(scores=[1, 2]),
        lambda record: record.update(scores={"R@5": 0.5}),
        lambda record: record.update(scores={"R@5": {"q1": "high"}}),
        lambda record: record.update(scores={"R@5": {"q1": None}}),
        lambda record: record.update(findings=[]),
        lambda record: record.update(findings={"cuts": []}),
        lambda record: record["findings"].update(colour="red"),
        lambda record: record.update(profile="default"),
        lambda record: record["profile"].update(fusion="magic"),
        lambda record: record.update(answers=[5]),
        lambda record: record.update(answers={"q1": {}}),
        lambda record: record["answers"][0].pop("ids"),
        lambda record: record.update(notes=None),
    ],
)
def test_a_file_with_a_wrong_part(tmp_path: Path, evaluation: Evaluation, change: Callable[[Any], Any]) -> None:
    (tmp_path / "x.json").write_text(damaged(evaluation, change))
    with pytest.raises(InputError, match=r"x\.json: "):
        read_evaluation(tmp_path / "x.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file .*; make one with trivet eval --save"):
        read_evaluation(tmp_path / "x.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluation(tmp_path)


# ---- another system's run


def test_another_systems_run_is_judged(small: Dataset, make_run: MakeRun, tmp_path: Path) -> None:
    listed = {topic: " ".join(grades) for topic, grades in small.qrels.items()}
    make_run("theirs", **listed).write(tmp_path / "run")
    found = judge(small, read_run(tmp_path / "run"))
    assert (found.name, found.profile, found.model, found.notes) == ("theirs", None, None, ())
    assert found.mean("R@10") == found.mean("Success@1") == 1.0
    assert found.findings.cuts == () and found.findings.precision == 1.0
    assert found.file_name.startswith(f"eval-{commit()}-theirs-small-test-")


def test_topics_it_does_not_answer_count_0(small: Dataset, make_run: MakeRun) -> None:
    found = judge(small, make_run("theirs", q0="d0 d20", q1="d5"))
    assert found.notes == ("judged topics that are not in the run, counted as 0: 7",)
    assert found.mean("Success@1") == pytest.approx(2 / 9)
    assert all(math.isclose(found.of("nDCG@10")[topic], 0.0) for topic in ("q2", "q8"))


def test_topics_that_are_strange_are_noted_and_not_scored(small: Dataset, make_run: MakeRun) -> None:
    answers = dict.fromkeys(small.qrels, "d1")
    found = judge(small, make_run("theirs", **answers, x1="d1", x2="d1"))
    assert found.notes == ("topics of the run that are not in the split, not scored: 2",)
    assert set(found.run.answers) == set(small.qrels) == set(found.of("R@5"))


def test_a_run_of_another_set_is_refused(small: Dataset, make_run: MakeRun) -> None:
    with pytest.raises(InputError, match=r"none of its topics \(2\) is in small/test#0{12}; give a run of"):
        judge(small, make_run("theirs", x1="d1", x2="d1"))


def test_an_empty_run_scores_0(small: Dataset) -> None:
    found = judge(small, Run("silent", {}))
    assert found.mean("nDCG@10") == 0.0
    assert found.notes == ("judged topics that are not in the run, counted as 0: 9",)


def test_the_sets_notes_are_kept(small: Dataset, make_run: MakeRun) -> None:
    noted = replace(small, notes=("3 queries were left out",))
    assert judge(noted, make_run("theirs", q0="d1")).notes[0] == "3 queries were left out"


# ---- by which code


def test_the_commit_is_told_or_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made()["commit"] == commit()
    commit.cache_clear()
    try:
        monkeypatch.setenv("PATH", "")
        assert commit() == f"v{made()['version']}"
    finally:
        commit.cache_clear()
