from __future__ import annotations

import subprocess
import sys
from math import log2

import pytest
from hand_sets import MakeRun

from trivet.errors import InputError, MissingExtraError
from trivet.evaluate import MEASURES, Answer, Run, measures, score
from trivet.evaluate.measures import by_stratum, canonical, mean

pytest.importorskip("ir_measures")

QRELS = {"q1": {"a": 3, "b": 1, "c": 0, "d": 2}, "q2": {"x": 1}, "q3": {"y": 1, "z": 1}}


# ---- by hand


def test_ndcg_of_graded_judgements(make_run: MakeRun) -> None:
    """Grades 1, 0 and 3 at ranks 1, 3 and 4; the best order would be 3, 2, 1."""
    found = score(make_run(q1="b u c a v"), QRELS, ["nDCG@10", "nDCG@3", "nDCG@2"])
    ideal = 3 / log2(2) + 2 / log2(3) + 1 / log2(4)
    assert found["nDCG@10"]["q1"] == pytest.approx((1 / log2(2) + 3 / log2(5)) / ideal)
    assert found["nDCG@3"]["q1"] == pytest.approx((1 / log2(2)) / ideal)
    assert found["nDCG@2"]["q1"] == pytest.approx(1 / (3 / log2(2) + 2 / log2(3)))


def test_the_others_by_hand(make_run: MakeRun) -> None:
    """Right at ranks 2, 4 and 6 of q1 (of 3 there are), at 1 of q2 (of 1)."""
    run = make_run(q1="u a v b w d", q2="x")
    asked = ["R@5", "R@1", "Success@1", "Success@2", "RecallAll@5", "RecallAll@6", "RR@10", "AP@10", "P@5", "Judged@10"]
    found = score(run, QRELS, asked)
    assert {name: values["q1"] for name, values in found.items()} == {
        "R@5": pytest.approx(2 / 3),
        "R@1": 0.0,
        "Success@1": 0.0,
        "Success@2": 1.0,
        "RecallAll@5": 0.0,
        "RecallAll@6": 1.0,
        "RR@10": pytest.approx(1 / 2),
        "AP@10": pytest.approx((1 / 2 + 2 / 4 + 3 / 6) / 3),
        "P@5": pytest.approx(2 / 5),
        "Judged@10": pytest.approx(3 / 6),
    }
    assert all(values["q2"] == pytest.approx(0.2 if name == "P@5" else 1.0) for name, values in found.items())


def test_a_grade_below_0_is_no_answer(make_run: MakeRun) -> None:
    found = score(make_run(q="a b"), {"q": {"a": -2, "b": 1, "c": 0}})
    assert found["nDCG@10"]["q"] == pytest.approx(1 / log2(3))
    assert (found["RR@10"]["q"], found["R@5"]["q"], found["RecallAll@5"]["q"]) == (0.5, 1.0, 1.0)
    assert found["Judged@10"]["q"] == 1.0


def test_recall_all_of_nothing_is_not_everything(make_run: MakeRun) -> None:
    assert score(make_run(q="a b"), {"q": {"a": 0}}, ["RecallAll@5"]) == {"RecallAll@5": {"q": 0.0}}


def test_recall_all_counts_places(make_run: MakeRun) -> None:
    run = make_run(q="y u z")
    for k, value in ((1, 0.0), (2, 0.0), (3, 1.0), (100, 1.0)):
        assert score(run, {"q": {"y": 1, "z": 2, "no": 0}}, [f"RecallAll@{k}"])[f"RecallAll@{k}"]["q"] == value


def test_the_answers_own_order_counts_where_scores_are_equal() -> None:
    for ids, value in ((("a", "z"), 1.0), (("z", "a"), 0.5)):
        run = Run("tied", {"q": Answer("q", ids, (1.0, 1.0))})
        assert score(run, {"q": {"a": 1}}, ["MRR@10"])["RR@10"]["q"] == value


# ---- every judged topic, and no other


@pytest.mark.parametrize("listed", [{}, {"q2": ""}, {"q2": "x"}, {"q9": "x", "q2": "u"}], ids=str)
def test_every_judged_topic_has_a_value(make_run: MakeRun, listed: dict[str, str]) -> None:
    found = score(make_run(**listed), QRELS)
    assert list(found) == list(MEASURES)
    for values in found.values():
        assert list(values) == ["q1", "q2", "q3"]
        assert values["q1"] == values["q3"] == 0.0


