"""Sweeps over settings, and the headroom of the fusion weights.

The legs run once; every point of the grid is fused from their stored rankings. ``headroom`` is the upper bound: the
gain of an oracle that knows the best weights of each topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.lab import Lab
from trivet.evaluate.measures import MAIN, canonical, mean, score
from trivet.evaluate.significance import interval
from trivet.profile import Profile
from trivet.types import StepProgress

MAX_POINTS = 2_000
ALPHAS = tuple(step / 10 for step in range(11))


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of settings and its scores."""

    changes: Mapping[str, Any]
    profile: Profile
    mean: float
    low: float
    high: float
    values: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The scores of every combination of some settings."""

    dataset: str
    measure: str
    base: Profile
    axes: Mapping[str, tuple[Any, ...]]
    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The highest mean on these topics; only ``tune`` tests whether it holds on others."""
        return max(self.points, key=lambda point: point.mean)

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "measure": self.measure,
            "base": self.base.identity,
            "axes": {name: list(values) for name, values in self.axes.items()},
            "points": [
                {
                    "changes": dict(point.changes),
                    "profile": point.profile.identity,
                    "mean": round(point.mean, 4),
                    "low": round(point.low, 4),
                    "high": round(point.high, 4),
                }
                for point in self.points
            ],
        }


@dataclass(frozen=True, slots=True)
class Headroom:
    """The gain of an oracle's weights; ``alpha`` is the weight of the dense leg against the lexical one."""

    measure: str
    mean: float  # the profile unchanged
    best_alpha: float
    best_mean: float  # the best single alpha for these topics
    oracle_mean: float  # the best alpha of each topic
    by_alpha: Mapping[float, float]


def sweep(
    lab: Lab,
    profile: Profile,
    axes: Mapping[str, Sequence[Any]],
    measure: str = MAIN,
    progress: StepProgress | None = None,
) -> Sweep:
    """Score every combination of the axes' values, each a change of ``profile`` such as ``{"alpha": (0.3, 0.5)}``."""
    if not axes or any(not values for values in axes.values()):
        raise InputError("sweep: give at least one setting with at least one value, such as alpha=0,0.5,1")
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    if len(combinations) > MAX_POINTS:
        raise InputError(f"sweep: {len(combinations):,} combinations are more than {MAX_POINTS:,}; take fewer values")
    # all are checked before the first is run
    profiles = [profile.with_changes({**changes, "name": profile.name}) for changes in combinations]
    measure = canonical(measure)
    points: list[Point] = []
    for number, (changes, changed) in enumerate(zip(combinations, profiles, strict=True), start=1):
        values = score(lab.rerun(changed), lab.dataset.qrels, (measure,))[measure]
        low, high = interval(list(values.values()))
        points.append(Point(changes, changed, mean(values), low, high, values))
        if progress:
            progress("sweep", number, len(profiles))
    kept = {name: tuple(values) for name, values in axes.items()}
    return Sweep(lab.dataset.identity, measure, profile, kept, tuple(points))


def headroom(lab: Lab, profile: Profile, measure: str = MAIN, progress: StepProgress | None = None) -> Headroom:
    """Return how much the best weights of each topic would gain."""
    measure = canonical(measure)
    own = score(lab.rerun(profile), lab.dataset.qrels, (measure,))[measure]
    swept = sweep(lab, profile, {"alpha": ALPHAS}, measure, progress)
    by_alpha = {float(point.changes["alpha"]): point.mean for point in swept.points}
    best = {topic: max(own[topic], *(point.values[topic] for point in swept.points)) for topic in own}
    best_alpha = max(by_alpha, key=lambda alpha: by_alpha[alpha])
    return Headroom(measure, mean(own), best_alpha, by_alpha[best_alpha], mean(best), by_alpha)
