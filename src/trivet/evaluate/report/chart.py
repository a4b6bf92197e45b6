"""Charts: axes, and marks in the units of those axes.

The templates turn a ``Plot`` into SVG. Colours come from the page's style sheet by class name, so that one chart serves
the light and the dark page. A chart is as wide as a telephone; wider screens show several side by side. Why this is
not a plotting library: docs/adr/0033.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.cells import cell_len

from trivet.evaluate.report.formatting import clipped, places
from trivet.evaluate.report.table import Table

WIDTH = 380.0  # of a chart, in SVG units; text is 12 units high
LETTER = 7.5  # average width of a letter of that text
GAP = 30.0  # least distance between two tick labels of the x axis
ROW, HEADING = 24.0, 22.0  # heights in a row chart

Point = tuple[float, float]


# --- axes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis, its ticks and its title; ``shift`` makes it logarithmic in value + shift."""

    low: float
    high: float
    ticks: Sequence[float]
    labels: Sequence[str]
    title: str = ""
    shift: float | None = None

    @classmethod
    def fit(cls, values: Iterable[float], title: str = "", about: int = 5, floor: float = -math.inf) -> Axis:
        """Return a linear axis with round bounds that holds these values, and about that many ticks."""
        low, high = bounds(values, about, floor)
        ticks = round_ticks(low, high, about)
        return cls(low, high, ticks, decimals(ticks), title)

    @classmethod
    def unit(cls, title: str = "", percent: bool = False) -> Axis:
        """Return an axis from 0 to 1."""
        ticks = round_ticks(0.0, 1.0)
        return cls(0.0, 1.0, ticks, [f"{tick:.0%}" for tick in ticks] if percent else decimals(ticks), title)

    def share(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        if self.shift is None:
            return (value - self.low) / (self.high - self.low)
        low, high, at = (math.log(number + self.shift) for number in (self.low, self.high, value))
        return (at - low) / (high - low)


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return the multiples of a round step between the bounds."""
    step = round_step((high - low) / about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, places(step) + 2) + 0.0 for number in range(first, last + 1)]


def round_step(raw: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below ``raw``."""
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw * (1 - 1e-9))


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return 1, 2 and 5 of each power of ten, or fewer of them where those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in powers for factor in factors]
        kept = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(kept) <= most:
            return kept
    return kept[:: math.ceil(len(kept) / most)]


def bounds(values: Iterable[float], about: int = 5, floor: float = -math.inf) -> tuple[float, float]:
    """Return round bounds that hold the values, never equal, and not below ``floor`` unless a value is."""
    kept = list(values) or [0.0]
    low, high = min(kept), max(kept)
    if high - low < 1e-6 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    step = round_step((high - low) / about)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return max(low, floor) if floor <= min(kept) else low, high


def decimals(ticks: Sequence[float]) -> list[str]:
    """Format ticks with as many decimals as tell them apart."""
    step = min((after - before for before, after in pairwise(ticks)), default=1.0)
    return [f"{tick:,.{places(step)}f}" for tick in ticks]


# --- marks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """A shape in the units of the axes; ``kind`` is its classes in the style sheet, ``size`` is in SVG units."""

    shape: str
    kind: str
    points: Sequence[Point]
    tip: str = ""
    size: float = 4.5
    text: str = ""
    anchor: str = "start"
    offset: Point = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Element:
    """A mark as SVG."""

    tag: str
    kind: str
    attributes: dict[str, str]
    tip: str = ""
    text: str = ""


Shape = tuple[str, dict[str, float | str]]  # tag and attributes


