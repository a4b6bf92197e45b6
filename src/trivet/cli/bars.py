"""Bars that show how much each leg contributed.

A stacked bar is drawn in eighths of a cell: a block in the colour of the left leg on a background in the colour of the
right one puts the border inside a cell. Without colour the legs differ by shade.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from rich.text import Text

from trivet.types import LEG_COLOURS, OTHER_COLOUR

if TYPE_CHECKING:
    from trivet.types import Contribution

COLOURS = LEG_COLOURS
SHADES = {"lexical": "█", "dense": "▓", "trigram": "▒", "graph": "░"}
OTHER_SHADE = "▪"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def colour(leg: str) -> str:
    return COLOURS.get(leg, OTHER_COLOUR)


def shade(leg: str) -> str:
    return SHADES.get(leg, OTHER_SHADE)


def longest(contributions: Iterable[Iterable[Contribution]]) -> float:
    """Return the largest sum of shares of one hit: the value of a full bar."""
    return max((sum(max(0.0, one.share) for one in given) for given in contributions), default=0.0)


def stacked(contributions: Iterable[Contribution], full: float, cells: int, coloured: bool) -> Text:
    """Draw the shares of one hit side by side; a sum of ``full`` fills ``cells``."""
    steps = cells * 8 if coloured else cells
    units: list[str] = []
    reached = 0.0
    for one in contributions:
        reached += max(0.0, one.share)
        units += [one.leg] * (round(reached / full * steps) - len(units) if full > 0 else 0)
    return _blocks(units, cells) if coloured else Text("".join(map(shade, units)).ljust(cells))


def single(leg: str, part: float, cells: int, coloured: bool) -> Text:
    """Draw the bar of one leg; a ``part`` of 1 fills it."""
    part = min(1.0, max(0.0, part))
    if not coloured:
        return Text((shade(leg) * round(part * cells)).ljust(cells))
    return _blocks([leg] * round(part * cells * 8), cells)


def _blocks(units: list[str], cells: int) -> Text:
    text = Text()
    for at in range(0, cells * 8, 8):
        inside = units[at : at + 8]
        if not inside:
            text.append(" ")
            continue
        left = inside[0]
        width = sum(1 for _ in takewhile(lambda leg, left=left: leg == left, inside))  # type: ignore[misc]
        behind = f" on {colour(inside[width])}" if width < len(inside) else ""
        text.append(_EIGHTHS[width], style=f"{colour(left)}{behind}")
    return text


def legend(legs: Iterable[str], coloured: bool) -> Text:
    text = Text()
    for leg in legs:
        text.append(f"{'█' if coloured else shade(leg)} ", style=colour(leg) if coloured else "")
        text.append(f"{leg}  ", style="dim")
    return text
