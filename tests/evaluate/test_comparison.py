from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_sets import MakeEvaluation

from trivet.errors import InputError
from trivet.evaluate import Dataset, Lab, compare, evaluate, judge, read_evaluation
from trivet.evaluate.comparison import SHOWN
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.significance import holm, paired
from trivet.profile import PROFILES, Profile

NONE, ALL = [0] * 40, [1] * 40
HALF = [1, 0] * 20


# ---- what is compared


def test_the_first_is_the_baseline_of_every_other(make_evaluation: MakeEvaluation) -> None:
    found = compare([make_evaluation("a", HALF), make_evaluation("b", ALL), make_evaluation("c", NONE)], "Success@1")
    assert (found.baseline, found.measure, found.dataset) == ("a", "Success@1", "hand/test#000000000000")
    assert [(pair.baseline, pair.challenger, pair.n) for pair in found.overall] == [("a", "b", 40), ("a", "c", 40)]
    better, worse = found.overall
    assert (better.difference, better.wins, better.losses, better.ties) == (0.5, 20, 0, 20)
    assert (worse.difference, worse.wins, worse.losses, worse.ties) == (-0.5, 0, 20, 20)
    assert better.verdict.startswith("better") and worse.verdict.startswith("worse")


def test_p_values_are_corrected_over_all_challengers(make_evaluation: MakeEvaluation) -> None:
    some = [1, 0] * 15 + [1, 1] * 5  # five more than half
    few = [1, 0] * 19 + [1, 1]
    evaluations = [make_evaluation(name, hits) for name, hits in (("a", HALF), ("b", some), ("c", few), ("d", ALL))]
    found = compare(evaluations, "Success@1").overall
    assert [pair.p_holm for pair in found] == holm([pair.p for pair in found])
    alone = compare(evaluations[:2], "Success@1").overall[0]
    assert alone.p == alone.p_holm == found[0].p < found[0].p_holm


def test_two_that_are_alike(make_evaluation: MakeEvaluation) -> None:
    found = compare([make_evaluation("a", HALF), make_evaluation("b", HALF)], "Success@1")
    assert found.overall[0].ties == 40 and not found.overall[0].significant
    assert "no difference shown" in found.overall[0].verdict
    assert found.moved == {"b": ()}


def test_a_stored_run_is_equal_to_itself(small_lab: Lab, tmp_path: Path) -> None:
    """Stored rounded, every topic with a third or a logarithm would seem to have moved, all the same way."""
    now = evaluate(small_lab, PROFILES["default"], fast=True)
    stored = replace(read_evaluation(now.save(tmp_path)), name="stored")
    found = compare([stored, now], "nDCG@10")
    assert found.overall[0].ties == len(now.strata) and found.moved == {"default": ()}


# ---- what is refused


def test_one_alone_cannot_be_compared(make_evaluation: MakeEvaluation) -> None:
    with pytest.raises(InputError, match="give at least two evaluations; the first is the baseline"):
        compare([make_evaluation("a", HALF)])


def test_two_of_the_same_name_are_refused(make_evaluation: MakeEvaluation) -> None:
    a, b = make_evaluation("a", HALF), make_evaluation("b", ALL)
    with pytest.raises(InputError, match=r"two of them have the same name \(a, b, a\)"):
        compare([a, b, a])


def test_different_sets_are_refused_and_named(make_evaluation: MakeEvaluation) -> None:
    other = make_evaluation("b", ALL, dataset="111111111111")
    with pytest.raises(InputError, match=r"a is of hand/test#0{12}, b of hand/test#1{12}; only runs over the same"):
        compare([make_evaluation("a", HALF), other])


def test_a_sample_is_another_set(small: Dataset) -> None:
    run = Run("r", {"q0": Answer("q0", ("d0",), (1.0,))})
    whole, part = judge(small, run), judge(small.sample(["q0", "q1"]), replace(run, name="s"))
    with pytest.raises(InputError, match="only runs over the same topics can be compared"):
        compare([whole, part])


def test_a_measure_that_was_not_computed(make_evaluation: MakeEvaluation) -> None:
    with pytest.raises(InputError, match=r"P@7 was not computed for b"):
        compare([make_evaluation("a", HALF), make_evaluation("b", ALL)], "P@7")
    with pytest.raises(InputError, match="is unknown"):
        compare([make_evaluation("a", HALF), make_evaluation("b", ALL)], "quality")


# ---- strata


