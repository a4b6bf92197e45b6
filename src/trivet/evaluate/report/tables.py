"""What are the numbers?"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report.figures import long, ms, percent
from trivet.evaluate.report.markup import Cell, Html, Row, Section, Table, folded, joined
from trivet.evaluate.report.material import Group, View, is_default

_OPEN = 3  # datasets whose tables are shown unfolded
_TIPS = {
    "hits": "returned for a topic, mean",
    "precision": "of all hits returned, the share judged right",
    "unanswered": "judged topics without any hit",
    "degraded": "topics for which some part did not answer",
    "false: unanswerable": "unanswerable questions that still got a hit, at the profile's threshold",
    "false: nonsense": "made-up questions that still got a hit, at the profile's threshold",
}


def section(view: View) -> Section | None:
    if not view.measures:
        return None
    parts = []
    for group in view.groups:
        tables = (_overall(view, group), _findings(group))
        parts.append(folded(group.label, *tables, opened=len(view.groups) <= _OPEN))
    return Section(
        "tables",
        "Tables",
        "What are the numbers?",
        "Choose a column's name to sort by it. In bold: a column's highest mean, whether or not the difference to the "
        "next is shown.",
        joined(parts),
    )


def _overall(view: View, group: Group) -> Html:
    rows = []
    columns = {
        measure: [item.mean(measure) for item in group.evaluations if item.scores.get(measure)]
        for measure in view.measures
    }
    used = [measure for measure in view.measures if columns[measure]]
    for item in group.evaluations:
        means = {measure: item.mean(measure) if item.scores.get(measure) else None for measure in used}
        cells = [Cell(item.name, item.name, "name"), *(mean_cell(means[name], columns[name]) for name in used)]
        rows.append(Row(cells, "chosen" if is_default(item) else ""))
    return Table(("profile", *used), rows, f"{group.label}: every measure, mean over {group.topics:,} topics").html()


def mean_cell(mean: float | None, column: Sequence[float]) -> Cell:
    """The higher in its column, the deeper its colour; the highest in bold."""
    if mean is None:
        return Cell("–")
    low, high = min(column), max(column)
    heat = (mean - low) / (high - low) if high > low else 0.0
    return Cell(long(mean), mean, "strong" if mean == high and high > low else "", heat)


def _findings(group: Group) -> Html:
    head = (
        *("profile", "hits", "precision", "unanswered", "degraded", "false: unanswerable", "false: nonsense"),
        *("p50 ms", "p95 ms", "embedding ms"),
    )
    rows = [Row(_found(item), "chosen" if is_default(item) else "") for item in group.evaluations]
    return Table(head, rows, f"{group.label}: what the measures hide", tips=_TIPS).html()


def _found(item: Evaluation) -> list[Cell]:
    found = item.findings
    timed = found.p95_ms > 0
    return [
        Cell(item.name, item.name, "name"),
        Cell(f"{found.returned:.2f}", found.returned),
        Cell(long(found.precision), found.precision),
        Cell(f"{found.unanswered:,}", found.unanswered),
        Cell(f"{found.degraded:,}", found.degraded),
        Cell(percent(found.false_unanswerable), found.false_unanswerable),
        Cell(percent(found.false_nonsense), found.false_nonsense),
        Cell(ms(found.p50_ms) if timed else "–", found.p50_ms if timed else None),
        Cell(ms(found.p95_ms) if timed else "–", found.p95_ms if timed else None),
        Cell("–" if found.embed_ms is None else ms(found.embed_ms), found.embed_ms),
    ]
