"""How does quality go with one setting?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet.evaluate.report import svg
from trivet.evaluate.report.axes import base_mean, base_name, base_value, is_base, series, tip, told
from trivet.evaluate.report.figures import setting, short
from trivet.evaluate.report.markup import Html, joined, legend, panel
from trivet.evaluate.report.material import View
from trivet.evaluate.sweeps import Sweep

HEIGHT = 250.0
BANDS = 3  # more, one over the other, are mud
_LOGARITHMIC = ("rrf_k",)
_WORDS = {"alpha": "alpha: 0 is words alone, 1 is meaning alone"}
_LINE = 24.0


def lines(view: View, sweeps: Sequence[Sweep], axis: str, title: str, kinds: Mapping[str, str]) -> Html:
    """Of one dataset: a curve and its band for each base."""
    frame = svg.Frame(height=HEIGHT)
    x, x_axis = _across(frame, [value for sweep in sweeps for value in sweep.axes[axis]], axis)
    own = [mean for sweep in sweeps if (mean := base_mean(view, sweep)) is not None]
    bounds = [bound for sweep in sweeps for point in sweep.points for bound in (point.low, point.high, point.mean)]
    low, high = svg.spread((*bounds, *own), 5, floor=0.0)
    y = svg.Linear(low, high, *frame.y)
    marks = [x_axis, frame.upward(y, ticks := svg.ticks(low, high), svg.named(ticks))]
    for sweep in sweeps:
        kind = kinds[sweep.base.identity]
        points = sorted(sweep.points, key=lambda point: float(point.changes[axis]))
        xs = [x(float(point.changes[axis])) for point in points]
        if len(sweeps) <= BANDS:
            ends = [[(at, y(bound)) for at, bound in zip(xs, bounds, strict=True)] for bounds in _bounds(sweep, axis)]
            marks.append(svg.band(ends[0], ends[1], kind))
        marks.append(_base(view, sweep, axis, frame, x, y, kind))
        marks.append(svg.curve([(at, y(point.mean)) for at, point in zip(xs, points, strict=True)], kind))
        marks.append(svg.circle(x(float(sweep.best.changes[axis])), y(sweep.best.mean), 8, f"ring {kind}"))
        marks += [
            svg.circle(at, y(point.mean), 3.5, f"dot {kind}", tip(sweep, point))
            for at, point in zip(xs, points, strict=True)
        ]
    return _panel(view, sweeps, axis, title, frame, marks)


def choices(view: View, sweeps: Sequence[Sweep], axis: str, title: str, kinds: Mapping[str, str]) -> Html:
    """Values without an order: a dot and its interval for each, one under the other."""
    points = [(sweep, point) for sweep in sweeps for point in sweep.points]
    names = [setting(point.changes[axis]) for _, point in points]
    frame = svg.Frame(height=_LINE * len(points) + 46, left=svg.margin(names), right=52, top=4, bottom=38)
    bounds = [bound for _, point in points for bound in (point.low, point.high, point.mean)]
    low, high = svg.spread(bounds, 4, floor=0.0)
    x = svg.Linear(low, high, *frame.x)
    marks = [frame.across(x, ticks := svg.ticks(low, high, 4), svg.named(ticks), sweeps[0].measure)]
    columns = (frame.left - 12) / svg.LETTER
    for row, ((sweep, point), name) in enumerate(zip(points, names, strict=True)):
        middle, kind, said = 4 + _LINE * (row + 0.5), kinds[sweep.base.identity], tip(sweep, point)
        classes = "name chosen" if is_base(sweep, point) else "name"
        marks.append(svg.label(frame.left - 9, middle + 4, name, classes, "end", columns))
        marks.append(svg.line(x(point.low), middle, x(point.high), middle, f"span {kind}", said))
        if point is sweep.best:
            marks.append(svg.circle(x(point.mean), middle, 8, f"ring {kind}"))
        marks.append(svg.circle(x(point.mean), middle, 4.5, f"dot {kind}", said))
        marks.append(svg.label(frame.width - 4, middle + 4, short(point.mean), "value", "end"))
    return _panel(view, sweeps, axis, title, frame, marks)


def losses(view: View, sweeps: Sequence[Sweep], axis: str) -> Html | None:
    """All datasets in one picture, each against its own best; None where their sweeps have not the same values."""
    grids = {tuple(sorted(map(float, sweep.axes[axis]))) for sweep in sweeps}
    if len(grids) > 1:
        return None
    values = list(grids.pop())
    several = len({base_name(sweep, sweeps) for sweep in sweeps}) > 1
    found: dict[str, list[list[float]]] = {}
    for sweep in sweeps:
        best = max(other.best.mean for other in sweeps if other.dataset == sweep.dataset)
        lost = {float(point.changes[axis]): point.mean - best for point in sweep.points}
        name = base_name(sweep, sweeps) if several else view.label(sweep.dataset)
        found.setdefault(name, []).append([lost[value] for value in values])
    drawn = {name: _column_means(rows) for name, rows in found.items()}
    frame = svg.Frame(height=HEIGHT, left=50)
    x, x_axis = _across(frame, values, axis)
    low, high = svg.spread([0.0, *(loss for row in drawn.values() for loss in row)], 5)
    y = svg.Linear(low, high, *frame.y)
    marks = [x_axis, frame.upward(y, ticks := svg.ticks(low, high), svg.named(ticks))]
    for place, (name, row) in enumerate(drawn.items()):
        spots = [(x(value), y(loss)) for value, loss in zip(values, row, strict=True)]
        marks.append(svg.curve(spots, f"{series(place)} thin"))
        marks += [
            svg.circle(*spot, 3, f"dot {series(place)}", f"{name}, {axis} {setting(value)}: {loss:+.4f}")
            for spot, value, loss in zip(spots, values, row, strict=True)
        ]
    words = f"Each line is the mean over {len({sweep.dataset for sweep in sweeps})} datasets."
    if not several:
        average = _column_means(list(drawn.values()))
        marks.append(svg.curve([(x(at), y(loss)) for at, loss in zip(values, average, strict=True)], "average"))
        best_at = max(range(len(values)), key=lambda place: average[place])
        words = f"The thick line is their mean: least is lost at {setting(values[best_at])} ({average[best_at]:+.4f})."
    keys = legend((f"line {series(place)}", name) for place, name in enumerate(drawn))
    picture = joined((frame.picture(f"loss over {axis}. {words}", *marks), keys))
    return panel("all datasets", "what is lost against each one's best", picture, words)


def _base(view: View, sweep: Sweep, axis: str, frame: svg.Frame, x: svg.Scale, y: svg.Scale, kind: str) -> Html:
    """A line at the base's value; where it is not on the curve, one at its score."""
    if (value := base_value(sweep, axis)) is not None:
        return svg.line(x(value), frame.y[0], x(value), frame.y[1], f"base-line {kind}")
    if (mean := base_mean(view, sweep)) is not None:
        said = f"{sweep.base.name} as it is: {short(mean)}"
        return svg.line(frame.x[0], y(mean), frame.x[1], y(mean), f"base-line {kind}", said)
    return Html("")


