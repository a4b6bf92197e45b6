"""Tables of numbers, lists of fields, and the number formats in them.

Where a terminal is too narrow for all columns, the rest follows in a second table below with the names repeated, so
that nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trivet.cli.output import Screen, clean, one_line

GAP = 2  # cells between two columns

Cell = str | Text


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], screen: Screen, left: Sequence[str] = ()) -> Group:
    """Draw a table: the first column and those named in ``left`` hold text, the others numbers."""
    widths = [
        max(cell_len(str(cell)) for cell in (title, *(row[at] for row in rows))) for at, title in enumerate(columns)
    ]
    parts: list[RenderableType] = []
    for chosen in _split(widths, screen.width):
        part = plain_table(GAP)
        for at in chosen:
            is_text = at == 0 or columns[at] in left
            part.add_column(
                Text(columns[at]), justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis"
            )
        for row in rows:
            part.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in (row[at] for at in chosen)))
        parts += [Text(), part] if parts else [part]
    return Group(*parts)


def plain_table(gap: int) -> Table:
    """Return a table without lines."""
    return Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")


def fields(rows: Iterable[tuple[str, Cell]]) -> Table:
    """Draw one line per field, its name before its value."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in rows:
        grid.add_row(Text(clean(name)), Text(clean(value)) if isinstance(value, str) else value)
    return grid


def _split(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns of each table: the first column, and as many others as fit beside it."""
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


def notes(texts: Iterable[str]) -> list[Text]:
    return [Text(f"note: {clean(text)}", style="yellow") for text in texts]


def score(value: float) -> str:
    return f"{value:.4f}"


def span(low: float, high: float) -> str:
    return f"{low:.3f}–{high:.3f}"


def signed_span(low: float, high: float) -> str:
    return f"{signed(low)} to {signed(high)}"


def signed(value: float) -> str:
    """Format a difference: always with its sign, and never -0.0000."""
    return f"{value:+.4f}".replace("-0.0000", "+0.0000")


def p(value: float) -> str:
    """Format a p-value: four places below 0.1, so that 0.0496 does not read as 0.05."""
    if value < 0.001:
        return "<0.001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def line(text: str, cells: int) -> str:
    """Return the text on one line of at most so many cells."""
    plain = Text(one_line(text))
    plain.truncate(max(1, cells), overflow="ellipsis")
    return plain.plain
