"""How does a table of numbers look?

A first column of names, then numbers under each other. A terminal too narrow for all columns gets them in rows of
columns, each with the names again; nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trivet.surfaces.cli.screen import Screen, clean

GAP = 2  # cells between two columns

Cell = str | Text


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], screen: Screen, left: Sequence[str] = ()) -> Group:
    """``left`` names the columns of words among the numbers; the first is one."""
    widths = [
        max(cell_len(str(cell)) for cell in (title, *(row[at] for row in rows))) for at, title in enumerate(columns)
    ]
    parts: list[RenderableType] = []
    for chosen in _fitting(widths, screen.width):
        part = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        for at in chosen:
            words = at == 0 or columns[at] in left
            part.add_column(Text(columns[at]), justify="left" if words else "right", no_wrap=True, overflow="ellipsis")
        for row in rows:
            part.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in (row[at] for at in chosen)))
        parts += [Text(), part] if parts else [part]
    return Group(*parts)


def _fitting(widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand beside each other: the first, and as many others as there is room for."""
    found: list[list[int]] = [[0]]
    taken = widths[0]
    for at in range(1, len(widths)):
        if taken + GAP + widths[at] > room and len(found[-1]) > 1:
            found.append([0])
            taken = widths[0]
        found[-1].append(at)
        taken += GAP + widths[at]
    return found


def heading(text: str, about: str = "") -> Text:
    return Text.assemble((clean(text), "bold"), (f"  {clean(about)}" if about else "", "dim"))


def sentence(text: str, style: str = "dim") -> Text:
    return Text(clean(text), style=style)


def score(value: float) -> str:
    return f"{value:.4f}"


def span(low: float, high: float) -> str:
    return f"{low:.3f}–{high:.3f}"


def signed_span(low: float, high: float) -> str:
    return f"{signed(low)} to {signed(high)}"


def signed(value: float) -> str:
    """A difference: its sign always, and no minus before a rounded 0."""
    return f"{value:+.4f}".replace("-0.0000", "+0.0000")


def p(value: float) -> str:
    """Four places below 0.1, so that 0.0496 does not read as 0.05."""
    if value < 0.001:
        return "<0.001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def line(text: str, cells: int) -> str:
    """On one line of that many cells, whatever is in it."""
    plain = Text(" ".join(clean(text).split()))
    plain.truncate(max(1, cells), overflow="ellipsis")
    return plain.plain
