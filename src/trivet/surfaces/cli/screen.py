"""What can be shown here?

A terminal gets colour, bars and its own width; a pipe gets plain lines that are never wrapped. Answers go to
stdout, everything about them (progress, warnings) to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Progress = Callable[[int, int], None]
Steps = Callable[[str, int, int], None]  # what a step is called, how far it is and how far it goes

UNWRAPPED = 10_000  # columns of a pipe: wider than any line, so that nothing is folded
# A stored text may hold escape sequences; a terminal must not obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Screen:
    """Where output goes and what it can carry."""

    console: Console

    @property
    def terminal(self) -> bool:
        return self.console.is_terminal

    @property
    def colour(self) -> bool:
        return self.terminal and not self.console.no_color and self.console.color_system is not None

    @property
    def width(self) -> int:
        return self.console.width if self.terminal else UNWRAPPED

    def show(self, *items: RenderableType) -> None:
        if self.terminal:
            self.console.print(*items, sep="\n")
            return
        from rich.console import Console

        # A table pads its cells; in a pipe that would be blanks at every line's end.
        plain = Console(width=UNWRAPPED, no_color=True, color_system=None, force_terminal=False, highlight=False)
        with plain.capture() as captured:
            plain.print(*items, sep="\n")
        self.console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def stdout() -> Screen:
    from rich.console import Console

    return Screen(Console(highlight=False, markup=False, emoji=False))


def stderr() -> Screen:
    from rich.console import Console

    return Screen(Console(stderr=True, highlight=False, markup=False, emoji=False))


def say(text: str, style: str = "") -> None:
    """One line on stderr: about the answer, not part of it."""
    if not sys.stderr.isatty():
        print(clean(text), file=sys.stderr)
        return
    from rich.text import Text

    stderr().console.print(Text(clean(text), style=style), soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value; laid out for eyes only where eyes may be."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def clean(text: str) -> str:
    """The text without the characters that move a cursor or turn the reading direction."""
    return _CONTROL.sub("\ufffd", text)


@contextmanager
def progress(what: str, unit: str) -> Iterator[Progress]:
    """A bar on stderr, fed with (done, total); nothing where stderr is no terminal."""
    with steps(what, unit) as report:
        yield lambda done, total: report(what, done, total)


@contextmanager
def steps(first: str = "", unit: str = "") -> Iterator[Steps]:
    """The same bar for one step after another: the newest step's."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=32, complete_style="#5fafff", finished_style="#5fafff"),
        MofNCompleteColumn(),
        TextColumn(unit, style="dim"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr().console, transient=True) as shown:
        task = shown.add_task(first, total=None)
        current, reached = first, 0

        def update(step: str, done: int, total: int) -> None:
            nonlocal current, reached
            if step != current or done < reached:
                shown.reset(task, description=clean(step))
            current, reached = step, done
            shown.update(task, completed=done, total=total or None)

        yield update
