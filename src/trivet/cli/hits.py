"""Hits, and the numbers behind them, as ``trivet search`` shows them.

A hit is one line with its rank, relevance, a bar of what each leg contributed and its title; below it the words that
match. Below the hits: the profile, the time, and what could not take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trivet import serialize
from trivet.cli import bars, tables
from trivet.cli.output import Screen, clean, one_line
from trivet.text.highlight import Marker, wrapped

if TYPE_CHECKING:
    from trivet.types import Explanation, Hit, Results

HIT_BAR, NUMBERS_BAR, GAP = 12, 16, 2  # cells
WORDS = 80  # cells of a screen that shows the relevance as a word, too
NUMBERS = 48  # cells that the numbers of a hit take, before the bar
SNIPPET_LINES = 2
PIPED_SNIPPET = 200  # characters of a snippet in a pipe, which has no width
TITLE_MARK, RERANKER = "#ffd75f", "#af87ff"


def results(found: Results, screen: Screen, language: str = "en", explain: bool = False) -> RenderableType:
    """Return everything that ``search`` prints."""
    parts: list[RenderableType] = []
    if found.hits:
        by_trigrams = any(one.leg == "trigram" for hit in found.hits for one in hit.contributions)
        marker = Marker(found.query, language, alike=by_trigrams)
        parts.append(hits(found.hits, marker, screen, len(found) if explain else 0))
    else:
        parts.append(Text("no hits", style="bold"))
    if explain:
        parts.append(_stages(found, screen))
    return Group(*parts, Text(), footer(found, screen))


def hits(found: Sequence[Hit], marker: Marker, screen: Screen, explain: int = 0) -> RenderableType:
    """Return the list of hits; the first ``explain`` of them with their numbers."""
    full = bars.longest(hit.contributions for hit in found)
    ranks = len(str(found[-1].rank))
    words = screen.width >= WORDS
    relevance = len("0.00 strong" if words else "0.00")
    room = screen.width - (ranks + GAP + relevance + GAP + HIT_BAR + GAP)
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True, width=ranks)
    grid.add_column(no_wrap=True)
    if screen.terminal:
        grid.add_column(no_wrap=True, width=HIT_BAR)
    grid.add_column(overflow="fold")
    for at, hit in enumerate(found):
        cells: list[RenderableType] = [str(hit.rank), _relevance(hit, words)]
        if screen.terminal:
            cells.append(bars.stacked(hit.contributions, full, HIT_BAR, screen.colour))
        grid.add_row(*cells, _body(hit, marker, screen, room, explain > at))
    return grid


def _relevance(hit: Hit, words: bool) -> Text:
    style = {"strong": "bold", "likely": ""}.get(hit.confidence, "dim")
    return Text(f"{hit.relevance:.2f} {hit.confidence}" if words else f"{hit.relevance:.2f}", style=style)


def _body(hit: Hit, marker: Marker, screen: Screen, room: int, explain: bool) -> RenderableType:
    cells = room * SNIPPET_LINES if screen.terminal else PIPED_SNIPPET
    text = marker.snippet(hit.text, max(40, cells), hit.document.title)
    parts: list[RenderableType] = [_heading(hit, marker, screen), wrapped(text, room, SNIPPET_LINES)]
    if explain:
        parts.append(Padding(numbers(hit, screen, room), (0, 0, 1, 0)))
    return Group(*parts)


def _heading(hit: Hit, marker: Marker, screen: Screen) -> Text:
    title = one_line(hit.document.title)
    place = Text(f"  {one_line(hit.location)}" if hit.location else "", style="dim")
    identifier = Text(clean(hit.id), style="dim" if title else "bold").append_text(place)
    if not title:
        return identifier
    marked = Text(title, style="bold")
    for start, end, _ in marker.spans(title):
        marked.stylize(TITLE_MARK, start, end)
    first, second = (marked, identifier) if screen.terminal else (identifier, marked)
    heading = Text.assemble(first, "  ", second, no_wrap=True, overflow="ellipsis")
    return heading.append(f"  {clean(hit.document.kind)}", style="dim italic") if screen.terminal else heading


def footer(found: Results, screen: Screen) -> RenderableType:
    """Return the legend, the line with the profile and the time, and what was degraded."""
    lines: list[RenderableType] = []
    legs = list(dict.fromkeys(one.leg for hit in found.hits for one in hit.contributions))
    if screen.terminal and legs:
        lines.append(bars.legend(legs, screen.colour))
    counts = f"{len(found.hits)} of {found.candidates} candidates"
    lines.append(Text(f"{counts} · {serialize.total_ms(found):.1f} ms · {found.profile}", style="dim"))
    lines += [Text(f"degraded: {item.part}: {clean(item.reason)}", style="yellow") for item in found.degraded]
    return Group(*lines)


# --- --explain and --explain-id ---------------------------------------------------------------------------------------


def numbers(hit: Hit, screen: Screen, room: int | None = None) -> RenderableType:
    """Return, in ``room`` cells, what each leg and each reranker did to a hit."""
    room = screen.width if room is None else room
    cells = min(NUMBERS_BAR, room - NUMBERS) if screen.terminal else 0
    columns = ("leg", "rank", "raw", "norm", "weight", "share")
    table = _table(*columns, bar=cells > 0, gap=2 if room >= NUMBERS else 1)
    full = bars.longest([hit.contributions])
    for one in hit.contributions:
        values = (f"{one.rank}", f"{one.raw:.3f}", f"{one.normalised:.3f}", f"{one.weight:.3g}", f"{one.share:.4f}")
        row: list[RenderableType] = [_leg(one.leg, screen), *values]
        if cells > 0:
            row.append(bars.single(one.leg, one.share / full if full > 0 else 0.0, cells, screen.colour))
        table.add_row(*row)
    table.add_row(Text("fused", style="bold"), "", "", "", "", Text(f"{hit.fused:.4f}", style="bold"))
    return Group(table, *_path(hit), *_adjustments(hit), *_passage(hit))


def _path(hit: Hit) -> list[Text]:
    """Return the edges by which the graph leg reached the hit."""
    path = " → ".join(clean(step) for step in hit.path)
    return [Text.assemble(("path  ", bars.COLOURS["graph"]), path)] if path else []


def _adjustments(hit: Hit) -> list[Text]:
    return [
        Text.assemble(
            (f"{one.reranker}  ", RERANKER), f"{one.before:.4f} → {one.after:.4f}  ", (clean(one.reason), "dim")
        )
        for one in hit.adjustments
    ]


def _passage(hit: Hit) -> list[Text]:
    """Return which passage of a long document matched; nothing for a document of one passage."""
    length = len(hit.document.text)
    if hit.passage.start == 0 and hit.passage.end >= length:
        return []
    span = f"characters {hit.passage.start:,} to {hit.passage.end:,} of {length:,}"
    return [Text(f"passage {hit.passage.ordinal + 1}: {span}", style="dim")]


def _stages(found: Results, screen: Screen) -> RenderableType:
    """Return the time of each stage of the search."""
    table = _table("stage", "ms", bar=screen.terminal)
    table.add_column("", style="dim")
    longest = max((stage.ms for stage in found.trace), default=0.0)
    for stage in found.trace:
        name = Text(stage.name, style="bold" if stage.name == "total" else bars.COLOURS.get(stage.name, ""))
        row: list[RenderableType] = [name, f"{stage.ms:.2f}"]
        if screen.terminal:
            row.append(bars.single(stage.name, stage.ms / longest if longest else 0.0, NUMBERS_BAR, screen.colour))
        table.add_row(*row, stage.detail)
    return table


def explanation(found: Explanation, screen: Screen) -> RenderableType:
    """Return what each leg found out about one document, whether it is a hit or not."""
    head = Text.assemble((clean(found.id), "bold"), "  ", (found.reason, "bold green" if found.hit else "yellow"))
    table = _table("leg", "weight", "rank", "score", "strength", bar=screen.terminal)
    table.add_column("", style="dim")
    for one in found.verdicts:
        rank = f"{one.rank} of {one.depth}" if one.rank else "–"
        score = f"{one.score:.3f}" if one.score is not None else "–"
        row: list[RenderableType] = [_leg(one.leg, screen), f"{one.weight:.3g}", rank, score, f"{one.strength:.3f}"]
        if screen.terminal:
            row.append(bars.single(one.leg, one.strength, NUMBERS_BAR, screen.colour))
        table.add_row(*row, one.note)
    parts: list[RenderableType] = [head, Text(), table] if found.verdicts else [head]
    if found.hit is not None:
        parts += [Text(), numbers(found.hit, screen)]
    return Group(*parts, Text(), Text(found.profile, style="dim"))


def _leg(name: str, screen: Screen) -> Text:
    return Text(name, style=bars.colour(name) if screen.colour else "")


def _table(first: str, *numbers: str, bar: bool, gap: int = GAP) -> Table:
    table = tables.plain_table(gap)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    if bar:
        table.add_column("", no_wrap=True)
    return table
