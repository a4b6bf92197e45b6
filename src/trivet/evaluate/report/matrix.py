"""Which profile is good on every dataset?"""

from __future__ import annotations

from trivet.evaluate.report.figures import long
from trivet.evaluate.report.markup import Cell, Html, Row, Table
from trivet.evaluate.report.material import View, is_default
from trivet.evaluate.report.tables import mean_cell

_TIPS = {"mean rank": "among the profiles run on every dataset: 1 is the highest mean, equal ones share their ranks"}


def matrix(view: View, measure: str) -> Html:
    """Profile × dataset, with the mean over the datasets and the mean rank on them."""
    means = {
        (group.identity, item.name): item.mean(measure)
        for group in view.groups
        for item in group.evaluations
        if item.scores.get(measure)
    }
    if not means:
        return Html("")
    ranks = _ranks(view, means)
    default = {item.name for item in view.material.evaluations if is_default(item)}
    rows = []
    for name in view.names:
        cells = [Cell(name, name, "name")]
        for group in view.groups:
            column = [value for (identity, _), value in means.items() if identity == group.identity]
            cells.append(mean_cell(means.get((group.identity, name)), column))
        if name in ranks:
            mean = sum(means[group.identity, name] for group in view.groups) / len(view.groups)
            cells += [Cell(long(mean), mean, "total"), Cell(f"{ranks[name]:.2f}", ranks[name], "total")]
        else:
            cells += [Cell("–", kind="total"), Cell("–", kind="total")]
        rows.append(Row(cells, "chosen" if name in default else ""))
    head = ("profile", *(group.label for group in view.groups), "mean", "mean rank")
    return Table(head, rows, f"{measure} on every dataset", tips=_TIPS).html()


def _ranks(view: View, means: dict[tuple[str, str], float]) -> dict[str, float]:
    """Of the profiles that were run on every dataset."""
    everywhere = [name for name in view.names if all((group.identity, name) in means for group in view.groups)]
    ranks = dict.fromkeys(everywhere, 0.0)
    for group in view.groups:
        for name in everywhere:
            own = means[group.identity, name]
            above = sum(means[group.identity, other] > own for other in everywhere)
            level = sum(means[group.identity, other] == own for other in everywhere)
            ranks[name] += (above + (level + 1) / 2) / len(view.groups)
    return ranks
