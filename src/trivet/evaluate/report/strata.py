"""For which kinds of question is each profile good?"""

from __future__ import annotations

from collections import Counter

from trivet.evaluate.measures import mean
from trivet.evaluate.report.figures import short
from trivet.evaluate.report.markup import Cell, Html, Row, Section, Table, joined, pane
from trivet.evaluate.report.material import Group, View, is_default
from trivet.evaluate.significance import FEW


def section(view: View) -> Section | None:
    divided = [group for group in view.groups if len(_strata(group)) > 1]
    if not divided or not view.pictured:
        return None
    return Section(
        "strata",
        "Strata",
        "For which kinds of question is each profile good?",
        "The mean over the topics of each stratum, the deeper the colour the higher; each stratum's highest is in "
        f"bold. A stratum of fewer than {FEW} topics says little, and is marked.",
        joined(pane("measure", measure, *(_table(group, measure) for group in divided)) for measure in view.pictured),
    )


def _strata(group: Group) -> dict[str, int]:
    fullest = max(group.evaluations, key=lambda item: len(item.strata))
    return dict(Counter(fullest.strata.values()).most_common())


def _table(group: Group, measure: str) -> Html:
    shown = [item for item in group.evaluations if item.scores.get(measure)]
    strata = _strata(group)
    found = [{name: mean(values) for name, values in item.by_stratum(measure).items()} for item in shown]
    values = [value for row in found for value in row.values()]
    if not values:
        return Html("")
    low, high = min(values), max(values)
    best = {name: max((row[name] for row in found if name in row), default=0.0) for name in strata}
    names = {name: f"{name} · {count:,}{' (few)' if count < FEW else ''}" for name, count in strata.items()}
    rows = []
    for item, row in zip(shown, found, strict=True):
        cells = [Cell(item.name, item.name, "name")]
        for name in strata:
            value = row.get(name)
            if value is None:
                cells.append(Cell("–"))
                continue
            heat = (value - low) / (high - low) if high > low else 0.0
            tip = f"{item.name}, {name}: {measure} {short(value)} over {strata[name]:,} topics"
            cells.append(Cell(short(value), value, "strong" if value >= best[name] - 5e-7 else "", heat, tip))
        cells.append(Cell(short(item.mean(measure)), item.mean(measure), "total"))
        rows.append(Row(cells, "chosen" if is_default(item) else ""))
    head = ("profile", *(names[name] for name in strata), f"all · {group.topics:,}")
    return Table(head, rows, f"{group.label}: {measure} by stratum · number of topics").html()
