"""How does quality go with two settings, or more?"""

from __future__ import annotations

from trivet.evaluate.report.axes import changes, is_base, tip, told
from trivet.evaluate.report.figures import between, long, setting, short
from trivet.evaluate.report.markup import Cell, Html, Row, Table, panel
from trivet.evaluate.report.material import View
from trivet.evaluate.sweeps import Sweep

LISTED = 15  # settings of a sweep over more than two axes, which has no picture


def grid(view: View, sweep: Sweep, title: str) -> Html:
    """Two axes: the deeper the colour the higher, the highest framed, the base in dashes."""
    down, across = sweep.axes
    found = {(point.changes[down], point.changes[across]): point for point in sweep.points}
    means = [point.mean for point in sweep.points]
    low, high = min(means), max(means)
    rows = []
    for first in sweep.axes[down]:
        cells = [Cell(setting(first), kind="name")]
        for second in sweep.axes[across]:
            point = found.get((first, second))
            if point is None:
                cells.append(Cell("–"))
                continue
            kinds = ["based"] if is_base(sweep, point) else []
            kinds += ["strong ringed"] if point is sweep.best else []
            heat = (point.mean - low) / (high - low) if high > low else 0.0
            cells.append(Cell(short(point.mean), point.mean, " ".join(kinds), heat, tip(sweep, point)))
        rows.append(Row(cells))
    head = (f"{down} ↓\n{across} →", *(setting(value) for value in sweep.axes[across]))
    label = view.label(sweep.dataset)
    table = Table(head, rows, sortable=False).html()
    return panel(title or label, f"{sweep.measure}, {label}" if title else sweep.measure, table, told(view, sweep))


def listed(view: View, sweep: Sweep, title: str) -> Html:
    """More axes than a page has: the highest settings, as a list."""
    best = sorted(sweep.points, key=lambda point: -point.mean)[:LISTED]
    rows = [
        Row(
            (
                Cell(changes(point), changes(point)),
                Cell(long(point.mean), point.mean),
                Cell(between(point.low, point.high), point.low),
            )
        )
        for point in best
    ]
    label = view.label(sweep.dataset)
    words = f"The {len(best)} highest of {len(sweep.points):,} settings: more than two axes have no picture."
    table = Table(("setting", sweep.measure, "95 % interval"), rows).html()
    return panel(title or label, f"{sweep.measure}, {label}" if title else sweep.measure, table, words)
