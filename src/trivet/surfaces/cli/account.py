"""Why is this hit here, and why is that document not?

The tables behind ``--explain`` and ``--explain-id``: every number that made a rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trivet.surfaces.cli import bars
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.types import Explanation, Hit, LegVerdict, Results

BAR = 16  # cells
NUMBERS = 48  # cells that a hit's numbers take, before the bar


def of(hit: Hit, screen: Screen, room: int | None = None) -> RenderableType:
    """The legs that found a hit, what each gave, and what the rerankers made of it, in ``room`` cells."""
    room = screen.width if room is None else room
    cells = min(BAR, room - NUMBERS) if screen.terminal else 0
    table = _table("leg", "rank", "raw", "norm", "weight", "share", bar=cells > 0, gap=2 if room >= NUMBERS else 1)
    full = bars.longest([hit.contributions])
    for one in hit.contributions:
        numbers = (f"{one.rank}", f"{one.raw:.3f}", f"{one.normalised:.3f}", f"{one.weight:.3g}", f"{one.share:.4f}")
        row: list[RenderableType] = [_leg(one.leg, screen), *numbers]
        if cells > 0:
            row.append(bars.single(one.leg, one.share / full if full > 0 else 0.0, cells, screen.colour))
        table.add_row(*row)
    table.add_row(Text("fused", style="bold"), "", "", "", "", Text(f"{hit.fused:.4f}", style="bold"))
    return Group(table, *_way(hit), *_adjustments(hit), *_passage(hit))


def _way(hit: Hit) -> list[Text]:
    """How the graph leg came here."""
    told = " → ".join(clean(step) for step in hit.path)
    return [Text.assemble(("way  ", bars.COLOURS["graph"]), told)] if told else []


def _adjustments(hit: Hit) -> list[Text]:
    return [
        Text.assemble(
            (f"{one.reranker}  ", "#af87ff"), f"{one.before:.4f} → {one.after:.4f}  ", (clean(one.reason), "dim")
        )
        for one in hit.adjustments
    ]


def _passage(hit: Hit) -> list[Text]:
    """Where a long document answers; nothing where the document is its only passage."""
    whole = hit.passage.start == 0 and hit.passage.end >= len(hit.document.text)
    told = f"passage {hit.passage.ordinal + 1}: characters {hit.passage.start:,} to {hit.passage.end:,}"
    return [] if whole else [Text(f"{told} of {len(hit.document.text):,}", style="dim")]


def stages(found: Results, screen: Screen) -> RenderableType:
    """What took how long."""
    table = _table("stage", "ms", bar=screen.terminal)
    table.add_column("", style="dim")
    longest = max((stage.ms for stage in found.trace), default=0.0)
    for stage in found.trace:
        name = Text(stage.name, style="bold" if stage.name == "total" else bars.COLOURS.get(stage.name, ""))
        row: list[RenderableType] = [name, f"{stage.ms:.2f}"]
        if screen.terminal:
            row.append(bars.single(stage.name, stage.ms / longest if longest else 0.0, BAR, screen.colour))
        table.add_row(*row, stage.detail)
    return table


def verdict(found: Explanation, screen: Screen) -> RenderableType:
    """What every leg says of one document, whether it is a hit or not."""
    head = Text.assemble((clean(found.id), "bold"), "  ", (found.reason, "bold green" if found.hit else "yellow"))
    table = _table("leg", "weight", "rank", "score", "strength", bar=screen.terminal)
    table.add_column("", style="dim")
    for one in found.verdicts:
        row: list[RenderableType] = [
            _leg(one.leg, screen),
            f"{one.weight:g}",
            _rank(one),
            _score(one),
            f"{one.strength:.3f}",
        ]
        if screen.terminal:
            row.append(bars.single(one.leg, one.strength, BAR, screen.colour))
        table.add_row(*row, one.note)
    parts: list[RenderableType] = [head, Text(), table]
    if found.hit is not None:
        parts += [Text(), of(found.hit, screen)]
    return Group(*parts, Text(), Text(found.profile, style="dim"))


def _rank(one: LegVerdict) -> Text:
    return Text(f"{one.rank} of {one.depth}") if one.rank else Text("–", style="dim")


def _score(one: LegVerdict) -> Text:
    return Text(f"{one.score:.3f}") if one.score is not None else Text("–", style="dim")


def _leg(name: str, screen: Screen) -> Text:
    return Text(name, style=bars.colour(name) if screen.colour else "")


def _table(first: str, *numbers: str, bar: bool, gap: int = 2) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    if bar:
        table.add_column("", no_wrap=True)
    return table
