"""Which differences are more than luck?"""

from __future__ import annotations

from trivet.evaluate.comparison import Comparison
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, counted, long, probability, short, signed
from trivet.evaluate.report.markup import Cell, Html, Row, Section, Table, folded, joined, legend, panel, panels
from trivet.evaluate.report.material import View, colour, is_default
from trivet.evaluate.report.rows import Entry, Rows
from trivet.evaluate.significance import FEW, Paired

_TIPS = {
    "difference": "challenger minus baseline, mean over the topics",
    "95 % interval": "of the difference, by bootstrap; not widened for the family",
    "p": "two-sided paired randomisation test",
    "Holm p": "corrected for all challengers of this baseline",
    "effect": "Cohen's d_z: the mean difference in standard deviations of the differences",
    "W / L / T": "topics on which the challenger is better, worse, the same",
}
_HEAD = ("difference", "95 % interval", "p", "Holm p", "effect", "W / L / T", "verdict")
_OPEN = 2  # tables shown unfolded: of more, the first alone


def section(view: View) -> Section | None:
    compared = [comparison for comparison in view.material.comparisons if comparison.overall]
    if not compared:
        return None
    tables = []
    for place, comparison in enumerate(compared):
        name = f"{view.label(comparison.dataset)}: {comparison.measure} against {comparison.baseline}"
        tables.append(folded(name, *_tables(comparison, name), opened=len(compared) <= _OPEN or place == 0))
    keys = legend((("dot better", "better"), ("dot worse", "worse"), ("dot open", "no difference shown")))
    return Section(
        "tests",
        "Tests",
        "Which differences are more than luck?",
        "Each challenger against the baseline on the same topics: the mean difference with its 95 % interval. Filled: "
        "shown at the 5 % level by a randomisation test, corrected after Holm for all challengers of that baseline. "
        f"Hollow: not shown, which is not the same as none. Below {FEW} topics no verdict is given.",
        joined((keys, panels(_forest(view, comparison) for comparison in compared), *tables)),
    )


def _forest(view: View, comparison: Comparison) -> Html:
    rows = Rows((_entry(view, comparison, pair) for pair in comparison.overall), right=62)
    frame = rows.frame
    low, high = svg.spread((0.0, *(bound for pair in comparison.overall for bound in (pair.low, pair.high))), 4)
    x = svg.Linear(low, high, *frame.x)
    ticks = svg.ticks(low, high, 4)
    marks = [
        rows.named(),
        frame.across(x, ticks, svg.named(ticks), f"difference in {comparison.measure}"),
        svg.line(x(0), frame.y[1], x(0), frame.y[0], "zero"),
    ]
    for pair, y in zip(comparison.overall, rows.middles, strict=True):
        span = between(pair.low, pair.high, sign=True)
        tip = f"{pair.challenger}: {signed(pair.difference)}, 95 % interval {span}\n{pair.verdict}"
        marks.append(svg.line(x(pair.low), y, x(pair.high), y, f"span {_kind(pair)}", tip))
        marks.append(svg.circle(x(pair.difference), y, 5, f"dot {_kind(pair)}", tip))
    marks.append(rows.ended([f"{pair.difference:+.3f}" for pair in comparison.overall]))
    label = view.label(comparison.dataset)
    told = f"difference in {comparison.measure} from {comparison.baseline} on {label}, with 95 % intervals"
    baseline = comparison.overall[0].mean_baseline
    return panel(label, f"against {comparison.baseline} ({short(baseline)})", frame.picture(told, *marks))


def _entry(view: View, comparison: Comparison, pair: Paired) -> Entry:
    found = view.find(comparison.dataset, pair.challenger)
    return Entry(pair.challenger, colour(found) if found else "fused", tinted=bool(found and is_default(found)))


def _kind(pair: Paired) -> str:
    if not pair.significant or pair.n < FEW:
        return "open"
    return "better" if pair.difference > 0 else "worse"


def _tables(comparison: Comparison, name: str) -> list[Html]:
    first = comparison.overall[0]
    caption = f"{name}, which has {long(first.mean_baseline)} over {counted(first.n, 'topic')}"
    head = ("challenger", "mean", *_HEAD)
    found = [Table(head, [Row(_cells(pair)) for pair in comparison.overall], caption, tips=_TIPS).html()]
    if comparison.strata:
        rows = [
            Row(
                (
                    Cell(stratum, stratum),
                    Cell(f"{pair.n:,}", pair.n),
                    Cell(long(pair.mean_baseline), pair.mean_baseline),
                    *_cells(pair),
                )
            )
            for stratum, pairs in comparison.strata.items()
            for pair in pairs
        ]
        caption = f"{name}, by stratum; p corrected over all of these"
        table = Table(("stratum", "topics", "baseline", *head), rows, caption, tips=_TIPS)
        found.append(folded("by stratum", table.html()))
    return found


def _cells(pair: Paired) -> list[Cell]:
    return [
        Cell(pair.challenger, pair.challenger, "name"),
        Cell(long(pair.mean_challenger), pair.mean_challenger),
        Cell(signed(pair.difference), pair.difference),
        Cell(between(pair.low, pair.high, sign=True), pair.low),
        Cell(probability(pair.p), pair.p),
        Cell(probability(pair.p_holm), pair.p_holm, "strong" if pair.significant else ""),
        Cell(f"{pair.effect:+.2f}", pair.effect),
        Cell(f"{pair.wins} / {pair.losses} / {pair.ties}", pair.wins - pair.losses),
        Cell(pair.verdict, pair.verdict, "words"),
    ]
