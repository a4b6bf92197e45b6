"""The sections on settings: sweeps over one or more settings, and the headroom of the fusion weights.

Sweeps of the same axes and measure belong together: one chart for each dataset, a line for each base profile. Over
several datasets a first chart shows what each value loses against that dataset's best, to look for one value for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.report.chart import Axis, Mark, Panel, Plot, Row, row_plot
from trivet.evaluate.report.formatting import between, long, setting, short
from trivet.evaluate.report.material import View
from trivet.evaluate.report.table import Cell, Table, heat
from trivet.evaluate.sweeps import Headroom, Point, Sweep
from trivet.profile import Profile

SERIES = 8  # colours; further lines repeat them dashed, then dotted
UNFOLDED = 9  # charts of a setting that are shown unfolded
BANDS = 3  # interval bands in one chart: more hide each other
LISTED = 15  # best settings shown of a sweep over more than two axes
LOGARITHMIC = ("rrf_k",)
TITLES = {"alpha": "alpha: 0 is lexical alone, 1 is dense alone"}


def sweeps(view: View) -> dict[str, Any] | None:
    """Return the charts of every sweep, grouped by axes and measure where there are several datasets."""
    kinds: dict[tuple[str, ...], list[Sweep]] = {}
    for sweep in view.material.sweeps:
        if sweep.points and sweep.axes:
            kinds.setdefault((sweep.measure, *sweep.axes), []).append(sweep)
    if not kinds:
        return None
    if len({sweep.dataset for sweep in view.material.sweeps}) == 1:
        panels = [panel for found in kinds.values() for panel in _panels(view, found, titled=True)]
        legends = [keys for found in kinds.values() if (keys := _keys(found))]
        return {"groups": [{"title": "", "legends": legends, "panels": panels, "folded": []}]}
    groups = []
    for (measure, *axes), found in kinds.items():
        overview, panels = _overview(view, found), _panels(view, found)
        fold = len(overview) + len(panels) > UNFOLDED
        groups.append(
            {
                "title": f"{' × '.join(axes)}, {measure}",
                "legends": [keys] if (keys := _keys(found)) else [],
                "panels": overview if fold else [*overview, *panels],
                "folded": panels if fold else [],
            }
        )
    return {"groups": groups}


def _panels(view: View, found: Sequence[Sweep], titled: bool = False) -> list[Panel]:
    axes = list(found[0].axes)
    title = " × ".join(axes) if titled else ""
    if len(axes) > 1:
        draw_one = _grid if len(axes) == 2 else _list
        return [draw_one(view, sweep, title) for sweep in found]
    by_dataset: dict[str, list[Sweep]] = {}
    for sweep in found:
        by_dataset.setdefault(sweep.dataset, []).append(sweep)
    draw = _lines if all(numeric(sweep, axes[0]) for sweep in found) else _choices
    return [draw(view, items, axes[0], title, _series(found)) for items in by_dataset.values()]


def _overview(view: View, found: Sequence[Sweep]) -> list[Panel]:
    """Return one chart of all datasets, where there are several and their values have an order."""
    axes = list(found[0].axes)
    if len(axes) > 1 or len({sweep.dataset for sweep in found}) < 2:
        return []
    if not all(numeric(sweep, axes[0]) for sweep in found):
        return []
    panel = _losses(view, found, axes[0])
    return [panel] if panel else []


def _series(found: Sequence[Sweep]) -> dict[str, str]:
    """Return the class of each base profile's line, the same in every chart."""
    bases = dict.fromkeys(sweep.base.identity for sweep in found)
    return {base: series(index) for index, base in enumerate(bases)}


def series(index: int) -> str:
    return f"s{index % SERIES}{('', ' dashed', ' dotted')[index // SERIES % 3]}"


def _keys(found: Sequence[Sweep]) -> list[tuple[str, str]]:
    """Return which line is of which base profile, where there are several."""
    names = {sweep.base.identity: _base_name(sweep, found) for sweep in found}
    if len(names) < 2 or len(found[0].axes) > 1:
        return []
    return [(f"line {kind}", names[base]) for base, kind in _series(found).items()]


# --- the base profile on an axis --------------------------------------------------------------------------------------


def numeric(sweep: Sweep, axis: str) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in sweep.axes[axis])


