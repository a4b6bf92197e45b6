from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_sets import MakeEvaluation

from trivet.errors import InputError
from trivet.evaluate import Evaluation, Lab, evaluate, gate, read_evaluation
from trivet.evaluate.quality_gate import MARGIN
from trivet.profile import PROFILES


def shifted(evaluation: Evaluation, by: float) -> Evaluation:
    """Every topic's value moved by as much."""
    values = {topic: value + by for topic, value in evaluation.scores["nDCG@10"].items()}
    return replace(evaluation, scores={"nDCG@10": values})


@pytest.fixture
def stored(make_evaluation: MakeEvaluation) -> Evaluation:
    return make_evaluation("stored", [1, 0, 1, 1] * 10)


@pytest.mark.parametrize(
    ("change", "passed"),
    [(0.0, True), (0.3, True), (-0.0099, True), (-0.01, True), (-0.0101, False), (-0.010001, False), (-0.5, False)],
)
def test_the_margin_decides(stored: Evaluation, change: float, passed: bool) -> None:
    found = gate(stored, shifted(stored, change))
    assert found.passed is passed and found.margin == MARGIN == 0.01
    assert found.pair.difference == pytest.approx(change)


def test_hits_lost_one_by_one(make_evaluation: MakeEvaluation) -> None:
    """One of 40 topics is 0.025."""
    stored = make_evaluation("s", [1] * 40)
    for lost, margin, passed in (
        (1, 0.025, True),
        (1, 0.0249, False),
        (2, 0.05, True),
        (2, 0.025, False),
        (0, 0.0, True),
    ):
        current = make_evaluation("c", [0] * lost + [1] * (40 - lost))
        assert gate(stored, current, "Success@1", margin).passed is passed, (lost, margin)


def test_a_significant_drop_within_the_margin_passes_and_is_told(stored: Evaluation) -> None:
    found = gate(stored, shifted(stored, -0.009))
    assert found.passed and found.pair.significant and found.pair.verdict.startswith("worse")
    assert (found.pair.baseline, found.pair.challenger) == ("stored", "current")


def test_a_drop_beyond_the_margin_fails_though_it_proves_nothing(make_evaluation: MakeEvaluation) -> None:
    found = gate(make_evaluation("s", [1] * 40), make_evaluation("c", [0] + [1] * 39), "Success@1")
    assert not found.passed and not found.pair.significant


def test_a_stored_result_gates_itself(small_lab: Lab, tmp_path: Path) -> None:
    now = evaluate(small_lab, PROFILES["default"], fast=True)
    found = gate(read_evaluation(now.save(tmp_path, answers=False)), now, margin=0.0)
    assert found.passed and found.pair.ties == found.pair.n == 9 and found.warnings == ()


def test_another_set_is_refused(stored: Evaluation, make_evaluation: MakeEvaluation) -> None:
    other = make_evaluation("c", [1, 0, 1, 1] * 10, dataset="111111111111")
    with pytest.raises(InputError, match=r"of hand/test#0{12}, this one of hand/test#1{12}: .*trivet gate --write"):
        gate(stored, other)


def test_another_model_is_told(stored: Evaluation) -> None:
    found = gate(replace(stored, model="old"), replace(stored, model="new"))
    assert found.passed and found.warnings == ("the stored result is of the model old, this one of new",)


@pytest.mark.parametrize("margin", [-0.01, 1.01, float("nan")])
def test_a_margin_is_between_0_and_1(stored: Evaluation, margin: float) -> None:
    with pytest.raises(InputError, match=r"margin: .* is out of range; allowed: 0 to 1"):
        gate(stored, stored, margin=margin)


def test_an_unknown_measure(stored: Evaluation) -> None:
    with pytest.raises(InputError, match="is unknown"):
        gate(stored, stored, "quality")
    with pytest.raises(InputError, match="was not computed"):
        gate(stored, stored, "P@7")


def test_a_verdict_goes_to_json(stored: Evaluation) -> None:
    plain = json.loads(json.dumps(gate(stored, shifted(stored, -0.02)).to_dict()))
    assert (plain["passed"], plain["margin"], plain["measure"]) == (False, 0.01, "nDCG@10")
    assert plain["difference"] == pytest.approx(-0.02) and plain["warnings"] == []
