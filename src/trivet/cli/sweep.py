"""``trivet sweep``: try many values of some settings on a dataset and plot the scores."""

from __future__ import annotations

import json as json_
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.cli import evaluation, options, output, output_files, tables
from trivet.cli.evaluation import DatasetOptions, ProfileOptions
from trivet.cli.options import option, option_groups
from trivet.cli.output import Screen, clean, plural
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.evaluate import Sweep
    from trivet.evaluate.sweeps import Point
    from trivet.profile import Profile

EXAMPLE = "alpha=0:1:0.1"
WIDEST, NARROWEST = 60, 16  # cells of the plot
COLOUR, BASE_COLOUR = "#5fafff", "#ffd75f"
CAUTION = (
    "The highest score describes these topics; it is no promise for others. "
    "`trivet tune` chooses on some topics and tests the choice on the rest."
)


@option_groups
def sweep(
    dataset: evaluation.DatasetName,
    over: Annotated[
        list[str],
        option("--over", "NAME=VALUES", "A range with both ends (0:1:0.1) or a list (2,5,60). Repeat for a grid."),
    ],
    profiles: ProfileOptions,
    source: DatasetOptions,
    measure: evaluation.Measure = "nDCG@10",
    report: output_files.Report = None,
    json: options.Json = False,
) -> None:
    """Try every combination of some settings and plot the scores. Each leg runs once; only the fusion is repeated."""
    from trivet.evaluate import evaluate
    from trivet.evaluate import sweep as try_settings

    measure = evaluation.check_measures([measure])[0]
    axes = parse_axes(over)
    profile = profiles.single()
    output_files.check_file(report, "--report")
    loaded = source.load(dataset)
    with evaluation.progress() as progress, source.lab(loaded, progress) as lab:
        found = try_settings(lab, profile, axes, measure, progress)
        # the unchanged profile by the same path: a sweep of one point
        base = try_settings(lab, profile, {"k": (profile.k,)}, measure).points[0]
        if report:
            evaluations = [evaluate(lab, profile, measures=[measure], progress=progress)]
            output_files.write_report(report, f"trivet sweep {dataset}", evaluations, sweeps=[found])
    notes = [*loaded.notes, *evaluation.too_few_hits([measure], profile.k, profile.name)]
    if json:
        unchanged = {name: round(getattr(base, name), 4) for name in ("mean", "low", "high")}
        highest = found.to_dict()["points"][found.points.index(found.best)]
        unchanged_point = {"profile": base.profile.identity, **unchanged}
        output.print_json({**found.to_dict(), "as_it_is": unchanged_point, "highest": highest, "notes": notes})
        return
    screen = output.stdout()
    screen.show(_view(found, base, len(loaded.topics), notes, screen))


# --- --over -----------------------------------------------------------------------------------------------------------


