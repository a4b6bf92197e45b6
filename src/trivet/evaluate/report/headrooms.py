"""How much could better weights still gain?"""

from __future__ import annotations

from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import setting, short
from trivet.evaluate.report.markup import Html, Section, joined, legend, panel, panels
from trivet.evaluate.report.material import View
from trivet.evaluate.report.rows import Entry, Rows
from trivet.evaluate.sweeps import Headroom


def section(view: View) -> Section | None:
    by_measure: dict[str, list[tuple[str, Headroom]]] = {}
    for dataset, headroom in view.material.headrooms.items():
        by_measure.setdefault(headroom.measure, []).append((view.label(dataset), headroom))
    if not by_measure:
        return None
    keys = (
        ("dot fused", "the profile as it is"),
        ("dot s0", "one alpha for all topics"),
        ("dot s2", "each topic's own"),
    )
    return Section(
        "headroom",
        "Headroom",
        "How much could better weights still gain?",
        "The profile as it is; the best single alpha for these very topics; and an oracle that knows the best alpha of "
        "each topic. The last two have seen the answers: they are bounds, not results.",
        joined((legend(keys), panels(_picture(measure, found) for measure, found in by_measure.items()))),
    )


def _picture(measure: str, found: list[tuple[str, Headroom]]) -> Html:
    rows = Rows((Entry(label, "fused") for label, _ in found), right=62)
    frame = rows.frame
    values = [value for _, item in found for value in (item.mean, item.best_mean, item.oracle_mean)]
    low, high = svg.spread(values, 4, floor=0.0)
    x = svg.Linear(low, high, *frame.x)
    marks = [rows.named(), frame.across(x, ticks := svg.ticks(low, high, 4), svg.named(ticks), measure)]
    for (label, item), y in zip(found, rows.middles, strict=True):
        marks.append(svg.line(x(item.mean), y, x(item.oracle_mean), y, "span fused"))
        oracle = f"{label}: each topic's own best alpha {short(item.oracle_mean)}"
        best = f"{label}: one alpha for all, {setting(item.best_alpha)}: {short(item.best_mean)}"
        marks.append(svg.diamond(x(item.oracle_mean), y, 6, "dot s2", oracle))
        marks.append(svg.square(x(item.best_mean), y, 5, "dot s0", best))
        marks.append(svg.circle(x(item.mean), y, 4.5, "dot fused", f"{label}: as it is {short(item.mean)}"))
    marks.append(rows.ended([f"{item.oracle_mean - item.mean:+.3f}" for _, item in found]))
    told = f"{measure}: the profile, the best alpha and the oracle, for {len(found)} datasets"
    return panel(measure, "on the right: the oracle's gain", frame.picture(told, *marks))
