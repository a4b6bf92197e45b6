from __future__ import annotations

import json
from typing import Any

import pytest

from trivet.errors import InputError, StoreError
from trivet.evaluate import Dataset, Lab, headroom, score, sweep
from trivet.evaluate.measures import mean
from trivet.evaluate.sweeps import ALPHAS, MAX_POINTS
from trivet.profile import PROFILES, Profile

BOTH = Profile(name="both")


# ---- a sweep


def test_every_combination_is_scored_as_the_shipped_path_would(small_lab: Lab) -> None:
    found = sweep(small_lab, BOTH, {"alpha": (0.2, 0.7), "normalize": ("minmax", "zscore", "tm2c2")})
    assert [dict(point.changes) for point in found.points] == [
        {"alpha": alpha, "normalize": normalize} for alpha in (0.2, 0.7) for normalize in ("minmax", "zscore", "tm2c2")
    ]
    assert (found.dataset, found.measure, found.base) == (small_lab.dataset.identity, "nDCG@10", BOTH)
    assert found.axes == {"alpha": (0.2, 0.7), "normalize": ("minmax", "zscore", "tm2c2")}
    for point in found.points:
        assert point.profile == BOTH.with_changes(dict(point.changes))
        shipped = score(small_lab.run(point.profile), small_lab.dataset.qrels, ["nDCG@10"])["nDCG@10"]
        assert point.values == shipped
        assert point.mean == pytest.approx(mean(shipped))
        assert point.low <= point.mean <= point.high


def test_the_best_is_the_highest_mean_and_of_equals_the_first(demo_lab: Lab) -> None:
    found = sweep(demo_lab, BOTH, {"alpha": (0.0, 0.5, 1.0)}, "R@5")
    assert found.best.mean == max(point.mean for point in found.points)
    assert len({point.mean for point in found.points}) > 1
    twice = sweep(demo_lab, BOTH, {"min_relevance": (0.0, 1e-9)})
    assert twice.best is twice.points[0]


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({}, "give at least one setting"),
        ({"alpha": ()}, "with at least one value"),
        ({"alpha": (0.5,), "fusionn": ("rrf",)}, "fusionn: unknown setting; did you mean 'fusion'"),
        ({"fusion": ("rrf", "magic")}, "fusion: 'magic' is unknown"),
        ({"alpha": (0.5, 1.5)}, "alpha: 1.5 is out of range"),
        ({"rrf_k": (60, "many")}, "rrf_k: 'many' is not a number"),
        ({"k": range(1, 100), "rrf_k": range(100)}, f"9,900 combinations are more than {MAX_POINTS:,}"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_asked(
    small_lab: Lab, monkeypatch: pytest.MonkeyPatch, axes: dict[str, Any], reason: str
) -> None:
    for ask in ("run", "rerun"):
        monkeypatch.setattr(small_lab, ask, lambda *given, **options: pytest.fail("it was asked"))
    with pytest.raises(InputError, match=reason):
        sweep(small_lab, BOTH, axes)


def test_an_unknown_measure_is_refused_before_anything_is_asked(
    small_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_lab, "rerun", lambda *given, **options: pytest.fail("it was asked"))
    with pytest.raises(InputError, match="is unknown"):
        sweep(small_lab, BOTH, {"alpha": (0.5,)}, "quality")
    with pytest.raises(InputError, match="is unknown"):
        headroom(small_lab, BOTH, "quality")


def test_progress_and_json(small_lab: Lab) -> None:
    steps: list[tuple[str, int, int]] = []
    found = sweep(small_lab, BOTH, {"rrf_k": (2, 60)}, "MRR", lambda *step: steps.append(step))
    assert steps == [("sweep", 1, 2), ("sweep", 2, 2)]
    plain = json.loads(json.dumps(found.to_dict()))
    assert (plain["measure"], plain["base"], plain["axes"]) == ("RR", BOTH.identity, {"rrf_k": [2, 60]})
    assert [point["changes"] for point in plain["points"]] == [{"rrf_k": 2}, {"rrf_k": 60}]
    assert plain["points"][0]["mean"] == round(found.points[0].mean, 4)


# ---- headroom


@pytest.mark.parametrize("profile", [PROFILES["default"], BOTH, PROFILES["memories"]], ids=lambda profile: profile.name)
def test_an_oracle_is_no_worse_than_any_one_weight(demo_lab: Lab, profile: Profile) -> None:
    found = headroom(demo_lab, profile)
    assert list(found.by_alpha) == list(ALPHAS)
    assert found.by_alpha[found.best_alpha] == found.best_mean == max(found.by_alpha.values())
    assert found.oracle_mean >= found.best_mean and found.oracle_mean >= found.mean
    own = score(demo_lab.run(profile), demo_lab.dataset.qrels, ["nDCG@10"])["nDCG@10"]
    assert found.mean == pytest.approx(mean(own))


def test_the_ends_are_the_legs_alone(small_lab: Lab) -> None:
    found = headroom(small_lab, BOTH, "MRR")
    assert found.measure == "RR"
    for alpha, leg in ((0.0, "lexical"), (1.0, "dense")):
        alone = score(small_lab.run(Profile(name="one", weights={leg: 1.0})), small_lab.dataset.qrels, ["RR"])["RR"]
        assert found.by_alpha[alpha] == pytest.approx(mean(alone))


def test_the_oracle_takes_each_topics_best(small_lab: Lab) -> None:
    found = headroom(small_lab, BOTH)
    swept = sweep(small_lab, BOTH, {"alpha": ALPHAS})
    best = [max(point.values[topic] for point in swept.points) for topic in small_lab.dataset.qrels]
    assert found.oracle_mean == pytest.approx(sum(best) / len(best))  # alpha 0.5 is the profile itself
    assert found.oracle_mean > found.best_mean


def test_without_a_model_there_is_nothing_to_weigh(small: Dataset) -> None:
    with Lab.fill(small, embedder="none") as lab:
        assert sweep(lab, Profile(name="words", weights={"lexical": 1.0}), {"match": ("all", "any")}).points
        with pytest.raises(StoreError, match="no leg answered: dense: opened without an embedder"):
            headroom(lab, BOTH)
