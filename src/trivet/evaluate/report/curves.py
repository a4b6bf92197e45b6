"""What does each setting do?

Sweeps of the same axes and measure belong together: one picture a dataset, a line for each base profile. Over several
datasets a first picture shows what each setting loses against that dataset's best, which is where one setting for all
of them would be looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, long, setting, short
from trivet.evaluate.report.markup import Cell, Html, Row, Section, Table, joined, legend, panel, panels, said, tag
from trivet.evaluate.report.material import View
from trivet.evaluate.sweeps import Point, Sweep
from trivet.profile import Profile

SERIES = 8  # colours there are; more lines begin anew, dashed
HEIGHT = 250.0
_LOGARITHMIC = ("rrf_k",)
_WORDS = {"alpha": "alpha: 0 is words alone, 1 is meaning alone", "rrf_k": "rrf_k"}
_LISTED = 20  # settings of a sweep over more than two axes


def section(view: View) -> Section | None:
    kinds: dict[tuple[str, ...], list[Sweep]] = {}
    for sweep in view.material.sweeps:
        if sweep.points:
            kinds.setdefault((sweep.measure, *sweep.axes), []).append(sweep)
    if not kinds:
        return None
    parts = [
        joined((tag("h3", f"{' × '.join(axes)}, {measure}"), _kind(view, sweeps, axes)))
        for (measure, *axes), sweeps in kinds.items()
    ]
    return Section(
        "sweeps",
        "Settings",
        "What does each setting do?",
        "Everything else as in the base profile, whose own value is the dashed line. The band is the 95 % interval of "
        "each mean. The ring marks the highest mean on these very topics: it describes them and promises nothing for "
        "others.",
        joined(parts),
    )


def _kind(view: View, sweeps: Sequence[Sweep], axes: Sequence[str]) -> Html:
    if len(axes) == 2:
        return joined(_grid(view, sweep, axes[0], axes[1]) for sweep in sweeps)
    if len(axes) > 2:
        return joined(_list(view, sweep) for sweep in sweeps)
    by_dataset: dict[str, list[Sweep]] = {}
    for sweep in sweeps:
        by_dataset.setdefault(sweep.dataset, []).append(sweep)
    draw = _lines if all(_numeric(sweep, axes[0]) for sweep in sweeps) else _choices
    pictures = [draw(view, dataset, found, axes[0]) for dataset, found in by_dataset.items()]
    parts: list[Html] = []
    if len(by_dataset) > 1 and draw is _lines:
        overview = _losses(view, sweeps, axes[0])
        pictures = [*([overview] if overview else []), *pictures]
    if max(len(found) for found in by_dataset.values()) > 1:
        names = list(dict.fromkeys(_base_name(sweep, sweeps) for sweep in sweeps))
        parts.append(legend((f"line {_series(place)}", name) for place, name in enumerate(names)))
    return joined((*parts, panels(pictures)))


# --- one axis ---------------------------------------------------------------------------------------------------------


def _lines(view: View, dataset: str, sweeps: Sequence[Sweep], axis: str) -> Html:
    """A curve and its band for each base."""
    frame = svg.Frame(height=HEIGHT)
    x, x_axis = _across(frame, [value for sweep in sweeps for value in sweep.axes[axis]], axis)
    bounds = [bound for sweep in sweeps for point in sweep.points for bound in (point.low, point.high, point.mean)]
    low, high = svg.spread(bounds, 5, floor=0.0)
    y = svg.Linear(low, high, *frame.y)
    marks = [x_axis, frame.upward(y, ticks := svg.ticks(low, high), svg.named(ticks))]
    told = []
    for place, sweep in enumerate(sweeps):
        kind = _series(place)
        points = sorted(sweep.points, key=lambda point: float(point.changes[axis]))
        xs = [x(float(point.changes[axis])) for point in points]
        if len(sweeps) <= 3:  # more bands are mud
            lows, highs = ([y(getattr(point, bound)) for point in points] for bound in ("low", "high"))
            marks.append(svg.band(list(zip(xs, lows, strict=True)), list(zip(xs, highs, strict=True)), kind))
        base = current(sweep.base, axis)
        if isinstance(base, int | float) and min(sweep.axes[axis]) <= base <= max(sweep.axes[axis]):
            marks.append(svg.line(x(base), frame.y[0], x(base), frame.y[1], f"base-line {kind}"))
        marks.append(svg.curve([(at, y(point.mean)) for at, point in zip(xs, points, strict=True)], kind))
        best = sweep.best
        marks.append(svg.circle(x(float(best.changes[axis])), y(best.mean), 8, f"ring {kind}"))
        marks += [
            svg.circle(at, y(point.mean), 3.5, f"dot {kind}", _tip(sweep, point, axis))
            for at, point in zip(xs, points, strict=True)
        ]
        told.append(f"{_best_words(sweep, axis)}{_base_words(sweep, base)}")
    label = view.label(dataset)
    words = f"{sweeps[0].measure} over {axis} on {label}: {'; '.join(told)}"
    return panel(label, sweeps[0].measure, frame.picture(words, *marks), "; ".join(told) if len(told) < 3 else "")


def _choices(view: View, dataset: str, sweeps: Sequence[Sweep], axis: str) -> Html:
    """Values without an order: a dot and its interval for each, one under the other."""
    points = [(place, sweep, point) for place, sweep in enumerate(sweeps) for point in sweep.points]
    names = [setting(point.changes[axis]) for _, _, point in points]
    height = 24.0
    frame = svg.Frame(height=height * len(points) + 46, left=svg.margin(names), right=52, top=4, bottom=38)
    bounds = [bound for _, _, point in points for bound in (point.low, point.high, point.mean)]
    low, high = svg.spread(bounds, 4, floor=0.0)
    x = svg.Linear(low, high, *frame.x)
    marks = [frame.across(x, ticks := svg.ticks(low, high, 4), svg.named(ticks), sweeps[0].measure)]
    columns = (frame.left - 12) / svg.LETTER
    for row, ((place, sweep, point), name) in enumerate(zip(points, names, strict=True)):
        middle, kind, tip = 4 + height * (row + 0.5), _series(place), _tip(sweep, point, axis)
        based = current(sweep.base, axis) == point.changes[axis]
        marks.append(svg.label(frame.left - 9, middle + 4, name, "name chosen" if based else "name", "end", columns))
        marks.append(svg.line(x(point.low), middle, x(point.high), middle, f"span {kind}", tip))
        if point is sweep.best:
            marks.append(svg.circle(x(point.mean), middle, 8, f"ring {kind}"))
        marks.append(svg.circle(x(point.mean), middle, 4.5, f"dot {kind}", tip))
        marks.append(svg.label(frame.width - 4, middle + 4, short(point.mean), "value", "end"))
    told = "; ".join(f"{_best_words(sweep, axis)}{_base_words(sweep, current(sweep.base, axis))}" for sweep in sweeps)
    label = view.label(dataset)
    return panel(label, sweeps[0].measure, frame.picture(f"{axis} on {label}: {told}", *marks), told)


def _losses(view: View, sweeps: Sequence[Sweep], axis: str) -> Html | None:
    """All datasets in one picture, each line against its own best; the thick one is their mean."""
    grids = {tuple(sorted(map(float, sweep.axes[axis]))) for sweep in sweeps}
    if len(grids) > 1:
        return None
    values = list(grids.pop())
    frame = svg.Frame(height=HEIGHT, left=50)
    x, x_axis = _across(frame, values, axis)
    bases = len({_base_name(sweep, sweeps) for sweep in sweeps})
    series: dict[str, list[list[float]]] = {}
    for sweep in sweeps:
        lost = {float(point.changes[axis]): point.mean - _best_on(sweeps, sweep.dataset) for point in sweep.points}
        name = _base_name(sweep, sweeps) if bases > 1 else view.label(sweep.dataset)
        series.setdefault(name, []).append([lost[value] for value in values])
    lines = {name: _column_means(found) for name, found in series.items()}
    average = _column_means(list(lines.values()))
    low, high = svg.spread([0.0, *(loss for line in lines.values() for loss in line)], 5)
    y = svg.Linear(low, high, *frame.y)
    marks = [x_axis, frame.upward(y, ticks := svg.ticks(low, high), svg.named(ticks))]
    for place, (name, losses) in enumerate(lines.items()):
        places = [(x(value), y(loss)) for value, loss in zip(values, losses, strict=True)]
        marks.append(svg.curve(places, f"{_series(place)} {'thin' if bases == 1 else ''}"))
        marks += [
            svg.circle(*spot, 3, f"dot {_series(place)}", f"{name}, {axis} {setting(value)}: {loss:+.4f}")
            for spot, value, loss in zip(places, values, losses, strict=True)
        ]
    datasets = len({sweep.dataset for sweep in sweeps})
    if bases == 1:
        places = [(x(value), y(loss)) for value, loss in zip(values, average, strict=True)]
        marks.append(svg.curve(places, "average"))
        best = max(range(len(values)), key=lambda place: average[place])
        told = f"The thick line is their mean; least is lost at {setting(values[best])} ({average[best]:+.4f})."
    else:
        told = f"Each line is the mean over {datasets} datasets."
    keys = legend((f"line {_series(place)}", name) for place, name in enumerate(lines))
    picture = joined((frame.picture(f"loss over {axis}. {told}", *marks), keys))
    return panel("all datasets", "what is lost against each one's best", picture, told)


def _across(frame: svg.Frame, values: Sequence[Any], axis: str) -> tuple[svg.Scale, Html]:
    numbers = sorted({float(value) for value in values})
    low, high = numbers[0], numbers[-1]
    if low == high:
        low, high = low - 0.5, high + 0.5
    title, x = _WORDS.get(axis, axis), svg.Linear(low, high, *frame.x)
    scale: svg.Scale = x
    if axis in _LOGARITHMIC and low >= 0:
        shift = 0.0 if low > 0 else 1.0
        scale = svg.Log(low, high, *frame.x, shift)
        title += ", logarithmic" if low > 0 else f", logarithmic in {axis} + 1"
    shown = svg.spaced(numbers, scale, gap=26)
    return scale, frame.across(scale, shown, [setting(value) for value in shown], title)


# --- more axes --------------------------------------------------------------------------------------------------------


def _grid(view: View, sweep: Sweep, down: str, across: str) -> Html:
    found = {(point.changes[down], point.changes[across]): point for point in sweep.points}
    means = [point.mean for point in sweep.points]
    low, high = min(means), max(means)
    base = current(sweep.base, down), current(sweep.base, across)
    rows = []
    for first in sweep.axes[down]:
        cells = [Cell(f"{down} {setting(first)}", None, "name")]
        for second in sweep.axes[across]:
            point = found.get((first, second))
            if point is None:
                cells.append(Cell("–"))
                continue
            kinds = ["strong ringed"] if point is sweep.best else []
            kinds += ["based"] if (first, second) == base else []
            heat = (point.mean - low) / (high - low) if high > low else 0.0
            tip = f"{_changes(point)}: {short(point.mean)}, 95 % interval {between(point.low, point.high)}"
            cells.append(Cell(short(point.mean), point.mean, " ".join(kinds), heat, tip))
        rows.append(Row(cells))
    head = ("", *(f"{across} {setting(value)}" for value in sweep.axes[across]))
    caption = (
        f"{view.label(sweep.dataset)}: base {sweep.base.name}; the highest is {short(high)} at {_changes(sweep.best)}"
    )
    return Table(head, rows, caption, sortable=False).html()


def _list(view: View, sweep: Sweep) -> Html:
    best = sorted(sweep.points, key=lambda point: -point.mean)[:_LISTED]
    rows = [
        Row(
            (
                Cell(_changes(point), _changes(point)),
                Cell(long(point.mean), point.mean),
                Cell(between(point.low, point.high)),
            )
        )
        for point in best
    ]
    caption = f"{view.label(sweep.dataset)}: the {len(best)} highest of {len(sweep.points):,} settings"
    remark = said("More than two axes have no picture; the highest settings are listed.")
    return joined((remark, Table(("setting", sweep.measure, "95 % interval"), rows, caption).html()))


# --- words ------------------------------------------------------------------------------------------------------------


def current(profile: Profile, axis: str) -> Any:
    """The profile's own value on that axis; None where it has none."""
    if axis == "alpha":
        both = profile.weights["lexical"] + profile.weights["dense"]
        return round(profile.weights["dense"] / both, 6) if both else None
    leg, _, what = axis.partition("_")
    if leg in profile.weights and what:
        return getattr(profile, f"{what}s", {}).get(leg)
    return getattr(profile, axis, None)