def _bounds(sweep: Sweep, axis: str) -> tuple[list[float], list[float]]:
    points = sorted(sweep.points, key=lambda point: float(point.changes[axis]))
    return [point.low for point in points], [point.high for point in points]


def _across(frame: svg.Frame, values: Sequence[Any], axis: str) -> tuple[svg.Scale, Html]:
    numbers = sorted({float(value) for value in values})
    low, high = numbers[0], numbers[-1]
    title = _WORDS.get(axis, axis)
    if low == high:
        low, high = low - 0.5, high + 0.5
    scale: svg.Scale = svg.Linear(low, high, *frame.x)
    if axis in _LOGARITHMIC and low >= 0:
        scale = svg.Log(low, high, *frame.x, 0.0 if low > 0 else 1.0)
        title += ", logarithmic" if low > 0 else f", logarithmic in {axis} + 1"
    shown = svg.spaced(numbers, scale, gap=26)
    return scale, frame.across(scale, shown, [setting(value) for value in shown], title)


def _panel(view: View, sweeps: Sequence[Sweep], axis: str, title: str, frame: svg.Frame, marks: Sequence[str]) -> Html:
    label, measure = view.label(sweeps[0].dataset), sweeps[0].measure
    words = "; ".join(told(view, sweep) for sweep in sweeps[:BANDS])
    picture = frame.picture(f"{measure} over {axis} on {label}: {words}", *marks)
    return panel(title or label, f"{measure}, {label}" if title else measure, picture, words)


def _column_means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
