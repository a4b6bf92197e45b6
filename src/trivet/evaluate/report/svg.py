"""Where in the picture does a number go?

Scales, axes and marks, as text. No plotting library: plotly would put over 4 MB of script into each page for some dots
and lines, and a picture from matplotlib has its colours and letters baked in, so that it is white on a dark screen and
illegible on a telephone. Ours takes its colours from the page's style sheet and is about as wide as a telephone; wider
screens show several side by side.

A mark with a ``tip`` tells it on hover: as SVG's own <title>, which the page's script shows more nicely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from trivet.errors import InputError
from trivet.evaluate.report.figures import clipped, places, width
from trivet.evaluate.report.markup import Attribute, Html, joined, tag

WIDTH = 380  # of a picture, in the units of its letters: 12 high, as the page's small text
LETTER = 7.5  # the width of a letter of that text, on average


class Scale(Protocol):
    def __call__(self, value: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Linear:
    """[low, high] → [start, end], evenly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Log:
    """Equal ratios are equally wide. ``shift`` is added first: 1 lets a 0 be shown."""

    low: float
    high: float
    start: float
    end: float
    shift: float = 0.0

    def __call__(self, value: float) -> float:
        low, high = (math.log(bound + self.shift) for bound in (self.low, self.high))
        return self.start + (self.end - self.start) * (math.log(value + self.shift) - low) / (high - low)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 times a power of ten, about so many."""
    step = round_step((high - low) / about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, places(step) + 2) + 0.0 for number in range(first, last + 1)]


def round_step(raw: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below ``raw``."""
    if not (math.isfinite(raw) and raw > 0):
        raise InputError(f"report: an axis cannot be divided into steps of {raw!r}")
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw * (1 - 1e-9))


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """1, 2 and 5 of each power of ten, or the powers alone where those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in powers for factor in factors]
        kept = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(kept) <= most:
            return kept
    return kept[:: math.ceil(len(kept) / most)]


def spread(
    values: Iterable[float], about: int = 5, floor: float = -math.inf, ceiling: float = math.inf
) -> tuple[float, float]:
    """The bounds of an axis that holds these values: round ones, never the same, not past a floor or ceiling that
    no value is past."""
    kept = [finite(value) for value in values] or [0.0]
    low, high = min(kept), max(kept)
    if high - low < 1e-6 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    step = round_step((high - low) / about)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return max(low, floor) if floor <= min(kept) else low, min(high, ceiling) if ceiling >= max(kept) else high


def spaced(values: Sequence[float], scale: Scale, gap: float) -> list[float]:
    """Those of the values whose labels do not run into the one before, the first and the last always."""
    ordered = sorted(values)
    kept: list[float] = []
    for value in ordered:
        if not kept or abs(scale(value) - scale(kept[-1])) >= gap:
            kept.append(value)
    if len(ordered) > 1 and kept[-1] != ordered[-1]:
        kept[-1 if len(kept) > 1 else len(kept) :] = [ordered[-1]]
    return kept


def finite(value: float) -> float:
    if not math.isfinite(value):
        raise InputError(f"report: {value!r} has no place in a picture; every number must be finite")
    return value


def at(value: float) -> str:
    """A coordinate: two places, no needless zeros."""
    return f"{round(finite(value), 2) + 0.0:.2f}".rstrip("0").rstrip(".")


# --- marks ------------------------------------------------------------------------------------------------------------


def mark(name: str, kind: str, tip: str | None = None, **attributes: Attribute) -> Html:
    """A shape; with a tip it is one the pointer and the arrow keys stop at."""
    told = {key: at(value) if isinstance(value, float | int) else value for key, value in attributes.items()}
    classes = f"{kind} tip" if tip else kind
    return tag(name, *((tag("title", tip),) if tip else ()), class_=classes, **told)


def line(x1: float, y1: float, x2: float, y2: float, kind: str, tip: str | None = None) -> Html:
    return mark("line", kind, tip, x1=x1, y1=y1, x2=x2, y2=y2)


def circle(x: float, y: float, radius: float, kind: str, tip: str | None = None) -> Html:
    return mark("circle", kind, tip, cx=x, cy=y, r=radius)


def rect(x: float, y: float, width: float, height: float, kind: str, tip: str | None = None) -> Html:
    return mark("rect", kind, tip, x=x, y=y, width=max(0.0, width), height=max(0.0, height))


def square(x: float, y: float, radius: float, kind: str, tip: str | None = None) -> Html:
    return rect(x - radius, y - radius, 2 * radius, 2 * radius, kind, tip)


def diamond(x: float, y: float, radius: float, kind: str, tip: str | None = None) -> Html:
    corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
    return mark("path", kind, tip, d=f"{_path(corners)}Z")


def curve(points: Sequence[tuple[float, float]], kind: str) -> Html:
    return mark("path", f"curve {kind}", d=_path(points))


def band(low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]], kind: str) -> Html:
    return mark("path", f"band {kind}", d=f"{_path((*high, *reversed(low)))}Z")


def dots(points: Iterable[tuple[float, float]], kind: str) -> Html:
    """Many dots that say nothing each, as one shape: points of no length with round ends."""
    return mark("path", f"dots {kind}", d="".join(f"M{at(x)} {at(y)}h0" for x, y in points))


def label(x: float, y: float, said: str, kind: str = "", anchor: str = "start", columns: float = math.inf) -> Html:
    """Text, cut to so many columns; the whole is then told on hover."""
    shown = clipped(said, columns)
    whole = (tag("title", said),) if shown != said else ()
    return tag("text", shown, *whole, x=at(x), y=at(y), class_=kind or None, text_anchor=anchor)


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{at(x)} {at(y)}" for x, y in points)


# --- the frame --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """The picture's size and the margins in which its axes are written."""

    height: float
    left: float = 44.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 38.0
    width: float = WIDTH

    @property
    def x(self) -> tuple[float, float]:
        return self.left, self.width - self.right

    @property
    def y(self) -> tuple[float, float]:
        """From the bottom up, as values grow."""
        return self.height - self.bottom, self.top

    def across(self, scale: Scale, values: Sequence[float], names: Sequence[str], title: str = "") -> Html:
        """The x axis: a line up at each tick, its name below."""
        low, high = self.y
        parts = [line(scale(value), low, scale(value), high, "grid") for value in values]
        parts += [
            label(scale(value), low + 16, name, "tick", "middle") for value, name in zip(values, names, strict=True)
        ]
        if title:
            parts.append(label((self.x[0] + self.x[1]) / 2, self.height - 4, title, "axis", "middle"))
        return joined(parts)

    def upward(self, scale: Scale, values: Sequence[float], names: Sequence[str]) -> Html:
        """The y axis: a line across at each tick, its name to the left."""
        low, high = self.x
        parts = [line(low, scale(value), high, scale(value), "grid") for value in values]
        parts += [
            label(low - 7, scale(value) + 4, name, "tick", "end") for value, name in zip(values, names, strict=True)
        ]
        return joined(parts)

    def picture(self, told: str, *marks: str) -> Html:
        """``told`` is the picture in words, for who cannot see it."""
        size = f"0 0 {at(self.width)} {at(self.height)}"
        return tag("svg", *marks, viewBox=size, class_="plot", role="img", aria_label=told, tabindex=0)


def named(values: Sequence[float]) -> list[str]:
    """The ticks in words, with as many places as tell them apart."""
    step = min((after - before for before, after in pairwise(values)), default=1.0)
    return [f"{value:,.{places(step)}f}" for value in values]


def margin(names: Iterable[str], most: float = 140.0) -> float:
    """Room to the left for these names."""
    return min(most, 14 + LETTER * max((width(name) for name in names), default=0))