def current(profile: Profile, axis: str) -> Any:
    """Return the profile's value of a setting, shorthands such as ``alpha`` included; None where it has none."""
    if axis == "alpha":
        both = profile.weights["lexical"] + profile.weights["dense"]
        return round(profile.weights["dense"] / both, 6) if both else None
    leg, _, name = axis.partition("_")
    if leg in profile.weights and name:
        return getattr(profile, f"{name}s", {}).get(leg)
    return getattr(profile, axis, None)


def is_base(sweep: Sweep, point: Point) -> bool:
    """Return whether a point ranks as the base does; one setting may turn another off, so its value is not enough."""
    return _digest(point.profile) == _digest(sweep.base)


def base_value(sweep: Sweep, axis: str) -> float | None:
    """Return the base's place on a numeric axis; None where no point of the axis ranks as the base does."""
    value = current(sweep.base, axis)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not min(sweep.axes[axis]) <= value <= max(sweep.axes[axis]):
        return None
    try:
        same = _digest(sweep.base.with_changes({axis: value})) == _digest(sweep.base)
    except InputError:
        return None
    return float(value) if same else None


def _base_mean(view: View, sweep: Sweep) -> float | None:
    """Return the base's own score, where the sweep passes through it or the report has it evaluated."""
    for point in sweep.points:
        if is_base(sweep, point):
            return point.mean
    for item in view.material.evaluations:
        if item.dataset == sweep.dataset and item.profile and _digest(item.profile) == _digest(sweep.base):
            return item.mean(sweep.measure) if item.scores.get(sweep.measure) else None
    return None


def _base_name(sweep: Sweep, among: Sequence[Sweep]) -> str:
    """Return the base's name, with its digest where another base of that name ranks differently."""
    alike = {other.base.identity for other in among if other.base.name == sweep.base.name}
    return sweep.base.name if len(alike) == 1 else sweep.base.identity


def _digest(profile: Profile) -> str:
    return profile.identity.rpartition("#")[2]


def _summary(view: View, sweep: Sweep) -> str:
    """Return the sweep in a sentence, with the base's score beside the highest."""
    words = f"{sweep.base.name}: highest {short(sweep.best.mean)} at {_changes(sweep.best)}"
    mean = _base_mean(view, sweep)
    if mean is None:
        return words
    passed = any(is_base(sweep, point) for point in sweep.points) or len(sweep.axes) > 1
    return f"{words}; unchanged {short(mean)}{'' if passed else ', not on the curve'}"


def _changes(point: Point) -> str:
    return ", ".join(f"{name} {setting(value)}" for name, value in point.changes.items())


def _tip(sweep: Sweep, point: Point) -> str:
    name = f"{sweep.base.name}, unchanged" if is_base(sweep, point) else sweep.base.name
    return f"{name}, {_changes(point)}: {short(point.mean)}, 95 % interval {between(point.low, point.high)}"


def _panel(
    view: View, sweep: Sweep, title: str, content: Plot | Table, below: str, keys: Sequence[tuple[str, str]] = ()
) -> Panel:
    dataset = view.label(sweep.dataset)
    return Panel(title or dataset, f"{sweep.measure}, {dataset}" if title else sweep.measure, content, below, keys)


# --- one axis ---------------------------------------------------------------------------------------------------------


def _lines(view: View, found: Sequence[Sweep], axis: str, title: str, kinds: Mapping[str, str]) -> Panel:
    """Return one dataset's chart: a curve with its band for each base."""
    x = _value_axis([value for sweep in found for value in sweep.axes[axis]], axis)
    means = [mean for sweep in found if (mean := _base_mean(view, sweep)) is not None]
    y = Axis.fit(
        (*means, *(v for sweep in found for point in sweep.points for v in (point.low, point.high, point.mean))),
        floor=0.0,
    )
    marks: list[Mark] = []
    for sweep in found:
        kind = kinds[sweep.base.identity]
        points = sorted(((float(point.changes[axis]), point) for point in sweep.points), key=lambda item: item[0])
        if len(found) <= BANDS:
            outline = [*((at, point.high) for at, point in points), *((at, point.low) for at, point in points[::-1])]
            marks.append(Mark("area", f"band {kind}", outline))
        marks += _base_line(view, sweep, axis, x, y, kind)
        marks.append(Mark("curve", f"curve {kind}", [(at, point.mean) for at, point in points]))
        marks.append(Mark("circle", f"ring {kind}", ((float(sweep.best.changes[axis]), sweep.best.mean),), size=8.0))
        marks += [Mark("circle", f"dot {kind}", ((at, point.mean),), _tip(sweep, point), 3.5) for at, point in points]
    words = "; ".join(_summary(view, sweep) for sweep in found[:BANDS])
    label = f"{found[0].measure} over {axis} on {view.label(found[0].dataset)}: {words}"
    return _panel(view, found[0], title, Plot(label, x, y, marks), words)