def parse_axes(given: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the values of each setting; ``weights.dense`` is the profile's ``dense_weight``."""
    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, values = options.parse_pair(item, "--over", EXAMPLE)
        table, dot, leg = name.partition(".")
        name = f"{leg}_{table.removesuffix('s')}" if dot else name
        if name in found:
            raise InputError(f"--over: {name} was given twice; write all its values in one list")
        found[name] = _values(values, item)
    return found


def _values(text: str, item: str) -> tuple[Any, ...]:
    if ":" in text and "{" not in text:
        return _range(text, item)
    try:
        values = json_.loads(f"[{text}]")
    except json_.JSONDecodeError:
        values = [options.parse_value(part.strip()) for part in text.split(",") if part.strip()]
    if not values:
        raise InputError(f"--over: {item!r} has no value; write --over {EXAMPLE}")
    return tuple(values)


def _range(text: str, item: str) -> tuple[Any, ...]:
    """Return the values of start:stop:step, both ends included; in decimals, so that 0.3 is not 0.30000000000000004."""
    from trivet.evaluate.sweeps import MAX_POINTS

    try:
        start, stop, step = map(Decimal, text.split(":"))
        count = math.floor((stop - start) / step) + 1
    except (ArithmeticError, ValueError):
        raise InputError(f"--over: {item!r} is not start:stop:step; write --over {EXAMPLE}") from None
    if not 1 <= count <= MAX_POINTS:
        raise InputError(f"--over: {item!r} has {max(count, 0):,} values; allowed: 1 to {MAX_POINTS:,}")
    whole = all(part == part.to_integral_value() for part in (start, step))
    return tuple((int if whole else float)(start + step * at) for at in range(count))


# --- what is shown ----------------------------------------------------------------------------------------------------


def _view(found: Sweep, base: Point, topics: int, notes: Sequence[str], screen: Screen) -> RenderableType:
    points = list(found.points)
    if all(point.profile.identity != base.profile.identity for point in points):
        points.insert(0, base)
    counts = f"{plural(topics, 'topic')}, {plural(len(found.points), 'variant')} of {found.base.identity}"
    return Group(
        tables.heading(found.dataset, counts),
        Text(),
        _table(found, points, base, screen),
        Text(),
        tables.sentence(CAUTION, ""),
        *tables.notes(notes),
        tables.sentence(str(found.base)),
    )


def _table(found: Sweep, points: Sequence[Point], base: Point, screen: Screen) -> RenderableType:
    low, high = min(point.low for point in points), max(point.high for point in points)
    cells = _plot_width(found, screen)
    rows: list[list[tables.Cell]] = []
    for point in points:
        is_base, is_highest = point.profile.identity == base.profile.identity, point is found.best
        style = BASE_COLOUR if is_base else "bold" if is_highest else ""
        row: list[tables.Cell] = [
            *(Text(_value(point, name), style=style) for name in found.axes),
            Text(tables.score(point.mean), style=style),
            Text(tables.span(point.low, point.high), style="dim"),
        ]
        if screen.terminal:
            row.append(_plot(point, base.mean, low, high, cells, is_base))
        marks = (("unchanged",) if is_base else ()) + (("highest",) if is_highest else ())
        rows.append([*row, Text(", ".join(marks), style="dim")])
    scale = [f"{low:.3f}{f'{high:.3f}':>{cells - 5}}"] if screen.terminal else []
    columns = [*found.axes, found.measure, "95 %", *scale, ""]
    return tables.table(columns, rows, screen, left=(*scale, ""))


def _plot_width(found: Sweep, screen: Screen) -> int:
    taken = sum(max(len(name), 8) + tables.GAP for name in found.axes) + 38
    return max(NARROWEST, min(WIDEST, screen.width - taken))


def _value(point: Point, axis: str) -> str:
    value = point.changes[axis] if axis in point.changes else _unchanged(point.profile, axis)
    return clean(f"{value:g}" if isinstance(value, float) else str(value))


def _unchanged(profile: Profile, axis: str) -> Any:
    """Return the profile's own value of an axis, also of short forms such as ``alpha`` and ``dense_weight``."""
    leg, _, field = axis.partition("_")
    if axis == "alpha":
        lexical, dense = profile.weights["lexical"], profile.weights["dense"]
        return f"{dense / (lexical + dense):g}" if lexical + dense else "–"
    if leg in profile.weights:
        return getattr(profile, f"{field}s").get(leg, "–")
    return getattr(profile, axis)


def _plot(point: Point, base: float, low: float, high: float, cells: int, is_base: bool) -> Text:
    """Draw the mean as a dot on the line of its interval; an upright line marks the unchanged profile.

    The scale begins at the lowest interval, not at 0: positions can be compared, lengths cannot.
    """

    def at(value: float) -> int:
        return round((value - low) / (high - low) * (cells - 1)) if high > low else 0

    text = Text()
    for cell in range(cells):
        if cell == at(point.mean):
            text.append("●", style=BASE_COLOUR if is_base else COLOUR)
        elif cell == at(base):
            text.append("┼" if at(point.low) <= cell <= at(point.high) else "│", style=f"dim {BASE_COLOUR}")
        elif at(point.low) <= cell <= at(point.high):
            text.append("─", style=f"dim {COLOUR}")
        else:
            text.append(" ")
    return text
