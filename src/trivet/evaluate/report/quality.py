"""The sections on quality: overview, means with intervals, strata and tables of every measure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.measures import mean
from trivet.evaluate.report.chart import Axis, Mark, Panel, Row, row_plot
from trivet.evaluate.report.formatting import between, counted, long, ms, percent, short
from trivet.evaluate.report.material import LEG, Group, View, colour, is_default, kind
from trivet.evaluate.report.table import Cell, Table, heat, mean_cell, named
from trivet.evaluate.significance import FEW, Paired

TILES = 4  # measures in the overview of a single dataset
OPEN = 3  # datasets whose tables are shown unfolded
KEYS = {
    "lexical": "lexical leg alone",
    "trigram": "trigram leg alone",
    "dense": "dense leg alone",
    "fused": "fused",
    "default": "the default profile",
    "elsewhere": "another system's run",
}
RANK_TIP = {"mean rank": "among the profiles run on every dataset: 1 is the highest mean, equal ones share their ranks"}
FINDINGS_TIPS = {
    "hits": "mean number of hits returned for a topic",
    "precision": "share of all hits returned that are judged relevant",
    "unanswered": "judged topics without any hit",
    "degraded": "topics for which a part of the search could not take part",
    "false: unanswerable": "unanswerable queries that still got a hit, at the profile's threshold",
    "false: nonsense": "made-up queries that still got a hit, at the profile's threshold",
}


def chosen(group: Group) -> frozenset[str]:
    """Return the names to highlight."""
    return frozenset(item.name for item in group.evaluations if is_default(item))


def dot(evaluation: Evaluation, x: float, tip: str) -> Mark:
    """Return the mark of an evaluation; kinds differ in shape too, for readers who cannot tell the colours apart."""
    class_ = colour(evaluation)
    shape = "square" if kind(evaluation) == LEG else "diamond" if class_ == "elsewhere" else "circle"
    return Mark(shape, f"dot {class_}", ((x, 0.0),), tip, 6.0 if is_default(evaluation) else 4.5)


# --- overview ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the overview, and what it is compared with."""

    title: str
    subtitle: str
    colour: str
    mean: float
    low: float
    high: float
    leg: tuple[str, float] | None  # the best single leg
    test: Paired | None  # against that leg
    best: tuple[str, float] | None  # the highest mean of the group


def overview(view: View) -> dict[str, Any] | None:
    """Return a tile for each dataset; for a single dataset, a tile for each of some measures."""
    measures = [view.main] if len(view.groups) > 1 else view.measures[:TILES]
    tiles = [
        _tile(view, group, measure)
        for group in view.groups
        for measure in measures
        if view.featured(group).scores.get(measure)
    ]
    return {"tiles": tiles, "measures": ", ".join(measures)} if tiles else None


def _tile(view: View, group: Group, measure: str) -> Tile:
    shown = view.featured(group)
    others = [item for item in group.evaluations if item is not shown and item.scores.get(measure)]
    leg = max((item for item in others if kind(item) == LEG), key=lambda item: item.mean(measure), default=None)
    best = max((shown, *others), key=lambda item: item.mean(measure)) if others else None
    return Tile(
        measure if len(view.groups) == 1 else group.label,
        f"{shown.name}, {counted(group.topics, 'topic')}",
        colour(shown),
        shown.mean(measure),
        *view.interval(shown, measure),
        (leg.name, leg.mean(measure)) if leg else None,
        _test(view, shown, leg, measure) if leg else None,
        ("this one" if best is shown else best.name, best.mean(measure)) if best else None,
    )


def _test(view: View, first: Evaluation, second: Evaluation, measure: str) -> Paired | None:
    """Return the paired test of these two, whichever was the baseline."""
    pairs = (
        pair
        for comparison in view.material.comparisons
        if (comparison.dataset, comparison.measure) == (first.dataset, measure)
        for pair in comparison.overall
    )
    return next((pair for pair in pairs if {pair.baseline, pair.challenger} == {first.name, second.name}), None)


