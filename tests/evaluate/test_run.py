from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hand_sets import MakeRun
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InputError, NotFoundError
from trivet.evaluate import Answer, Lab, Run, read_run, score
from trivet.evaluate.run import from_plain, plain
from trivet.profile import PROFILES, Profile
from trivet.types import Degraded, Results, Stage

pytrec_eval = pytest.importorskip("pytrec_eval")

BM25 = Profile(name="bm25", weights={"lexical": 1.0}, k=30)


def single(value: float) -> float:
    """As single precision holds it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


# ---- what is written


def test_a_run_is_written_as_trec_has_it(tmp_path: Path, make_run: MakeRun) -> None:
    make_run("my run", q1="d1 d2", q2="d3").write(tmp_path / "new" / "run.txt")
    assert (tmp_path / "new" / "run.txt").read_text() == (
        "q1 Q0 d1 1 1.0 my_run\nq1 Q0 d2 2 0.5 my_run\nq2 Q0 d3 1 1.0 my_run\n"
    )


def test_written_and_read_back(tmp_path: Path) -> None:
    answers = {
        "q1": Answer("q1", ("b", "a", "c"), (0.1, 0.1, 0.1), (0.9, 0.8, 0.7)),
        "q2": Answer("q2", ("é/ü:1", "x"), (2.0, -3.5)),
        "q3": Answer("q3"),
    }
    Run("mine", answers).write(tmp_path / "run")
    found = read_run(tmp_path / "run")
    assert found.name == "mine"
    assert {topic: answer.ids for topic, answer in found.answers.items()} == {
        "q1": ("b", "a", "c"),
        "q2": ("é/ü:1", "x"),
    }  # a topic without an answer has no line
    assert found.answers["q2"].scores == (2.0, -3.5)
    again = tmp_path / "again"
    found.write(again)
    assert again.read_text() == (tmp_path / "run").read_text()


def test_ties_are_set_apart_by_the_smallest_step() -> None:
    scores = Answer("q", ("c", "b", "a", "z"), (0.5, 0.5, 0.5, 0.7)).sorted_scores()
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == 4
    assert scores[0] == 0.5 and scores[-1] == pytest.approx(0.5, abs=1e-6)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_scores_always_fall_in_single_precision(values: list[float]) -> None:
    ordered = sorted(values, reverse=True)
    found = Answer("q", tuple(map(str, range(len(values)))), tuple(ordered)).sorted_scores()
    assert [single(value) for value in found] == found  # they are single precision already: nothing is rounded again
    assert all(before > after for before, after in pairwise(found))


@pytest.mark.parametrize("id", ["a b", "a\tb", "a\u2028b", "", " a"])
def test_ids_that_the_format_cannot_hold_are_refused(tmp_path: Path, id: str) -> None:
    for run in (Run("r", {"q": Answer("q", (id,), (1.0,))}), Run("r", {id: Answer(id, ("d",), (1.0,))})):
        with pytest.raises(InputError, match="has a blank in it"):
            run.write(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_name_of_any_kind_is_one_word(make_run: MakeRun) -> None:
    (line,) = make_run("a\tb\nc", q="d").lines()
    assert line.split() == ["q", "Q0", "d", "1", "1.0", "a_b_c"]
    (line,) = make_run(" ", q="d").lines()
    assert line.endswith(" trivet")


# ---- what is read


def test_the_score_orders_and_the_rank_where_scores_are_equal(tmp_path: Path) -> None:
    file = tmp_path / "theirs.run"
    file.write_text("\ufeffq1 Q0 c 3 1.5 tag\r\n\r\nq1 Q0 a 2 1.5 tag\nq1\tQ0\tb\t9\t7e0\ttag\nq2 Q0 a 1 0\n")
    found = read_run(file)
    assert found.answers["q1"].ids == ("b", "a", "c")
    assert found.answers["q1"].scores == (7.0, 1.5, 1.5)
    assert (found.name, list(found.answers)) == ("tag", ["q1", "q2"])


def test_a_run_without_a_tag_is_called_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "theirs.run").write_text("q1 Q0 a 1 0\n")
    assert read_run(tmp_path / "theirs.run").name == "theirs"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            b"q1 Q0 a 1 1.0 t\n\nq1 Q0 b\n",
            r"run.txt, line 3: expected 'topic Q0 document rank score tag', got 'q1 Q0 b'",
        ),
        (b"q1 Q0 a first 1.0 t\n", "run.txt, line 1: expected"),
        (b"q1 Q0 a 1 high t\n", "run.txt, line 1: expected"),
        (b"q1 Q0 a 1 1.0 t\nq1 Q0 b 2 nan t\n", "run.txt, line 2: expected"),
        (b"q1 Q0 a 1 inf t\n", "run.txt, line 1: expected"),
        (b"q1 Q0 a 1 1.0 t\nq1 Q0 \xff 2 1.0 t\n", "run.txt, line 2: not UTF-8"),
        (b"q1 Q0 a 1 2.0 t\nq2 Q0 b 1 1.0 t\nq2 Q0 b 2 0.5 t\n", "topic 'q2' lists the document 'b' twice"),
    ],
)
def test_a_broken_run_is_refused_by_the_line(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "run.txt").write_bytes(text)
    with pytest.raises(InputError, match=reason):
        read_run(tmp_path / "run.txt")


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="there is no file"):
        read_run(tmp_path)


# ---- an outside scorer


PAIRS = {"nDCG@10": "ndcg_cut_10", "R@10": "recall_10", "MAP": "map", "MRR": "recip_rank", "Success@1": "success_1"}
OURS = {"MAP": "AP", "MRR": "RR"}


def outside(path: Path, qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """What pytrec_eval makes of a file."""
    with path.open(encoding="utf-8") as file:
        run = pytrec_eval.parse_run(file)
    asked = {"ndcg_cut.10", "recall.10", "map", "recip_rank", "success.1"}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    return found


@pytest.mark.parametrize("profile", [PROFILES["default"], BM25, PROFILES["chunks"]], ids=lambda profile: profile.name)
def test_pytrec_eval_agrees_on_our_run_file(tmp_path: Path, demo_lab: Lab, profile: Profile) -> None:
    run, qrels = demo_lab.rerun(profile), demo_lab.dataset.qrels
    run.write(tmp_path / "run")
    theirs = outside(tmp_path / "run", {topic: dict(grades) for topic, grades in qrels.items()})
    ours = score(run, qrels, tuple(PAIRS))
    for name, their_name in PAIRS.items():
        for topic, value in ours[OURS.get(name, name)].items():
            assert value == pytest.approx(theirs.get(topic, {}).get(their_name, 0.0), abs=1e-4), (name, topic)
    assert sum(ours["nDCG@10"].values()) > 10  # it is not that nothing was found


def test_pytrec_eval_agrees_where_all_scores_are_equal(tmp_path: Path) -> None:
    """It sorts equal scores by id, backwards: 'z' would come first, were they not set apart."""
    run = Run("tied", {"q": Answer("q", ("a", "m", "z"), (1.0, 1.0, 1.0))})
    run.write(tmp_path / "run")
    theirs = outside(tmp_path / "run", {"q": {"a": 1, "z": 0}})
    assert theirs["q"]["recip_rank"] == theirs["q"]["ndcg_cut_10"] == 1.0
    assert score(run, {"q": {"a": 1, "z": 0}}, ["MRR", "nDCG@10"]) == {"RR": {"q": 1.0}, "nDCG@10": {"q": 1.0}}


# ---- what JSON holds


def test_an_answer_goes_to_plain_data_and_back() -> None:
    answer = Answer(
        "q", ("a", "b"), (0.5, 0.25), (0.75, 0.5), (("lexical", "dense"), ("dense",)), 1.5, ("dense: late",)
    )
    assert from_plain(plain(answer)) == answer
    whole = Answer("q", ("a",), (0.5,), (0.75,), (("lexical",),), 1.5)
    assert "degraded" not in plain(whole) and from_plain(plain(whole)) == whole


def test_an_answer_keeps_what_was_degraded_and_the_whole_time() -> None:
    trace = (Stage("lexical", 1.0), Stage("total", 7.0))
    found = Answer.of("q", Results("text", (), "profile", trace, (Degraded("dense", "is away"),)))
    assert found == Answer("q", ms=7.0, degraded=("dense: is away",))