def test_topics_nobody_judged_are_ignored(make_run: MakeRun) -> None:
    plain = score(make_run(q1="a", q2="x"), QRELS)
    assert score(make_run(q1="a", q2="x", q8="a b", q9=""), QRELS) == plain


def test_silence_does_not_pay(make_run: MakeRun) -> None:
    said, silent = make_run(q1="a d b", q2="u", q3="u"), make_run(q1="a d b")
    for measure, values in score(said, QRELS, ["nDCG@10", "R@5", "MRR", "MAP"]).items():
        assert mean(values) == mean(score(silent, QRELS, [measure])[measure]) == pytest.approx(1 / 3)


# ---- names


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("MRR", "RR"),
        ("MRR@10", "RR@10"),
        ("mrr@5", "RR@5"),
        ("MAP", "AP"),
        ("map@100", "AP@100"),
        ("Recall@5", "R@5"),
        ("hit@1", "Success@1"),
        ("precision@3", "P@3"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("nDCG", "nDCG"),
        (" nDCG@10 ", "nDCG@10"),
        ("recallall@3", "RecallAll@3"),
        ("AP(rel=2)@10", "AP(rel=2)@10"),
        ("P(rel=1)@5", "P@5"),
    ],
)
def test_a_measure_is_reported_under_one_name(said: str, name: str, make_run: MakeRun) -> None:
    assert canonical(said) == canonical(name) == name
    assert list(score(make_run(q1="a"), QRELS, [said])) == [name]


def test_the_same_measure_twice_is_computed_once(make_run: MakeRun) -> None:
    assert list(score(make_run(q1="a"), QRELS, ["MRR", "RR", "R@5", "Recall@5"])) == ["RR", "R@5"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("nDGC@10", "'nDGC@10' is unknown; write one such as nDCG@10, R@5, .*any name ir-measures knows"),
        ("", "'' is not a measure; write one such as nDCG@10"),
        ("10", "'10' is not a measure"),
        ("nDCG@ten", "is unknown"),
        ("nDCG@-1", "is unknown"),
        ("nDCG@1.5", "is unknown"),
        ("nDCG@10@5", "is unknown"),
        ("R", "'R' is unknown"),  # a fraction of how many?
        ("Success", "'Success' is unknown"),
        ("nDCG(speed=3)@10", "is unknown"),
        ("RecallAll", "'RecallAll' is unknown"),
        ("RecallAll@0", "'RecallAll@0' is unknown"),
        ("__import__('os')", "is unknown"),
        ("nDCG@0", "has the cutoff 0; it must be 1 or more"),
        ("Judged@0", "has the cutoff 0"),
        ("MRR@0", "has the cutoff 0"),
        ("P(rel=0)@5", "has the rel 0"),
    ],
)
def test_an_unknown_measure_is_refused(said: str, reason: str, make_run: MakeRun) -> None:
    with pytest.raises(InputError, match=f"measure: .*{reason}"):
        canonical(said)
    with pytest.raises(InputError, match=reason):
        score(make_run(q1="a"), QRELS, ["R@5", said])


def test_a_measure_without_a_scorer_is_refused(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_measures

    monkeypatch.setattr(type(ir_measures.DefaultPipeline), "supports", lambda self, measure: False)
    with pytest.raises(InputError, match="'nDCG@10' is known to ir-measures, but no installed package computes it"):
        canonical("nDCG@10")


def test_a_failing_scorer_is_told(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_measures

    def broken(*given: object) -> None:
        raise subprocess.CalledProcessError(25, "perl")

    monkeypatch.setattr(ir_measures, "iter_calc", broken)
    with pytest.raises(InputError, match=r"ir-measures could not compute R@5, AP \(CalledProcessError"):
        score(make_run(q1="a"), QRELS, ["R@5", "MAP"])


def test_without_ir_measures_the_pip_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[eval\]'"):
        canonical("nDCG@10")


# ---- means and strata


def test_means() -> None:
    assert mean({"a": 1.0, "b": 0.0, "c": 0.5}) == 0.5
    assert mean({}) == 0.0


def test_values_by_stratum() -> None:
    found = by_stratum({"q1": 0.1, "q2": 0.2, "q3": 0.3}, {"q1": "hop", "q2": "date", "q3": "hop"})
    assert found == {"hop": {"q1": 0.1, "q3": 0.3}, "date": {"q2": 0.2}}


def test_the_main_measure_is_among_the_measures() -> None:
    assert measures.MAIN in MEASURES
    assert [canonical(name) for name in MEASURES] == list(MEASURES)