def _base_line(view: View, sweep: Sweep, axis: str, x: Axis, y: Axis, kind: str) -> list[Mark]:
    """Return a line at the base's value, or at its score where it is not on the curve."""
    if (value := base_value(sweep, axis)) is not None:
        return [Mark("line", f"base-line {kind}", ((value, y.low), (value, y.high)))]
    if (mean := _base_mean(view, sweep)) is not None:
        tip = f"{sweep.base.name}, unchanged: {short(mean)}"
        return [Mark("line", f"base-line {kind}", ((x.low, mean), (x.high, mean)), tip)]
    return []


def _choices(view: View, found: Sequence[Sweep], axis: str, title: str, kinds: Mapping[str, str]) -> Panel:
    """Return one dataset's chart of values without an order: a dot with its interval for each."""
    rows = []
    for sweep in found:
        kind = kinds[sweep.base.identity]
        for point in sweep.points:
            tip, at = _tip(sweep, point), ((point.mean, 0.0),)
            marks = [Mark("line", f"span {kind}", ((point.low, 0.0), (point.high, 0.0)), tip)]
            marks += [Mark("circle", f"ring {kind}", at, size=8.0)] if point is sweep.best else []
            marks.append(Mark("circle", f"dot {kind}", at, tip))
            rows.append(Row(setting(point.changes[axis]), short(point.mean), marks, chosen=is_base(sweep, point)))
    bounds = (v for sweep in found for point in sweep.points for v in (point.low, point.high, point.mean))
    words = "; ".join(_summary(view, sweep) for sweep in found[:BANDS])
    label = f"{found[0].measure} over {axis} on {view.label(found[0].dataset)}: {words}"
    plot = row_plot(label, Axis.fit(bounds, found[0].measure, 4, floor=0.0), rows)
    return _panel(view, found[0], title, plot, words)


def _losses(view: View, found: Sequence[Sweep], axis: str) -> Panel | None:
    """Return all datasets in one chart, each against its own best; None where the sweeps have different values."""
    grids = {tuple(sorted(map(float, sweep.axes[axis]))) for sweep in found}
    if len(grids) > 1:
        return None
    values = list(grids.pop())
    several = len({_base_name(sweep, found) for sweep in found}) > 1
    rows: dict[str, list[list[float]]] = {}
    for sweep in found:
        best = max(other.best.mean for other in found if other.dataset == sweep.dataset)
        lost = {float(point.changes[axis]): point.mean - best for point in sweep.points}
        name = _base_name(sweep, found) if several else view.label(sweep.dataset)
        rows.setdefault(name, []).append([lost[value] for value in values])
    losses = {name: _column_means(several_rows) for name, several_rows in rows.items()}
    marks: list[Mark] = []
    for index, (name, row) in enumerate(losses.items()):
        points = list(zip(values, row, strict=True))
        marks.append(Mark("curve", f"curve {series(index)} thin", points))
        marks += [
            Mark("circle", f"dot {series(index)}", (at,), f"{name}, {axis} {setting(at[0])}: {at[1]:+.4f}", 3.0)
            for at in points
        ]
    words = f"Each line is the mean over {len({sweep.dataset for sweep in found})} datasets."
    if not several:
        average = _column_means(list(losses.values()))
        marks.append(Mark("curve", "curve average", list(zip(values, average, strict=True))))
        loss, value = max(zip(average, values, strict=True), key=lambda item: item[0])
        words = f"The thick line is their mean: least is lost at {setting(value)} ({loss:+.4f})."
    y = Axis.fit((0.0, *(loss for row in losses.values() for loss in row)))
    plot = Plot(f"loss over {axis}. {words}", _value_axis(values, axis), y, marks, left=50.0)
    keys = [(f"line {series(index)}", name) for index, name in enumerate(losses)]
    return Panel("all datasets", "loss against each dataset's best", plot, words, keys)