def test_strata_are_one_family_with_the_challengers(make_evaluation: MakeEvaluation) -> None:
    strata = ["hop"] * 16 + ["date"] * 16 + ["list"] * 8
    a = make_evaluation("a", HALF, strata)
    b = make_evaluation("b", [1] * 12 + HALF[12:], strata)
    c = make_evaluation("c", [0] * 6 + HALF[6:20] + [1] * 20, strata)
    found = compare([a, b, c], "Success@1").strata
    assert set(found) == {"hop", "date", "list"}
    assert all([pair.challenger for pair in pairs] == ["b", "c"] for pairs in found.values())
    assert {stratum: pairs[0].n for stratum, pairs in found.items()} == {"hop": 16, "date": 16, "list": 8}
    flat = [pair for pairs in found.values() for pair in pairs]
    assert [pair.p_holm for pair in flat] == holm([pair.p for pair in flat])
    assert any(pair.p_holm > pair.p for pair in flat)
    hop = found["hop"][0]
    alone = paired(a.by_stratum("Success@1")["hop"], b.by_stratum("Success@1")["hop"], names=("a", "b"))
    assert (hop.p, hop.difference, hop.wins) == (alone.p, pytest.approx(6 / 16), 6)


def test_one_stratum_is_not_told_twice(make_evaluation: MakeEvaluation) -> None:
    assert compare([make_evaluation("a", HALF), make_evaluation("b", ALL)]).strata == {}


# ---- what moved


def test_the_topics_that_moved_most_stand_first_with_both_rankings(small: Dataset) -> None:
    def run(name: str, **listed: str) -> Run:
        return Run(
            name,
            {
                topic: Answer(topic, tuple(ids.split()), tuple(range(len(ids.split()), 0, -1)))
                for topic, ids in listed.items()
            },
        )

    # qrels of q0: d0 and d20; of q1: d5 (2) and d21; of q2: d10 and d22; of q3: d15 (2) and d23
    before = judge(small, run("before", q0="d1 d0", q1="d5 d21", q2="d10 d22", q3="d1 d15"))
    after = judge(small, run("after", q0="d0 d1", q1="d1 d2", q2="d10 d22", q3="d1"))
    moved = compare([before, after], "RR@10").moved["after"]
    assert [(item.topic, item.before, item.after, item.change) for item in moved] == [
        ("q1", 1.0, 0.0, -1.0),
        ("q0", 0.5, 1.0, 0.5),  # of two that moved as far, the one with the smaller id
        ("q3", 0.5, 0.0, -0.5),
    ]
    assert moved[0].baseline == (("d5", 2), ("d21", 1))
    assert moved[0].challenger == (("d1", None), ("d2", None))
    assert (moved[0].text, moved[0].stratum) == ("where does the heron stand", "scoped")
    assert [item.topic for item in compare([before, after], "RR@10", top=1).moved["after"]] == ["q1"]
    assert compare([before, after], "RR@10", top=0).moved["after"] == ()


def test_a_long_ranking_is_cut_and_a_missing_one_is_empty(small: Dataset) -> None:
    many = tuple(f"d{number}" for number in range(30))
    long = judge(small, Run("long", {"q0": Answer("q0", many, tuple(range(30, 0, -1)))}))
    none = judge(small, Run("none", {"q1": Answer("q1", ("d1",), (1.0,))}))
    (moved,) = compare([long, none], "RR@10").moved["none"]
    assert [id for id, _ in moved.baseline] == list(many[:SHOWN]) and moved.challenger == ()


def test_rounding_is_no_move(make_evaluation: MakeEvaluation) -> None:
    a, b = make_evaluation("a", ALL), make_evaluation("b", ALL)
    shifted = {topic: value - 1e-12 for topic, value in b.scores["Success@1"].items()}
    found = compare([a, replace(b, scores={"Success@1": shifted})], "Success@1")
    assert found.moved["b"] == () and found.overall[0].ties == 40


def test_stored_without_answers_it_is_compared_without_rankings(
    make_evaluation: MakeEvaluation, tmp_path: Path
) -> None:
    stored = read_evaluation(make_evaluation("a", NONE).save(tmp_path, answers=False))
    (item, *_) = compare([stored, make_evaluation("b", ALL)], "Success@1").moved["b"]
    assert item.baseline == () and item.challenger == (("right", 1), ("wrong", 0), ("other", None))
    assert item.text == "question q000"  # the other one has it


def test_a_comparison_goes_to_json(make_evaluation: MakeEvaluation) -> None:
    strata = ["x", "y"] * 20
    found = compare([make_evaluation("a", HALF, strata), make_evaluation("b", ALL, strata)], "Success@1")
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["overall"][0]["significant"] is True
    assert plain["overall"][0]["verdict"] == found.overall[0].verdict
    assert plain["moved"]["b"][0]["change"] == 1.0
    assert set(plain["strata"]) == {"x", "y"}


def test_two_profiles_of_the_demo(demo_lab: Lab) -> None:
    words = Profile(name="words", weights={"lexical": 1.0})
    found = compare([evaluate(demo_lab, each, fast=True) for each in (words, PROFILES["default"])])
    (pair,) = found.overall
    assert pair.n == len(demo_lab.dataset.topics) == pair.wins + pair.losses + pair.ties
    assert set(found.strata) == set(demo_lab.dataset.strata)
    assert found.moved["default"] and len(found.moved["default"]) <= 10
