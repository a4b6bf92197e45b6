"""How well did each do? (what ``trivet eval`` shows)

The measures, the strata, and what measures hide, a profile beside the other; below it what these numbers are of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.surfaces.cli import bars, tables
from trivet.surfaces.cli.leading import Standing
from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation, Headroom

NOTHING = "–"
BAR = 24  # cells of a full bar


def shown(
    evaluations: Sequence[Evaluation],
    standing: Standing | None,
    headrooms: Mapping[str, Headroom],
    screen: Screen,
    documents: int,
) -> RenderableType:
    first = evaluations[0]
    main = next(iter(first.scores))
    topics = len(first.of(main))
    parts: list[RenderableType] = [
        tables.heading(first.dataset, f"{topics:,} topics, {documents:,} documents"),
        Text(),
        measures(evaluations, standing, screen),
    ]
    if standing is not None:
        parts += [Text(), tables.sentence(standing.words, "green" if standing.best else "")]
    if len(set(first.strata.values())) > 1:
        parts += [Text(), strata(evaluations, main, screen)]
    parts += [Text(), findings(evaluations, headrooms, screen), Text(), about(evaluations)]
    return Group(*parts)


def measures(evaluations: Sequence[Evaluation], standing: Standing | None, screen: Screen) -> RenderableType:
    from trivet.evaluate.significance import interval

    names = list(evaluations[0].scores)
    rows: list[list[tables.Cell]] = []
    for item in evaluations:
        best = standing is not None and standing.best == item.name
        low, high = interval(list(item.of(names[0]).values()))
        row: list[tables.Cell] = [
            Text(clean(item.name), style="bold" if best else ""),
            Text(tables.score(item.mean(names[0])), style="bold green" if best else ""),
            Text(tables.span(low, high), style="dim"),
        ]
        rows.append(row + [tables.score(item.mean(name)) for name in names[1:]])
    return tables.table(["profile", names[0], "95 %", *names[1:]], rows, screen)


def strata(evaluations: Sequence[Evaluation], measure: str, screen: Screen) -> RenderableType:
    from trivet.evaluate.measures import mean

    values = [item.by_stratum(measure) for item in evaluations]
    drawn = screen.terminal and len(evaluations) == 1
    rows: list[list[tables.Cell]] = []
    for stratum in sorted(values[0], key=lambda name: (-len(values[0][name]), name)):
        means = [mean(item[stratum]) for item in values]
        row: list[tables.Cell] = [clean(stratum), Text(f"{len(values[0][stratum]):,}", style="dim")]
        row += [tables.score(value) for value in means]
        rows.append([*row, bars.single("lexical", means[0], BAR, screen.colour)] if drawn else row)
    columns = [f"{measure} by stratum", "topics", *(clean(item.name) for item in evaluations)]
    return tables.table([*columns, ""] if drawn else columns, rows, screen, left=("",))


def findings(evaluations: Sequence[Evaluation], headrooms: Mapping[str, Headroom], screen: Screen) -> RenderableType:
    from trivet.profile import LEGS

    legs = [leg for leg in LEGS if any(leg in _legs(item) for item in evaluations)]
    told = [_findings(item, legs, headrooms.get(item.name)) for item in evaluations]
    rows: list[list[tables.Cell]] = [
        [_label(label, screen), *(each[label] or Text(NOTHING, style="dim") for each in told)]
        for label in told[0]
        if any(each[label] for each in told)
    ]
    return tables.table(["what the measures hide", *(clean(item.name) for item in evaluations)], rows, screen)


def _legs(item: Evaluation) -> list[str]:
    """The legs that took part, where there was more than one."""
    legs = [leg for leg, weight in item.profile.weights.items() if weight > 0] if item.profile else []
    return legs if len(legs) > 1 else []


def _findings(item: Evaluation, legs: Sequence[str], headroom: Headroom | None) -> dict[str, tables.Cell]:
    """Label → what was found; empty where this one has no such thing."""
    found = item.findings
    took = _legs(item)
    return {
        "right hits": f"{found.right:,}",
        **{f"  in the top k of {leg} alone": f"{found.only.get(leg, 0):,}" if leg in took else "" for leg in legs},
        "right among the returned": f"{found.precision:.1%} of {found.returned:.1f}",
        "relevance threshold": f"{item.profile.min_relevance:g}" if item.profile else "",
        "  answered, though nothing is right": _false(found.false_unanswerable, found.unanswerable),
        "  answered, though it was nonsense": _false(found.false_nonsense, found.nonsense),
        "not answered": f"{found.unanswered:,}",
        "degraded": Text(f"{found.degraded:,}", style="red" if found.degraded else ""),
        "time, p50 / p95": f"{found.p50_ms:.1f} / {found.p95_ms:.1f} ms" if found.p95_ms else "",
        "  and to embed the question": f"{found.embed_ms:.1f} ms" if found.embed_ms is not None else "",
        "with one alpha for all topics": f"{headroom.best_mean:.4f} at {headroom.best_alpha:g}" if headroom else "",
        "  with each topic's own, by an oracle": f"{headroom.oracle_mean:.4f}" if headroom else "",
    }


def _false(share: float | None, count: int) -> tables.Cell:
    if share is None:
        return ""
    return Text(f"{round(share * count):,} of {count:,}", style="yellow" if share > 0.5 else "")


def _label(label: str, screen: Screen) -> Text:
    text = Text(label, style="" if not label.startswith(" ") else "dim")
    for leg, colour in bars.COLOURS.items():
        if screen.colour and (at := label.find(f" {leg} ")) >= 0:
            text.stylize(f"not dim {colour}", at + 1, at + 1 + len(leg))
    return text


def about(evaluations: Sequence[Evaluation], notes: Sequence[str] = ()) -> RenderableType:
    """What the numbers are of: everything that another run needs to be the same."""
    lines = dict.fromkeys((*(note for item in evaluations for note in item.notes), *notes))
    models = dict.fromkeys(item.model or "no model" for item in evaluations if item.profile)
    commits = dict.fromkeys(str(item.made.get("commit", "unknown")) for item in evaluations)
    told = [Text(f"note: {clean(note)}", style="yellow") for note in lines]
    told += [tables.sentence(str(item.profile)) for item in evaluations if item.profile]
    told.append(tables.sentence(" · ".join((*models, f"commit {', '.join(commits)}"))))
    return Group(*told)
