"""What does a setting do, at a glance? (what ``trivet sweep`` shows)

A point for each mean on a line for its interval, all on one scale; an upright line stands where the profile as it is
scores. The scale begins at the lowest interval, not at 0: lengths are not to be compared, positions are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.surfaces.cli import tables
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.evaluate import Sweep
    from trivet.evaluate.sweeps import Point
    from trivet.profile import Profile

WIDEST, NARROWEST = 60, 16  # cells
COLOUR, BASE_COLOUR = "#5fafff", "#ffd75f"
CAUTION = (
    "The highest of many is a description of these topics, not a promise for others: "
    "`trivet tune` chooses on some topics and proves it on the rest."
)


def shown(found: Sweep, base: Point, topics: int, notes: Sequence[str], screen: Screen) -> RenderableType:
    points = list(found.points)
    if all(point.profile.identity != base.profile.identity for point in points):
        points.insert(0, base)
    parts: list[RenderableType] = [
        tables.heading(found.dataset, f"{topics:,} topics, {len(found.points):,} settings of {found.base.identity}"),
        Text(),
        _table(found, points, base, screen),
        Text(),
        tables.sentence(CAUTION, ""),
        *(Text(f"note: {clean(note)}", style="yellow") for note in notes),
        tables.sentence(str(found.base)),
    ]
    return Group(*parts)


def _table(found: Sweep, points: Sequence[Point], base: Point, screen: Screen) -> RenderableType:
    low, high = min(point.low for point in points), max(point.high for point in points)
    rows: list[list[tables.Cell]] = []
    for point in points:
        is_base, is_highest = point.profile.identity == base.profile.identity, point is found.best
        style = BASE_COLOUR if is_base else "bold" if is_highest else ""
        row: list[tables.Cell] = [
            *(Text(_said(point, name), style=style) for name in found.axes),
            Text(tables.score(point.mean), style=style),
            Text(tables.span(point.low, point.high), style="dim"),
        ]
        if screen.terminal:
            row.append(_plot(point, base.mean, low, high, _cells(found, screen), is_base))
        marks = (("as it is",) if is_base else ()) + (("highest",) if is_highest else ())
        rows.append([*row, Text(", ".join(marks), style="dim")])
    scale = [_scale(low, high, _cells(found, screen))] if screen.terminal else []
    columns = [*found.axes, found.measure, "95 %", *scale, ""]
    return tables.table(columns, rows, screen, left=(*scale, ""))


def _cells(found: Sweep, screen: Screen) -> int:
    taken = sum(max(len(name), 8) + tables.GAP for name in found.axes) + 38
    return max(NARROWEST, min(WIDEST, screen.width - taken))


def _said(point: Point, axis: str) -> str:
    value = point.changes[axis] if axis in point.changes else _own(point.profile, axis)
    return clean(f"{value:g}" if isinstance(value, float) else str(value))


def _own(profile: Profile, axis: str) -> Any:
    """What the profile as it is says of an axis; the sugar of settings is read backwards."""
    leg, _, what = axis.partition("_")
    if axis == "alpha":
        words, meaning = profile.weights["lexical"], profile.weights["dense"]
        told = f"{meaning / (words + meaning):g}" if words + meaning else "–"
        return told if profile.weighing == "fixed" else f"by {profile.weighing}"
    if leg in profile.weights:
        return getattr(profile, f"{what}s").get(leg, "–")
    return getattr(profile, axis)


def _scale(low: float, high: float, cells: int) -> str:
    return f"{low:.3f}{f'{high:.3f}':>{cells - 5}}"


def _plot(point: Point, base: float, low: float, high: float, cells: int, is_base: bool) -> Text:
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
