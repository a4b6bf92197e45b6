"""docs/evidence/results.md reports stages and targets as measured: on made-up results, and on a small lab."""

from __future__ import annotations

from typing import Any

import pytest

from trivet.evaluate import Lab, load, score
from trivet.profile import PROFILES, Profile

BEFORE = "4bb44672"  # the digest of the default that the stages are measured against, as results of that time have it


@pytest.fixture
def stages(script: Any) -> Any:
    return script("stages")


@pytest.fixture
def page(script: Any) -> Any:
    return script("quality_page")


def pair(difference: float = 0.0, p: float = 1.0) -> dict[str, Any]:
    return {"difference": difference, "low": difference, "high": difference, "p": p, "p_holm": p}


def one_set(**changes: Any) -> dict[str, Any]:
    """A set as ``quality.py`` tells it: few systems, two stages."""
    values = {"BM25": 0.5, "dense": 0.4, "RRF k=60": 0.5, "RRF k=5": 0.5}
    values |= {f"{family} α={alpha}": 0.5 for family in ("min-max", "z-score") for alpha in ("0.3", "0.5", "0.7")}
    values |= {"TM2C2 α=0.5": 0.5, "two legs": 0.55, "default": 0.6}
    told = {
        "identity": "a/test#0",
        "commit": "0",
        "documents": 10,
        "topics": 5,
        "notes": [],
        "systems": {
            name: {"nDCG@10": value, "R@5": value, "Success@5": value, "Success@10": value}
            for name, value in values.items()
        },
        "against_default": {name: pair(value - 0.6) for name, value in values.items() if name != "default"},
        "against_two_legs": {"nDCG@10": pair(0.05, 0.001), "R@5": pair(0.05, 0.001)},
        "stages": {
            "graph off": {"nDCG@10": 0.58, **pair(-0.02, 0.01)},
            "mmr on": {"nDCG@10": 0.61, **pair(0.01, 0.2)},
        },
        "costs": None,
        "better_leg": "BM25",
        "headroom": {"oracle": 0.7, "best_alpha": 0.5, "best": 0.5},
        "findings": {
            "p50_ms": 1.0, "p95_ms": 2.0, "embed_ms": None, "only": {}, "right": 3, "false_nonsense": None
        },
    }  # fmt: skip
    return {**told, **changes}


def whole(sets: dict[str, Any]) -> dict[str, Any]:
    names = next(iter(sets.values()))["systems"]
    made = {"commit": "0", "at": "2026-01-01", "machine": "none", "python": "3"}
    return {"sets": sets, "made": made, "profiles": {name: f"`{name}`" for name in names}, "stages": {"graph off": "p"}}


# --- the stages -------------------------------------------------------------------------------------------------------


def test_every_stage_changes_one_thing_of_the_default(stages: Any) -> None:
    default = PROFILES["default"].to_dict()
    for name, stage in stages.stages().items():
        changed = [key for key, value in stage.profile.to_dict().items() if value != default[key]]
        assert len(changed) == 1, f"{name} changes {changed}"
        assert name.endswith(" off" if stage.off else " on")


def test_what_the_default_has_is_taken_off_and_what_it_has_not_is_put_on(stages: Any) -> None:
    bare = Profile(name="bare", rerankers=["mmr"], expansion=5)  # type: ignore[arg-type]
    found = stages.stages(bare)
    assert {name for name, stage in found.items() if stage.off} == {"mmr off", "expansion off"}
    assert found["mmr off"].profile.rerankers == ()
    assert [step.name for step in found["learned on"].profile.rerankers] == ["mmr", "learned"]
    assert found["graph on"].profile.weights["graph"] > 0
    assert found["understanding on"].profile.understanding == "full"


def test_a_leg_put_on_leaves_the_weighing_alone(stages: Any) -> None:
    """Weights given by hand are not shifted by the question, unless that is asked for too."""
    legs = [stage.profile for name, stage in stages.stages().items() if name.split()[0] in ("graph", "trigram")]
    assert len(legs) == 2
    assert {profile.weighing for profile in legs} == {PROFILES["default"].weighing}


def test_a_sampled_stage_is_compared_on_its_sample(stages: Any) -> None:
    """On q1 and q2 the default is better than its mean says."""
    default = {"q1": 1.0, "q2": 1.0, "q3": 0.0}
    same, few = stages.against(default, {"same": dict(default), "few": {"q1": 0.5, "q2": 1.0}})
    assert (same.n, same.difference) == (3, 0.0)
    assert (few.n, few.difference) == (2, pytest.approx(-0.25))
    assert few.p_holm == pytest.approx(min(1.0, 2 * min(few.p, same.p)))


