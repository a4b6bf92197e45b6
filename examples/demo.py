"""What can trivet do? A year of a team's notes, nine questions, and the reason for every answer.

Run it with `make demo`. It makes a fresh store in ./.demo, prints with the command line's own renderer, and says which
command would have given each answer. `--svg PATH` draws the picture in the README.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

import trivet
from trivet import data
from trivet.surfaces.cli import account, render
from trivet.surfaces.cli.marks import Marker
from trivet.surfaces.cli.screen import Screen, progress

FOLDER = Path(".demo")
STORE = FOLDER / "notes.db"
K = 3
# Under this a hit is taken for no answer. It parts the questions of this demo; your own data needs its own number.
ENOUGH = 0.3


@dataclass(frozen=True, slots=True)
class Ask:
    shows: str
    question: str
    options: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    why_not: str = ""  # a document that is not among the hits, and why
    pictured: bool = False


ASKS = (
    Ask("words: the exact ones, and a pasted copy is folded away", "Stilt status light steady red", pictured=True),
    Ask(
        "meaning: found without its words",
        "ancient trees suffered because the furnace quit",
        pictured=True,
    ),
    Ask(
        "one dial: 0 is words alone, 1 is meaning alone",
        "Aged iPads displayed nonsense in place of a temperature following an upgrade",
        {"alpha": 1.0},
        ("--alpha", "1"),
    ),
    Ask(
        "typos: the third leg goes by letters",
        "descailing the cofee machin",
        {"weights": {"trigram": 0.5}},
        ("--weight", "trigram=0.5"),
        pictured=True,
    ),
    Ask("code: a name is found whole and by its parts", "GatewaySession.reconnect"),
    Ask(
        "filters: they hold on every leg, before the cut",
        "our very worst nights",
        {"where": "severity=5"},
        ("--where", "severity=5"),
    ),
    Ask("any script: Chinese needs no spaces", "出厂测试时休眠电流的上限是多少？"),
    Ask(
        "time: the rule in force, and why the old one is not here",
        "How long do we keep raw readings now?",
        {"where": "status!=superseded"},
        ("--where", "status!=superseded"),
        why_not="decision-retention-90d",
    ),
    Ask(
        "no answer is an answer",
        "Which drone do we fly for aerial photographs?",
        {"min_relevance": ENOUGH},
        ("--min-relevance", str(ENOUGH)),
    ),
)

TRY_NEXT = (
    ("see every number", 'search -s .demo/notes.db "palm house" --explain'),
    ("why is it not found?", 'search -s .demo/notes.db "palm house" --explain-id note-coffee-machine'),
    ("change the settings", "settings -s .demo/notes.db --set weights.dense=0.8"),
    ("your own files", "import docs/ README.md"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--svg", type=Path, metavar="PATH", help="draw a part of it as a picture instead")
    svg: Path | None = parser.parse_args().svg
    console = _canvas() if svg else Console(highlight=False, emoji=False, markup=False)
    screen = Screen(console)
    with _filled(console) as memory:
        for number, ask in enumerate((ask for ask in ASKS if ask.pictured or not svg), start=1):
            _ask(memory, ask, number, screen)
    if svg:
        svg.parent.mkdir(parents=True, exist_ok=True)
        console.save_svg(str(svg), title="trivet")
        print(f"drew {svg}")
    else:
        _goodbye(screen)


def _canvas() -> Console:
    """Drawn on, not looked at."""
    return Console(
        record=True, width=104, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )


def _filled(console: Console) -> trivet.Engine:
    """A fresh store with the notes in it, embedded by the built-in model."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    notes = data.notes()
    started = time.perf_counter()
    memory = trivet.open(STORE)
    added = memory.add(notes)
    with progress("embedding", "passages") as report:
        memory.wait(report)
    stats = memory.stats()
    Screen(console).show(
        Text.assemble(
            ("trivet", "bold #5fafff"),
            f"  {added.added} notes, {stats.passages} passages, {stats.links} links"
            f" in one file, searchable by words and by meaning after {time.perf_counter() - started:.1f} s",
        )
    )
    return memory


def _ask(memory: trivet.Engine, ask: Ask, number: int, screen: Screen) -> None:
    found = memory.search(ask.question, k=K, **ask.options)
    screen.show(Text(), _headline(f"{number}  {ask.shows}", screen))
    command = shlex.join(("trivet", "search", "-s", str(STORE), ask.question, "-k", str(K), *ask.flags))
    screen.show(Text.assemble(("$ ", "dim"), (command, "#8a8a8a")), Text())
    if found.hits:
        marker = Marker(ask.question, memory.stats().language, alike="trigram" in found.profile)
        screen.show(render.hits(found.hits, marker, screen, explain=1))
    else:
        screen.show(Text.assemble(("no answer", "bold"), ("  nothing is relevant enough", "dim")))
    for remark in _remarks(memory, ask, {hit.id for hit in found.hits}):
        screen.show(Text.assemble(("→ ", "#af87ff"), remark))
    if ask.why_not:
        verdict = memory.explain(ask.question, ask.why_not, k=K, **ask.options)
        screen.show(Text(), Padding(account.verdict(verdict, screen), (0, 0, 0, 2)))
    screen.show(Text(), render.footer(found, screen))


def _headline(text: str, screen: Screen) -> Rule | Text:
    if not screen.terminal:
        return Text(f"## {text}")
    return Rule(Text(text, style="bold #ffd75f"), align="left", style="#585858")


def _remarks(memory: trivet.Engine, ask: Ask, shown: set[str]) -> list[str]:
    """What is true of this answer and cannot be seen in it, asked of the engine and not written down here."""
    remarks: list[str] = []
    plain = memory.search(ask.question, k=K, **{**ask.options, "rerankers": [], "min_relevance": 0.0})
    if shown and (folded := [hit.id for hit in plain if hit.id not in shown]):
        remarks.append(f"left out as a copy of a hit above: {', '.join(folded)}")
    if not shown and plain.hits:
        best = max(plain.hits, key=lambda hit: hit.relevance)
        remarks.append(
            f"the best there is, {best.document.title!r}, has relevance {best.relevance:.2f}; {ENOUGH} was asked for"
        )
    return remarks


def _goodbye(screen: Screen) -> None:
    screen.show(Text(), _headline("now you", screen))
    for what, command in TRY_NEXT:
        screen.show(Text.assemble((f"{what:<22}", "dim"), (".venv/bin/trivet ", "#5fafff"), command))


if __name__ == "__main__":
    main()