# --- quality ----------------------------------------------------------------------------------------------------------


def quality(view: View) -> dict[str, Any] | None:
    """Return a chart of means for each dataset and measure, and a matrix of profiles and datasets."""
    if not view.pictured:
        return None
    drawn = {colour(item) for group in view.groups for item in group.evaluations}
    several = len(view.groups) > 1
    return {
        "legend": [(f"dot {class_}", words) for class_, words in KEYS.items() if class_ in drawn],
        "panels": {
            measure: [panel for group in view.groups if (panel := _means(view, group, measure))]
            for measure in view.pictured
        },
        "matrices": {measure: _matrix(view, measure) for measure in view.pictured} if several else {},
        "left_out": ", ".join(view.measures[len(view.pictured) :]),
    }


def _means(view: View, group: Group, measure: str) -> Panel | None:
    shown = [item for item in group.evaluations if item.scores.get(measure)]
    if not shown:
        return None
    means = [item.mean(measure) for item in shown]
    intervals = [view.interval(item, measure) for item in shown]
    rows = []
    for item, value, (low, high) in zip(shown, means, intervals, strict=True):
        tip = f"{item.name}: {measure} {short(value)}, 95 % interval {between(low, high)}"
        marks = (Mark("line", f"span {colour(item)}", ((low, 0.0), (high, 0.0)), tip), dot(item, value, tip))
        rows.append(Row(item.name, short(value), marks, kind(item), is_default(item)))
    legs = [value for item, value in zip(shown, means, strict=True) if kind(item) == LEG]
    line = [(max(legs), "mean-line")] if legs and len(legs) < len(shown) else []
    best = max(zip(means, (item.name for item in shown), strict=True))
    label = f"{measure} of {len(shown)} profiles on {group.label}; the highest mean is {best[1]} with {short(best[0])}"
    axis = Axis.fit((*means, *(bound for both in intervals for bound in both)), measure, 4, floor=0.0)
    name, detail = (group.label, measure) if len(view.groups) > 1 else (measure, group.label)
    return Panel(name, f"{detail}, {counted(group.topics, 'topic')}", row_plot(label, axis, rows, lines=line))


def _matrix(view: View, measure: str) -> Table | None:
    """Return profiles × datasets, with the mean over the datasets and the mean rank on them."""
    means = {
        (group.identity, item.name): item.mean(measure)
        for group in view.groups
        for item in group.evaluations
        if item.scores.get(measure)
    }
    if not means:
        return None
    ranks = _ranks(view, means)
    rows = []
    for name in view.names:
        cells = [named(name)]
        for group in view.groups:
            column = [value for (identity, _), value in means.items() if identity == group.identity]
            cells.append(mean_cell(means.get((group.identity, name)), column))
        if name in ranks:
            average = sum(means[group.identity, name] for group in view.groups) / len(view.groups)
            cells += [Cell(long(average), average, "total"), Cell(f"{ranks[name]:.2f}", ranks[name], "total")]
        else:
            cells += [Cell("–", kind="total")] * 2
        rows.append(cells)
    head = ("profile", *(group.label for group in view.groups), "mean", "mean rank")
    highlighted = frozenset[str]().union(*map(chosen, view.groups))
    return Table(head, rows, f"{measure} on every dataset", tips=RANK_TIP, chosen=highlighted)


def _ranks(view: View, means: dict[tuple[str, str], float]) -> dict[str, float]:
    """Return the mean rank of each profile that was run on every dataset."""
    everywhere = [name for name in view.names if all((group.identity, name) in means for group in view.groups)]
    ranks = dict.fromkeys(everywhere, 0.0)
    for group in view.groups:
        column = [means[group.identity, name] for name in everywhere]
        for name, value in zip(everywhere, column, strict=True):
            above, level = sum(other > value for other in column), column.count(value)
            ranks[name] += (above + (level + 1) / 2) / len(view.groups)
    return ranks