def px(value: float) -> str:
    """Format a coordinate with at most two decimals."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _path(points: Iterable[Point], end: str = "") -> str:
    return "M" + "L".join(f"{px(x)} {px(y)}" for x, y in points) + end


def _line(mark: Mark, points: Sequence[Point]) -> Shape:
    (x1, y1), (x2, y2) = points
    return "line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2}


def _circle(mark: Mark, points: Sequence[Point]) -> Shape:
    ((x, y),) = points
    return "circle", {"cx": x, "cy": y, "r": mark.size}


def _bar(mark: Mark, points: Sequence[Point]) -> Shape:
    (x1, y1), (x2, y2) = points
    return "rect", {"x": min(x1, x2), "y": min(y1, y2), "width": abs(x2 - x1), "height": abs(y2 - y1)}


def _square(mark: Mark, points: Sequence[Point]) -> Shape:
    ((x, y),) = points
    return _bar(mark, ((x - mark.size, y - mark.size), (x + mark.size, y + mark.size)))


def _diamond(mark: Mark, points: Sequence[Point]) -> Shape:
    ((x, y),), size = points, mark.size
    return "path", {"d": _path(((x, y - size), (x + size, y), (x, y + size), (x - size, y)), "Z")}


def _text(mark: Mark, points: Sequence[Point]) -> Shape:
    ((x, y),), (right, down) = points, mark.offset
    return "text", {"x": x + right, "y": y + down, "text-anchor": mark.anchor}


SHAPES: dict[str, Callable[[Mark, Sequence[Point]], Shape]] = {
    "line": _line,
    "circle": _circle,
    "bar": _bar,
    "square": _square,
    "diamond": _diamond,
    "text": _text,
    "curve": lambda mark, points: ("path", {"d": _path(points)}),
    "area": lambda mark, points: ("path", {"d": _path(points, "Z")}),
    # many dots as one path: segments of no length with round ends
    "dots": lambda mark, points: ("path", {"d": "".join(f"M{px(x)} {px(y)}h0" for x, y in points)}),
}


# --- charts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a row chart: a name on the left, marks around y = 0, and a value on the right."""

    name: str
    end: str
    marks: Sequence[Mark]
    heading: str = ""
    chosen: bool = False
    y: float = 0.0  # its middle, set when the chart is laid out


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart; ``label`` says in words what it shows, for screen readers."""

    label: str
    x: Axis
    y: Axis | None  # None: a row chart, whose y is in SVG units
    marks: Sequence[Mark]
    height: float = 250.0
    left: float = 44.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 38.0
    width: float = WIDTH
    rows: Sequence[Row] = ()
    headings: Sequence[tuple[str, float]] = ()

    def place(self, point: Point) -> Point:
        """Return the position of a point in SVG units."""
        x = self.left + self.x.share(point[0]) * (self.width - self.right - self.left)
        if self.y is None:
            return x, point[1]
        low = self.height - self.bottom
        return x, low + self.y.share(point[1]) * (self.top - low)

    @property
    def across(self) -> list[tuple[float, str]]:
        """Position and label of each tick of the x axis whose label does not run into the one before."""
        placed = [(self.place((tick, 0.0 if self.y is None else self.y.low))[0], tick) for tick in self.x.ticks]
        kept: list[int] = []
        for index, (x, _) in enumerate(placed):
            if not kept or abs(x - placed[kept[-1]][0]) >= GAP:
                kept.append(index)
        last = len(placed) - 1
        if last > 0 and kept[-1] != last:  # the first and the last tick always stay
            kept[-1 if len(kept) > 1 else len(kept) :] = [last]
        return [(placed[index][0], self.x.labels[index]) for index in kept]

    @property
    def upward(self) -> list[tuple[float, str]]:
        """Position and label of each tick of the y axis."""
        if self.y is None:
            return []
        ticks = zip(self.y.ticks, self.y.labels, strict=True)
        return [(self.place((self.x.low, tick))[1], label) for tick, label in ticks]

    @property
    def elements(self) -> list[Element]:
        """The marks as SVG elements."""
        found = []
        for mark in self.marks:
            tag, numbers = SHAPES[mark.shape](mark, [self.place(point) for point in mark.points])
            attributes = {name: value if isinstance(value, str) else px(value) for name, value in numbers.items()}
            found.append(Element(tag, mark.kind, attributes, mark.tip, mark.text))
        return found

    def name(self, row: Row) -> str:
        """Return a row's name, shortened to the room on the left."""
        return clipped(row.name, (self.left - 12) / LETTER)


def row_plot(
    label: str, x: Axis, rows: Sequence[Row], *, right: float = 52.0, lines: Iterable[tuple[float, str]] = ()
) -> Plot:
    """Lay out a row chart; ``right`` is the room for the values, ``lines`` are (x, class) from top to bottom."""
    placed: list[Row] = []
    headings: list[tuple[str, float]] = []
    top = 4.0
    several = len({row.heading for row in rows}) > 1
    for row in rows:
        if several and (not placed or row.heading != placed[-1].heading):
            headings.append((row.heading, top + HEADING - 7))
            top += HEADING
        placed.append(replace(row, y=top + ROW / 2))
        top += ROW
    marks = [Mark("line", kind, ((value, 2.0), (value, top + 2))) for value, kind in lines]
    for row in placed:
        marks += [replace(mark, points=[(x, row.y + y) for x, y in mark.points]) for mark in row.marks]
    return Plot(
        label,
        x,
        None,
        marks,
        height=top + 40,
        left=min(140.0, 14 + LETTER * max((cell_len(row.name) for row in rows), default=0)),
        right=right,
        top=2.0,
        rows=placed,
        headings=headings,
    )


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart or a small table with its title, a text below it and the keys of its colours."""

    name: str
    detail: str
    content: Plot | Table
    below: str = ""
    keys: Sequence[tuple[str, str]] = ()
