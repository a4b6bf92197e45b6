"""Tables of the report, as data; the templates turn them into HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trivet.evaluate.report.formatting import long


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and the value that its column is sorted by."""

    shown: str
    value: float | str | None = None
    kind: str = ""
    heat: float | None = None  # 0 to 1: the depth of its background colour
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A heading and rows of cells; the first cell of a row names it. ``tips`` explains columns by their names."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    sortable: bool = True
    tips: Mapping[str, str] = field(default_factory=dict)
    chosen: frozenset[str] = frozenset()  # names of the rows to highlight


def named(text: str) -> Cell:
    return Cell(text, text, "name")


def heat(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 0.0


def mean_cell(mean: float | None, column: Sequence[float]) -> Cell:
    """Return a cell that is coloured by its place in the column, the highest in bold."""
    if mean is None:
        return Cell("–")
    low, high = min(column), max(column)
    return Cell(long(mean), mean, "strong" if mean == high and high > low else "", heat(mean, low, high))