# --- strata -----------------------------------------------------------------------------------------------------------


def strata(view: View) -> dict[str, Any] | None:
    """Return a table of means by stratum for each measure and dataset that has several strata."""
    divided = [group for group in view.groups if len(_strata(group)) > 1]
    if not divided or not view.pictured:
        return None
    tables = {
        measure: [table for group in divided if (table := _stratified(group, measure))] for measure in view.pictured
    }
    return {"tables": tables, "few": FEW}


def _strata(group: Group) -> dict[str, int]:
    """Return each stratum's number of topics, the largest first."""
    fullest = max(group.evaluations, key=lambda item: len(item.strata))
    return dict(Counter(fullest.strata.values()).most_common())


def _stratified(group: Group, measure: str) -> Table | None:
    shown = [item for item in group.evaluations if item.scores.get(measure)]
    counts = _strata(group)
    means = [{name: mean(values) for name, values in item.by_stratum(measure).items()} for item in shown]
    values = [value for row in means for value in row.values()]
    if not values:
        return None
    low, high = min(values), max(values)
    best = {name: max((row[name] for row in means if name in row), default=0.0) for name in counts}
    rows = []
    for item, row in zip(shown, means, strict=True):
        cells = [named(item.name)]
        for name, count in counts.items():
            if (value := row.get(name)) is None:
                cells.append(Cell("–"))
                continue
            tip = f"{item.name}, {name}: {measure} {short(value)} over {count:,} topics"
            strong = "strong" if value >= best[name] - 5e-7 else ""
            cells.append(Cell(short(value), value, strong, heat(value, low, high), tip))
        rows.append([*cells, Cell(short(item.mean(measure)), item.mean(measure), "total")])
    names = (f"{name} · {count:,}{' (few)' if count < FEW else ''}" for name, count in counts.items())
    caption = f"{group.label}: {measure} by stratum · number of topics"
    return Table(("profile", *names, f"all · {group.topics:,}"), rows, caption, chosen=chosen(group))


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(view: View) -> dict[str, Any] | None:
    """Return, for each dataset, a table of every measure and one of the findings."""
    if not view.measures:
        return None
    groups = [(group.label, (_measures(view, group), _findings(group))) for group in view.groups]
    return {"groups": groups, "open": len(groups) <= OPEN}


def _measures(view: View, group: Group) -> Table:
    columns = {
        measure: [item.mean(measure) for item in group.evaluations if item.scores.get(measure)]
        for measure in view.measures
    }
    columns = {measure: column for measure, column in columns.items() if column}
    rows = [
        [
            named(item.name),
            *(
                mean_cell(item.mean(measure) if item.scores.get(measure) else None, column)
                for measure, column in columns.items()
            ),
        ]
        for item in group.evaluations
    ]
    caption = f"{group.label}: every measure, mean over {counted(group.topics, 'topic')}"
    return Table(("profile", *columns), rows, caption, chosen=chosen(group))


def _findings(group: Group) -> Table:
    head = ("profile", *FINDINGS_TIPS, "p50 ms", "p95 ms", "embedding ms")
    caption = f"{group.label}: hits, false answers and times"
    return Table(head, [_found(item) for item in group.evaluations], caption, tips=FINDINGS_TIPS, chosen=chosen(group))


def _found(item: Evaluation) -> list[Cell]:
    found = item.findings
    times = (found.p50_ms, found.p95_ms) if found.p95_ms > 0 else (None, None)
    return [
        named(item.name),
        Cell(f"{found.returned:.2f}", found.returned),
        Cell(long(found.precision), found.precision),
        Cell(f"{found.unanswered:,}", found.unanswered),
        Cell(f"{found.degraded:,}", found.degraded),
        Cell(percent(found.false_unanswerable), found.false_unanswerable),
        Cell(percent(found.false_nonsense), found.false_nonsense),
        *(Cell("–" if time is None else ms(time), time) for time in (*times, found.embed_ms)),
    ]
