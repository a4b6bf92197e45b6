"""What is the difference, and which questions make it? (what ``trivet compare`` shows)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trivet.surfaces.cli import scores, tables
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.evaluate import Comparison, Evaluation, Paired
    from trivet.evaluate.comparison import Moved

RIGHT = "✓"
FEWEST = 3  # hits shown of a ranking; as many more as it takes to see the last right one
PIPED_LABEL = 60  # characters of a title, where there is no width to fill
STYLES = {"better": "bold green", "worse": "bold red"}
COLUMNS = ("mean", "difference", "95 %", "p", "Holm p", "effect", "W/L/T", "verdict")

Ranked = Sequence[tuple[str, int | None]]


def shown(
    found: Comparison,
    evaluations: Sequence[Evaluation],
    labels: Mapping[str, str],
    notes: Sequence[str],
    screen: Screen,
) -> RenderableType:
    topics = found.overall[0].n
    parts: list[RenderableType] = [
        tables.heading(found.dataset, f"{found.measure}, {topics:,} topics, each against {found.baseline}"),
        Text(),
        overall(found, screen),
    ]
    if found.strata:
        parts += [Text(), strata(found, screen)]
    for name, items in found.moved.items():
        if items:
            parts += [Text(), tables.heading(f"What moved most: {found.baseline} → {name}")]
        for item in items:
            parts += [Text(), moved(item, (found.baseline, name), labels, screen)]
    return Group(*parts, Text(), scores.about(evaluations, notes))


def overall(found: Comparison, screen: Screen) -> RenderableType:
    first = found.overall[0]
    rows: list[list[tables.Cell]] = [[Text(clean(found.baseline)), tables.score(first.mean_baseline), *[""] * 7]]
    rows += [[clean(pair.challenger), *_cells(pair)] for pair in found.overall]
    return tables.table(["profile", *COLUMNS], rows, screen, left=("verdict",))


def strata(found: Comparison, screen: Screen) -> RenderableType:
    several = len(found.overall) > 1
    rows: list[list[tables.Cell]] = []
    for stratum, pairs in sorted(found.strata.items(), key=lambda item: (-item[1][0].n, item[0])):
        for pair in pairs:
            who: list[tables.Cell] = [clean(pair.challenger)] if several else []
            rows.append([clean(stratum), Text(str(pair.n), style="dim"), *who, *_cells(pair)])
    columns = ["stratum", "topics", *(["profile"] if several else []), *COLUMNS]
    return tables.table(columns, rows, screen, left=("verdict", "profile"))


def _cells(pair: Paired) -> list[tables.Cell]:
    verdict = pair.verdict.partition(" (")[0]
    style = STYLES.get(verdict, "dim")
    return [
        tables.score(pair.mean_challenger),
        Text(tables.signed(pair.difference), style=style if verdict in STYLES else ""),
        Text(tables.signed_span(pair.low, pair.high), style="dim"),
        tables.p(pair.p),
        tables.p(pair.p_holm),
        f"{pair.effect:+.2f}",
        f"{pair.wins}/{pair.losses}/{pair.ties}",
        Text(verdict, style=style),
    ]


def moved(item: Moved, names: tuple[str, str], labels: Mapping[str, str], screen: Screen) -> RenderableType:
    """One question: what it scored before and after, and both rankings side by side."""
    style = "green" if item.change > 0 else "red"
    head = Text.assemble(
        (tables.signed(item.change), f"bold {style}"),
        (f"  {item.before:.3f} → {item.after:.3f}  ", style),
        tables.line(item.text or item.topic, max(20, screen.width - 28 - len(item.topic))),
    )
    if item.text:
        head.append(f"  {clean(item.topic)}", style="dim")
    if not item.baseline and not item.challenger:
        return head
    return Group(head, _rankings(item, names, labels, screen))


def _rankings(item: Moved, names: tuple[str, str], labels: Mapping[str, str], screen: Screen) -> Table:
    deepest = max(_last_right(item.baseline), _last_right(item.challenger), FEWEST)
    room = (screen.width - 6) // 2 - tables.GAP if screen.terminal else 0
    grid = Table.grid(padding=(0, tables.GAP, 0, 0))
    grid.add_column(justify="right", style="dim", width=3)
    for _ in names:
        grid.add_column(no_wrap=True, width=room or None, overflow="ellipsis")
    grid.add_row("", *(Text(f"  {clean(name)}", style="dim") for name in names))
    for at in range(min(deepest, max(len(item.baseline), len(item.challenger)))):
        grid.add_row(str(at + 1), *(_hit(ranked, at, labels, room) for ranked in (item.baseline, item.challenger)))
    return grid


def _last_right(ranked: Ranked) -> int:
    return max((at for at, (_, grade) in enumerate(ranked, start=1) if grade and grade > 0), default=0)


def _hit(ranked: Ranked, at: int, labels: Mapping[str, str], room: int) -> Text:
    if at >= len(ranked):
        return Text(scores.NOTHING if at == 0 else "", style="dim")
    id, grade = ranked[at]
    right = bool(grade and grade > 0)
    text = Text(f"{RIGHT} " if right else "  ", style="green" if right else "", no_wrap=True, overflow="ellipsis")
    text.append(clean(id), style="bold green" if right else "")
    if labels.get(id):
        text.append(f"  {tables.line(labels[id], room or PIPED_LABEL)}", style="" if right else "dim")
    return text
