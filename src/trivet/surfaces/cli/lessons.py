"""What was learnt, and does it hold? (what ``trivet tune`` shows)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.surfaces.cli import bars, tables
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.evaluate import Dataset
    from trivet.evaluate.tuned import Tuned

BAR = 16  # cells, for all folds


def shown(found: Tuned, dataset: Dataset, done: str, screen: Screen) -> RenderableType:
    """``done`` is what became of it, if anything did."""
    parts: list[RenderableType] = [
        tables.heading(found.dataset, f"{found.topics:,} judged topics, {found.effort}"),
        Text(),
        _verdict(found),
        Text(),
        _out_of_sample(found, screen),
        Text(),
        _weights(found, screen) if found.what == "weights" else _votes(found, screen),
        Text(),
    ]
    parts += [Text(f"note: {clean(note)}", style="yellow") for note in (*dataset.notes, *found.warnings)]
    parts += [Text(clean(done))] if done else []
    told = (found.start, found.profile) if found.changed else (found.start,)
    parts += [tables.sentence(str(profile)) for profile in told]
    parts.append(tables.sentence(f"{found.model or 'no model'} · commit {found.made.get('commit', 'unknown')}"))
    return Group(*parts)


def _verdict(found: Tuned) -> Text:
    what, colon, why = clean(found.reason).partition(": ")
    return Text.assemble((what, "bold green" if found.changed else "bold"), colon, why)


def _out_of_sample(found: Tuned, screen: Screen) -> RenderableType:
    pair = found.pair
    where = f"on {found.holdout}" if found.holdout else f"{found.folds}-fold cross-validated"
    rows: list[list[tables.Cell]] = [
        [clean(pair.baseline), tables.score(pair.mean_baseline), "", "", "", ""],
        [
            "chosen without them",
            tables.score(pair.mean_challenger),
            Text(tables.signed(pair.difference), style="bold green" if found.changed else ""),
            Text(tables.signed_span(pair.low, pair.high), style="dim"),
            tables.p(found.p),
            f"{pair.wins}/{pair.losses}/{pair.ties}",
        ],
    ]
    columns = [f"{pair.n:,} topics, {clean(where)}", pair.measure, "difference", "95 %", "p, one-sided", "W/L/T"]
    return tables.table(columns, rows, screen)


def _votes(found: Tuned, screen: Screen) -> RenderableType:
    """What each fold chose; folds that agree are one line."""
    if found.holdout:
        return Text(f"chosen on {clean(found.dataset)}: {clean(next(iter(found.votes)))}")
    total = sum(found.votes.values())
    rows: list[list[tables.Cell]] = []
    for what, count in found.votes.items():
        row: list[tables.Cell] = [Text(clean(what), style="bold" if what == found.start.name else ""), f"{count:,}"]
        rows.append([*row, bars.single("lexical", count / total, BAR, screen.colour)] if screen.terminal else row)
    columns = [f"what {total:,} folds chose", "times", *([""] if screen.terminal else [])]
    return tables.table(columns, rows, screen, left=("",))


def _weights(found: Tuned, screen: Screen) -> RenderableType:
    """Each weight: before, from all topics, and how far the folds are apart, which tells how well it is known."""
    from trivet.evaluate.learning import weights

    before, after = (weights(profile) for profile in (found.start, found.proposed))
    rows: list[list[tables.Cell]] = []
    for name, (low, high) in found.spreads.items():
        row: list[tables.Cell] = [
            name,
            f"{before[name]:+.2f}" if before else "",
            Text(f"{after[name]:+.2f}", style="bold"),
        ]
        rows.append([*row, Text(f"{low:+.2f} to {high:+.2f}" if not found.holdout else "", style="dim")])
    columns = ["weight", clean(found.start.name), "all topics", "" if found.holdout else f"{len(found.chosen):,} folds"]
    return tables.table(columns, rows, screen)
