"""Where does a profile stand on a setting's axis?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.report.figures import between, setting, short
from trivet.evaluate.report.material import View
from trivet.evaluate.sweeps import Point, Sweep
from trivet.profile import Profile

SERIES = 8  # colours there are; more lines begin anew, dashed, then dotted


def series(place: int) -> str:
    """The style sheet's class for the line of that place."""
    return f"s{place % SERIES}{('', ' dashed', ' dotted')[place // SERIES % 3]}"


def numeric(sweep: Sweep, axis: str) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in sweep.axes[axis])


def current(profile: Profile, axis: str) -> Any:
    """The profile's own value of a setting, sugar included; None where it has none."""
    if axis == "alpha":
        both = profile.weights["lexical"] + profile.weights["dense"]
        return round(profile.weights["dense"] / both, 6) if both else None
    leg, _, what = axis.partition("_")
    if leg in profile.weights and what:
        return getattr(profile, f"{what}s", {}).get(leg)
    return getattr(profile, axis, None)


def is_base(sweep: Sweep, point: Point) -> bool:
    """Does this point rank as the base does? Its value alone does not say so: a setting may turn another one off."""
    return _ranks(point.profile) == _ranks(sweep.base)


def base_value(sweep: Sweep, axis: str) -> float | None:
    """Where the base is on a numeric axis; None where it is not on it: past its ends, or another profile altogether."""
    value = current(sweep.base, axis)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not min(sweep.axes[axis]) <= value <= max(sweep.axes[axis]):
        return None
    try:
        same = _ranks(sweep.base.with_changes({axis: value})) == _ranks(sweep.base)
    except InputError:
        return None
    return float(value) if same else None


def base_mean(view: View, sweep: Sweep) -> float | None:
    """What the base itself scored, where this report has it evaluated or the sweep passes through it."""
    for point in sweep.points:
        if is_base(sweep, point):
            return point.mean
    for item in view.material.evaluations:
        if item.dataset == sweep.dataset and item.profile and _ranks(item.profile) == _ranks(sweep.base):
            return item.mean(sweep.measure) if item.scores.get(sweep.measure) else None
    return None


def told(view: View, sweep: Sweep) -> str:
    """The sweep in a sentence, the base's own score beside the highest."""
    words = f"{sweep.base.name}: highest {short(sweep.best.mean)} at {changes(sweep.best)}"
    mean = base_mean(view, sweep)
    if mean is None:
        return words
    passed = any(is_base(sweep, point) for point in sweep.points) or len(sweep.axes) > 1
    return f"{words}; as it is {short(mean)}{'' if passed else ', not on the curve'}"


def base_name(sweep: Sweep, among: Sequence[Sweep]) -> str:
    """The base's name, and its digest where another of the same name ranks differently."""
    alike = {other.base.identity for other in among if other.base.name == sweep.base.name}
    return sweep.base.name if len(alike) == 1 else sweep.base.identity


def changes(point: Point) -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in point.changes.items())


def tip(sweep: Sweep, point: Point) -> str:
    based = ", as it is" if is_base(sweep, point) else ""
    where = f"{sweep.base.name}{based}, {changes(point)}"
    return f"{where}: {short(point.mean)}, 95 % interval {between(point.low, point.high)}"


def _ranks(profile: Profile) -> str:
    return profile.identity.rpartition("#")[2]