def test_stages_are_measured_and_timed_through_the_lab(stages: Any, tmp_path: Any) -> None:
    whole_set = load("demo")
    dataset = whole_set.sample([topic.id for topic in whole_set.topics[:4]])
    few = dataset.sample([topic.id for topic in dataset.topics[:2]])
    with Lab.fill(dataset, embedder="hashing:64", cache=tmp_path) as lab:
        default = score(lab.rerun(PROFILES["default"]), dataset.qrels, ("nDCG@10", "R@5"))
        found = stages.measured(lab, dataset, few, default, "nDCG@10")
        spent = stages.costs(lab, few.topics)
    assert found.keys() == spent.keys() == stages.stages().keys()
    assert {name: item["topics"] for name, item in found.items() if item["topics"] != 4} == {"trigram on": 2}
    for name, item in found.items():
        asked = few if name == "trigram on" else dataset
        mean = sum(default["nDCG@10"][topic.id] for topic in asked.topics) / len(asked.topics)
        assert item["difference"] == pytest.approx(item["nDCG@10"] - mean, abs=2e-4)


def test_what_came_before_the_stages_is_what_it_was(script: Any) -> None:
    assert script("quality").TWO_LEGS.identity.endswith(f"#{BEFORE}")


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_tells_what_each_stage_is_worth(page: Any) -> None:
    sets = {"a": one_set(), "b": one_set(costs={"graph off": 5.04, "mmr on": 1.0})}
    text = page.page(whole(sets), "quality-0.json")
    assert "## The gain of each stage" in text
    assert "| **default** | 0.600 | 0.600 | 0.6000 | | |" in text
    assert "| graph off | 0.580 ▼ | 0.580 ▼ | 0.5800 | -0.0200 | 5.0 |" in text
    assert "| mmr on | 0.610 | 0.610 | 0.6100 | +0.0100 | 1.0 |" in text
    assert "topics of b" in text
    assert "- graph off: `p`" in text


def test_a_run_without_stages_has_no_such_table(page: Any) -> None:
    older = {key: value for key, value in one_set().items() if key != "stages"}
    text = page.page(whole({"a": older, "b": older}), "quality-0.json")
    assert "The gain of each stage" not in text and "two legs on no set" not in text


def test_systems_that_differ_by_a_weight_alone_are_in_the_curves(page: Any) -> None:
    sets = {"a": one_set(), "b": one_set()}
    assert [name for name in page.shown(sets) if "α" in name] == ["min-max α=0.5", "z-score α=0.5", "TM2C2 α=0.5"]
    text = page.page(whole(sets), "quality-0.json")
    assert "| | 0.3 | 0.5 | 0.7 |" in text and "| | k=60 | k=5 |" in text
    assert "\n| TM2C2 | " not in text  # one value is no curve


@pytest.mark.parametrize(
    ("name", "system", "measure", "value", "met"),
    [
        ("locomo", "default", "Success@5", 0.65, True),
        ("locomo", "default", "Success@5", 0.6499, False),
        ("locomo", "default", "Success@10", 0.7399, False),
        ("scifact", "default", "nDCG@10", 0.755, True),
        ("memdaily_zh", "BM25", "nDCG@10", 0.8499, False),
    ],
)
def test_promises_are_met_or_missed(page: Any, name: str, system: str, measure: str, value: float, met: bool) -> None:
    one = one_set()
    one["systems"][system][measure] = value
    (verdict,) = [ok for _, measured, ok in page.promises({name: one}) if measured == f"{value:.4f}"][-1:]
    assert verdict is met


@pytest.mark.parametrize(("difference", "p", "met"), [(0.1, 0.01, True), (0.1, 0.06, False), (-0.1, 0.01, False)])
def test_connections_must_help_by_more_than_luck(page: Any, difference: float, p: float, met: bool) -> None:
    told = one_set(against_two_legs={"nDCG@10": pair(), "R@5": pair(difference, p)})
    assert [ok for what, _, ok in page.promises({"twowiki_101": told}) if "R@5" in what] == [met]


def test_a_set_the_stages_have_hurt_is_named(page: Any) -> None:
    """Corrected over the sets: of two, p = 0.03 is not enough."""
    even = one_set(against_two_legs={"nDCG@10": pair(0.0, 0.9), "R@5": pair()})
    hurt = one_set(against_two_legs={"nDCG@10": pair(-0.1, 0.01), "R@5": pair()})
    luck = one_set(against_two_legs={"nDCG@10": pair(-0.1, 0.03), "R@5": pair()})
    assert page.below_before({"a": hurt, "b": even}) == ["a"]
    assert page.below_before({"a": luck, "b": even}) == []
    assert ("default significantly below two legs on no set", "a", False) in page.promises({"a": hurt, "b": even})
