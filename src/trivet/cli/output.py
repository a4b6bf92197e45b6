"""Everything a command prints: to a terminal with colour and bars, to a pipe as plain lines that are never wrapped.

Results go to stdout; progress, warnings and errors go to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from trivet import serialize
from trivet.text.printable import clean as clean

ReportProgress = Callable[[int, int], None]  # (done, total)
ReportStep = Callable[[str, int, int], None]  # (name of the step, done, total)

UNWRAPPED = 10_000  # columns of a pipe: wider than any line, so that nothing is wrapped


@dataclass(frozen=True, slots=True)
class Screen:
    """A console, and what it can show."""

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
        # A table pads its cells; in a pipe that would leave blanks at the end of every line.
        plain = Console(width=UNWRAPPED, no_color=True, color_system=None, force_terminal=False, highlight=False)
        with plain.capture() as captured:
            plain.print(*items, sep="\n")
        self.console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def stdout() -> Screen:
    return Screen(Console(highlight=False, markup=False, emoji=False))


def show(*items: RenderableType) -> None:
    """Print on stdout."""
    stdout().show(*items)


def message(text: str, style: str = "") -> None:
    """Print one line on stderr."""
    if sys.stderr.isatty():
        _stderr().print(Text(clean(text), style=style), soft_wrap=True)
    else:
        print(clean(text), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON value, indented where stdout is a terminal. Dataclasses and times become plain JSON."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(serialize.plain(value), ensure_ascii=False, indent=indent))


def result(value: Any, text: str, json: bool) -> None:
    """Print the result of a command: the value with ``--json``, the text without."""
    if json:
        print_json(value)
    else:
        print(clean(text))


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return "1 document" or "2,000 documents"; ``nouns`` is a plural that is not ``noun`` with an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return " ".join(clean(text).split())


@contextmanager
def progress(description: str, unit: str) -> Iterator[ReportProgress]:
    """Show a progress bar on stderr; nothing where stderr is not a terminal."""
    with steps(description, unit) as report:
        yield lambda done, total: report(description, done, total)


@contextmanager
def steps(first: str = "", unit: str = "") -> Iterator[ReportStep]:
    """Show one progress bar for several steps that follow each other."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=32, complete_style="#5fafff", finished_style="#5fafff"),
        MofNCompleteColumn(),
        TextColumn(unit, style="dim"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_stderr(), transient=True) as bar:
        task = bar.add_task(first, total=None)
        current, reached = first, 0

        def update(step: str, done: int, total: int) -> None:
            nonlocal current, reached
            if step != current or done < reached:
                bar.reset(task, description=clean(step))
            current, reached = step, done
            bar.update(task, completed=done, total=total or None)

        yield update


def _stderr() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)
