"""How does an answer look?

One hit is a line with its rank, its relevance, a bar of what each leg gave and its name, and the words that answer
below. Below the hits: the profile that made them, the time, and what was left out. The account of a hit is in
``account.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trivet.surfaces import wire
from trivet.surfaces.cli import account, bars
from trivet.surfaces.cli.marks import Marker, wrapped
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.types import Hit, Results

BAR, GAP = 12, 2  # cells
SNIPPET_LINES = 2
PIPED_SNIPPET = 200  # characters, where there is no width to fill


def results(found: Results, screen: Screen, language: str = "en", explain: bool = False) -> RenderableType:
    """Everything ``search`` prints."""
    parts: list[RenderableType] = []
    if found.hits:
        marker = Marker(found.query, language, alike=_took_part(found, "trigram"))
        parts.append(hits(found.hits, marker, screen, len(found) if explain else 0))
    else:
        parts.append(Text("no answer", style="bold"))
    if explain:
        parts.append(account.stages(found, screen))
    return Group(*parts, Text(), footer(found, screen))


def hits(found: Sequence[Hit], marker: Marker, screen: Screen, explain: int = 0) -> RenderableType:
    """The list; the first ``explain`` of it with their accounts."""
    full = bars.longest(hit.contributions for hit in found)
    ranks = len(str(found[-1].rank))
    room = screen.width - (ranks + GAP + len("0.00") + GAP + BAR + GAP)
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True, width=ranks)
    grid.add_column(no_wrap=True)
    if screen.terminal:
        grid.add_column(no_wrap=True, width=BAR)
    grid.add_column(overflow="fold")
    for at, hit in enumerate(found):
        cells: list[RenderableType] = [str(hit.rank), relevance(hit.relevance)]
        if screen.terminal:
            cells.append(bars.stacked(hit.contributions, full, BAR, screen.colour))
        grid.add_row(*cells, _body(hit, marker, screen, room, explain > at))
    return grid


def relevance(value: float) -> Text:
    """Stronger where the evidence is."""
    style = "bold" if value >= 0.3 else "" if value >= 0.1 else "dim"
    return Text(f"{value:.2f}", style=style)


def _body(hit: Hit, marker: Marker, screen: Screen, room: int, explain: bool) -> RenderableType:
    cells = room * SNIPPET_LINES if screen.terminal else PIPED_SNIPPET
    text = marker.snippet(hit.text, max(40, cells), hit.document.title)
    parts: list[RenderableType] = [heading(hit, marker, screen), wrapped(text, room, SNIPPET_LINES)]
    if explain:
        parts.append(Padding(account.of(hit, screen, room), (0, 0, 1, 0)))
    return Group(*parts)


def heading(hit: Hit, marker: Marker, screen: Screen) -> Text:
    title = " ".join(clean(hit.document.title).split())
    identifier = Text(clean(hit.id), style="dim" if title else "bold")
    if not title:
        return identifier
    named = Text(title, style="bold")
    for start, end, _ in marker.spans(title):
        named.stylize("#ffd75f", start, end)
    first, second = (named, identifier) if screen.terminal else (identifier, named)
    heading = Text.assemble(first, "  ", second, no_wrap=True, overflow="ellipsis")
    return heading.append(f"  {clean(hit.document.kind)}", style="dim italic") if screen.terminal else heading


def footer(found: Results, screen: Screen) -> RenderableType:
    lines: list[RenderableType] = []
    legs = list(dict.fromkeys(one.leg for hit in found.hits for one in hit.contributions))
    told = f"{len(found.hits)} of {found.candidates} candidates · {wire.total_ms(found):.1f} ms · {found.profile}"
    if screen.terminal and legs:
        lines.append(bars.legend(legs, screen.colour))
    lines.append(Text(told, style="dim"))
    lines += [Text(f"degraded: {item.part}: {clean(item.reason)}", style="yellow") for item in found.degraded]
    return Group(*lines)


def _took_part(found: Results, leg: str) -> bool:
    return any(one.leg == leg for hit in found.hits for one in hit.contributions)