def _numeric(sweep: Sweep, axis: str) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in sweep.axes[axis])


def _series(place: int) -> str:
    return f"s{place % SERIES}" + (" dashed" if place >= SERIES else "")


def _base_name(sweep: Sweep, among: Sequence[Sweep]) -> str:
    """The base's name, and its digest where another of the same name ranks differently."""
    alike = {other.base.identity for other in among if other.base.name == sweep.base.name}
    return sweep.base.name if len(alike) == 1 else sweep.base.identity


def _best_words(sweep: Sweep, axis: str) -> str:
    return f"{sweep.base.name}: highest {short(sweep.best.mean)} at {axis} {setting(sweep.best.changes[axis])}"


def _base_words(sweep: Sweep, base: Any) -> str:
    return "" if base is None or isinstance(base, dict) else f", base {setting(base)}"


def _changes(point: Point) -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in point.changes.items())


def _tip(sweep: Sweep, point: Point, axis: str) -> str:
    words = (
        f"{axis} {setting(point.changes[axis])}: {short(point.mean)}, 95 % interval {between(point.low, point.high)}"
    )
    return f"{sweep.base.name}, {words}"


def _best_on(sweeps: Sequence[Sweep], dataset: str) -> float:
    return max(sweep.best.mean for sweep in sweeps if sweep.dataset == dataset)


def _column_means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