def _value_axis(values: Sequence[Any], axis: str) -> Axis:
    numbers = sorted({float(value) for value in values})
    low, high, title = numbers[0], numbers[-1], TITLES.get(axis, axis)
    labels = [setting(value) for value in numbers]
    if low == high:
        low, high = low - 0.5, high + 0.5
    if axis not in LOGARITHMIC or low < 0:
        return Axis(low, high, numbers, labels, title)
    words = "logarithmic" if low > 0 else f"logarithmic in {axis} + 1"
    return Axis(low, high, numbers, labels, f"{title}, {words}", shift=0.0 if low > 0 else 1.0)


def _column_means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


# --- several axes -----------------------------------------------------------------------------------------------------


def _grid(view: View, sweep: Sweep, title: str) -> Panel:
    """Return a heat map of two axes: the highest is framed, the base has a dashed frame."""
    down, across = sweep.axes
    found = {(point.changes[down], point.changes[across]): point for point in sweep.points}
    means = [point.mean for point in sweep.points]
    low, high = min(means), max(means)
    rows = []
    for first in sweep.axes[down]:
        cells = [Cell(setting(first), kind="name")]
        for second in sweep.axes[across]:
            if (point := found.get((first, second))) is None:
                cells.append(Cell("–"))
                continue
            kind = f"{'based ' if is_base(sweep, point) else ''}{'strong ringed' if point is sweep.best else ''}"
            shade = heat(point.mean, low, high)
            cells.append(Cell(short(point.mean), point.mean, kind.strip(), shade, _tip(sweep, point)))
        rows.append(cells)
    head = (f"{down} ↓\n{across} →", *(setting(value) for value in sweep.axes[across]))
    return _panel(view, sweep, title, Table(head, rows, sortable=False), _summary(view, sweep))


def _list(view: View, sweep: Sweep, title: str) -> Panel:
    """Return the best settings of a sweep over more axes than a chart has."""
    best = sorted(sweep.points, key=lambda point: -point.mean)[:LISTED]
    rows = [
        [
            Cell(_changes(point), _changes(point)),
            Cell(long(point.mean), point.mean),
            Cell(between(point.low, point.high), point.low),
        ]
        for point in best
    ]
    words = f"The {len(best)} highest of {len(sweep.points):,} settings: more than two axes have no chart."
    return _panel(view, sweep, title, Table(("setting", sweep.measure, "95 % interval"), rows), words)


# --- headroom ---------------------------------------------------------------------------------------------------------


def headroom(view: View) -> dict[str, Any] | None:
    """Return, by measure, what the best weights could gain on each dataset."""
    by_measure: dict[str, list[tuple[str, Headroom]]] = {}
    for dataset, item in view.material.headrooms.items():
        by_measure.setdefault(item.measure, []).append((view.label(dataset), item))
    return {"panels": [_headroom(measure, found) for measure, found in by_measure.items()]} if by_measure else None


def _headroom(measure: str, found: Sequence[tuple[str, Headroom]]) -> Panel:
    rows = []
    for name, item in found:
        oracle = f"{name}: best alpha of each topic {short(item.oracle_mean)}"
        best = f"{name}: one alpha for all, {setting(item.best_alpha)}: {short(item.best_mean)}"
        marks = (
            Mark("line", "span fused", ((item.mean, 0.0), (item.oracle_mean, 0.0))),
            Mark("diamond", "dot s2", ((item.oracle_mean, 0.0),), oracle, 6.0),
            Mark("square", "dot s0", ((item.best_mean, 0.0),), best, 5.0),
            Mark("circle", "dot fused", ((item.mean, 0.0),), f"{name}: unchanged {short(item.mean)}"),
        )
        rows.append(Row(name, f"{item.oracle_mean - item.mean:+.3f}", marks))
    values = (value for _, item in found for value in (item.mean, item.best_mean, item.oracle_mean))
    label = f"{measure}: the profile, the best alpha and the oracle, for {len(found)} datasets"
    plot = row_plot(label, Axis.fit(values, measure, 4, floor=0.0), rows, right=62.0)
    return Panel(measure, "on the right: the oracle's gain", plot)
