"""One line for each profile: where does it stand?

What the pictures of quality, differences, speed and legs share: names on the left, headings where the kind changes, the
default's line tinted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report import svg
from trivet.evaluate.report.markup import Html, joined
from trivet.evaluate.report.material import colour, is_default, kind

HEIGHT = 24.0  # of a line
HEADING = 22.0


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    colour: str
    heading: str = ""
    tinted: bool = False

    @classmethod
    def of(cls, evaluation: Evaluation) -> Entry:
        return cls(evaluation.name, colour(evaluation), kind(evaluation), is_default(evaluation))


class Rows:
    def __init__(self, entries: Iterable[Entry], right: float = 52.0) -> None:
        """``right`` is the room for what is written at the end of a line."""
        self.entries = tuple(entries)
        headed = len({entry.heading for entry in self.entries}) > 1
        self._headings: list[tuple[str, float]] = []
        self.middles: list[float] = []
        top = 4.0
        for place, entry in enumerate(self.entries):
            if headed and (place == 0 or entry.heading != self.entries[place - 1].heading):
                self._headings.append((entry.heading, top + HEADING - 7))
                top += HEADING
            self.middles.append(top + HEIGHT / 2)
            top += HEIGHT
        left = svg.margin(entry.name for entry in self.entries)
        self.frame = svg.Frame(height=top + 40, left=left, right=right, top=2, bottom=38)

    def named(self) -> Html:
        """The names, the headings and the tint, to be drawn first."""
        parts: list[Html] = []
        columns = (self.frame.left - 12) / svg.LETTER
        for entry, middle in zip(self.entries, self.middles, strict=True):
            if entry.tinted:
                parts.append(svg.rect(0, middle - HEIGHT / 2, self.frame.width, HEIGHT, "tint"))
            classes = f"name {'chosen' if entry.tinted else ''}".strip()
            parts.append(svg.label(self.frame.left - 9, middle + 4, entry.name, classes, "end", columns))
        parts += [svg.label(6, y, heading, "heading") for heading, y in self._headings]
        return joined(parts)

    def ended(self, words: Sequence[str]) -> Html:
        """A word at the end of each line."""
        return joined(
            svg.label(self.frame.width - 4, middle + 4, said, "value chosen" if entry.tinted else "value", anchor="end")
            for entry, middle, said in zip(self.entries, self.middles, words, strict=True)
        )


def dot(entry: Entry, x: float, y: float, tip: str) -> Html:
    """A leg is a square, the default a larger dot: told apart without their colours, too."""
    shape: Callable[..., Html] = svg.circle
    if entry.colour in ("lexical", "trigram", "dense", "graph"):
        shape = svg.square
    elif entry.colour == "elsewhere":
        shape = svg.diamond
    return shape(x, y, 6.0 if entry.tinted else 4.5, f"dot {entry.colour}", tip)
