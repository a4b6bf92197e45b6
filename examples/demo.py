"""A demo: a year of a team's notes, nine queries, and the reason for every hit.

Run it with `make demo`. It creates a new store in ./.demo and shows the hits as `trivet search` does, with the command
for each. `--svg PATH` draws the picture in the README.
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
from trivet.cli import hits
from trivet.cli.output import Screen, progress
from trivet.text.highlight import Marker

FOLDER = Path(".demo")
STORE = FOLDER / "notes.db"
K = 3
# A hit with a lower relevance is dropped. The value fits the queries of this demo; your data needs its own.
MIN_RELEVANCE = 0.3


@dataclass(frozen=True, slots=True)
class Example:
    """A query, what it shows, and its options for the library and for the command line."""

    shows: str
    query: str
    options: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    why_not: str = ""  # a document that is not among the hits, to be explained
    in_picture: bool = False


EXAMPLES = (
    Example(
        "words: exact matches, and a duplicate is removed",
        "Stilt status light steady red",
        {"rerankers": ["learned", "dedup"]},
        ("--set", "rerankers=learned,dedup"),
        in_picture=True,
    ),
    Example(
        "meaning: found without a common word",
        "ancient trees suffered because the furnace quit",
        in_picture=True,
    ),
    Example(
        "alpha: 0 is words only, 1 is meaning only",
        "Aged iPads displayed nonsense in place of a temperature following an upgrade",
        {"alpha": 1.0},
        ("--alpha", "1"),
    ),
    Example(
        "typos: the trigram leg compares letters",
        "descailing the cofee machin",
        {"weights": {"trigram": 0.5}},
        ("--weight", "trigram=0.5"),
        in_picture=True,
    ),
    Example("code: a name is found as a whole and by its parts", "GatewaySession.reconnect"),
    Example(
        "filters: they apply to every leg, before the ranking is cut",
        "our very worst nights",
        {"where": "severity=5"},
        ("--where", "severity=5"),
    ),
    Example("languages: Chinese needs no spaces", "出厂测试时休眠电流的上限是多少？"),
    Example(
        "time: the rule that is valid now, and why the old one is not a hit",
        "How long do we keep raw readings now?",
        {"where": "status!=superseded"},
        ("--where", "status!=superseded"),
        why_not="decision-retention-90d",
    ),
    Example(
        "threshold: no hit where nothing is relevant",
        "Which drone do we fly for aerial photographs?",
        {"min_relevance": MIN_RELEVANCE},
        ("--min-relevance", str(MIN_RELEVANCE)),
    ),
)

TRY_NEXT = (
    ("see every number", 'search -s .demo/notes.db "palm house" --explain'),
    ("why is it no hit", 'search -s .demo/notes.db "palm house" --explain-id note-coffee-machine'),
    ("change the settings", "settings -s .demo/notes.db --set weights.dense=0.8"),
    ("your own files", "import docs/ README.md"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--svg", type=Path, metavar="PATH", help="draw some of the queries as a picture")
    svg: Path | None = parser.parse_args().svg
    console = _canvas() if svg else Console(highlight=False, emoji=False, markup=False)
    screen = Screen(console)
    with _filled(console) as memory:
        for number, example in enumerate((item for item in EXAMPLES if item.in_picture or not svg), start=1):
            _show(memory, example, number, screen)
    if svg:
        svg.parent.mkdir(parents=True, exist_ok=True)
        console.save_svg(str(svg), title="trivet")
        print(f"drew {svg}")
    else:
        _show_next_steps(screen)


def _canvas() -> Console:
    """Return a console that records what is printed."""
    return Console(
        record=True, width=104, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )


def _filled(console: Console) -> trivet.Engine:
    """Return a new store with the notes in it, embedded by the built-in model."""
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


def _show(memory: trivet.Engine, example: Example, number: int, screen: Screen) -> None:
    found = memory.search(example.query, k=K, **example.options)
    screen.show(Text(), _headline(f"{number}  {example.shows}", screen))
    command = shlex.join(("trivet", "search", "-s", str(STORE), example.query, "-k", str(K), *example.flags))
    screen.show(Text.assemble(("$ ", "dim"), (command, "#8a8a8a")), Text())
    if found.hits:
        marker = Marker(example.query, memory.stats().language, alike="trigram" in found.profile)
        screen.show(hits.hits(found.hits, marker, screen, explain=1))
    else:
        screen.show(Text.assemble(("no hits", "bold"), ("  nothing is relevant enough", "dim")))
    for remark in _remarks(memory, example, {hit.id for hit in found.hits}):
        screen.show(Text.assemble(("→ ", "#af87ff"), remark))
    if example.why_not:
        explanation = memory.explain(example.query, example.why_not, k=K, **example.options)
        screen.show(Text(), Padding(hits.explanation(explanation, screen), (0, 0, 0, 2)))
    screen.show(Text(), hits.footer(found, screen))


def _headline(text: str, screen: Screen) -> Rule | Text:
    if not screen.terminal:
        return Text(f"## {text}")
    return Rule(Text(text, style="bold #ffd75f"), align="left", style="#585858")


def _remarks(memory: trivet.Engine, example: Example, shown: set[str]) -> list[str]:
    """Return what the hits do not show: removed duplicates, and the best hit below the threshold."""
    remarks: list[str] = []
    rerankers = [step.name for step in memory.settings.rerankers if step.name != "dedup"]
    plain = memory.search(example.query, k=K, **{**example.options, "rerankers": rerankers, "min_relevance": 0.0})
    if shown and (removed := [hit.id for hit in plain if hit.id not in shown]):
        remarks.append(f"removed as a duplicate of a hit above: {', '.join(removed)}")
    if not shown and plain.hits:
        best = max(plain.hits, key=lambda hit: hit.relevance)
        remarks.append(
            f"the best candidate, {best.document.title!r}, has relevance {best.relevance:.2f}; "
            f"the threshold is {MIN_RELEVANCE}"
        )
    return remarks


def _show_next_steps(screen: Screen) -> None:
    screen.show(Text(), _headline("try next", screen))
    for what, command in TRY_NEXT:
        screen.show(Text.assemble((f"{what:<22}", "dim"), (".venv/bin/trivet ", "#5fafff"), command))


if __name__ == "__main__":
    main()
