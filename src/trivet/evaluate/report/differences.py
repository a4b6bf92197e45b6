"""The sections on differences: significance tests, per-topic scatter plots and the topics that changed most."""

from __future__ import annotations

import math
import zlib
from typing import Any

from trivet.evaluate.comparison import Comparison
from trivet.evaluate.report.chart import Axis, Mark, Panel, Plot, Row, row_plot
from trivet.evaluate.report.formatting import between, clipped, counted, long, probability, short, signed
from trivet.evaluate.report.material import Pair, View, is_default
from trivet.evaluate.report.table import Cell, Table, named
from trivet.evaluate.significance import FEW, ROUNDING, Paired

TIPS = {
    "difference": "challenger minus baseline, mean over the topics",
    "95 % interval": "of the difference, by bootstrap; not widened for the family",
    "p": "two-sided paired randomisation test",
    "Holm p": "corrected for all challengers of this baseline",
    "effect": "Cohen's d_z: the mean difference in standard deviations of the differences",
    "W / L / T": "topics on which the challenger is better, worse, the same",
}
HEAD = ("challenger", "mean", *TIPS, "verdict")
OPEN = 2  # comparisons whose tables are shown unfolded; of more, the first alone
JITTER = 0.015  # largest shift of a dot of a scatter plot, as a share of the axis
QUERY = 160  # columns of a query shown on hover


# --- significance tests -----------------------------------------------------------------------------------------------


def significance(view: View) -> dict[str, Any] | None:
    """Return a chart and the tables of each comparison."""
    compared = [comparison for comparison in view.material.comparisons if comparison.overall]
    if not compared:
        return None
    tests = []
    for index, comparison in enumerate(compared):
        name = f"{view.label(comparison.dataset)}: {comparison.measure} against {comparison.baseline}"
        unfolded = len(compared) <= OPEN or index == 0
        tests.append((name, unfolded, _overall(comparison, name), _by_stratum(comparison, name)))
    return {"panels": [_forest(view, comparison) for comparison in compared], "tests": tests, "few": FEW}


def _forest(view: View, comparison: Comparison) -> Panel:
    rows = []
    for pair in comparison.overall:
        span = between(pair.low, pair.high, sign=True)
        tip = f"{pair.challenger}: {signed(pair.difference)}, 95 % interval {span}\n{pair.verdict}"
        marks = (
            Mark("line", f"span {_outcome(pair)}", ((pair.low, 0.0), (pair.high, 0.0)), tip),
            Mark("circle", f"dot {_outcome(pair)}", ((pair.difference, 0.0),), tip, 5.0),
        )
        found = view.find(comparison.dataset, pair.challenger)
        rows.append(Row(pair.challenger, f"{pair.difference:+.3f}", marks, chosen=bool(found and is_default(found))))
    dataset = view.label(comparison.dataset)
    label = f"difference in {comparison.measure} from {comparison.baseline} on {dataset}, with 95 % intervals"
    bounds = (bound for pair in comparison.overall for bound in (pair.low, pair.high))
    axis = Axis.fit((0.0, *bounds), f"difference in {comparison.measure}", 4)
    baseline = f"against {comparison.baseline} ({short(comparison.overall[0].mean_baseline)})"
    return Panel(dataset, baseline, row_plot(label, axis, rows, right=62.0, lines=[(0.0, "zero")]))


def _outcome(pair: Paired) -> str:
    """Return the style sheet's class: filled only where a difference was shown."""
    if not pair.significant or pair.n < FEW:
        return "open"
    return "better" if pair.difference > 0 else "worse"


def _overall(comparison: Comparison, name: str) -> Table:
    first = comparison.overall[0]
    caption = f"{name}, which has {long(first.mean_baseline)} over {counted(first.n, 'topic')}"
    return Table(HEAD, [_cells(pair) for pair in comparison.overall], caption, tips=TIPS)


def _by_stratum(comparison: Comparison, name: str) -> Table | None:
    if not comparison.strata:
        return None
    rows = [
        [
            Cell(stratum, stratum),
            Cell(f"{pair.n:,}", pair.n),
            Cell(long(pair.mean_baseline), pair.mean_baseline),
            *_cells(pair),
        ]
        for stratum, pairs in comparison.strata.items()
        for pair in pairs
    ]
    caption = f"{name}, by stratum; p corrected over all of these"
    return Table(("stratum", "topics", "baseline", *HEAD), rows, caption, tips=TIPS)


def _cells(pair: Paired) -> list[Cell]:
    return [
        named(pair.challenger),
        Cell(long(pair.mean_challenger), pair.mean_challenger),
        Cell(signed(pair.difference), pair.difference),
        Cell(between(pair.low, pair.high, sign=True), pair.low),
        Cell(probability(pair.p), pair.p),
        Cell(probability(pair.p_holm), pair.p_holm, "strong" if pair.significant else ""),
        Cell(f"{pair.effect:+.2f}", pair.effect),
        Cell(f"{pair.wins} / {pair.losses} / {pair.ties}", pair.wins - pair.losses),
        Cell(pair.verdict, pair.verdict, "words"),
    ]


# --- topic by topic ---------------------------------------------------------------------------------------------------


def topics(view: View) -> dict[str, Any] | None:
    """Return a scatter plot of each pair, and what could not be drawn."""
    pairs = view.pairs()
    if not pairs:
        return None
    drawn = [(pair, _scatter(view, pair)) for pair in pairs]
    missing = [
        f"{pair.paired.challenger} on {view.label(pair.comparison.dataset)}" for pair, panel in drawn if panel is None
    ]
    return {
        "panels": [panel for _, panel in drawn if panel],
        "missing": ", ".join(missing),
        "drawn": len(pairs),
        "pairs": view.compared(),
        "jitter": f"{JITTER:.1%}",
    }


def _scatter(view: View, pair: Pair) -> Panel | None:
    measure, baseline, challenger = pair.comparison.measure, pair.baseline, pair.challenger
    if baseline is None or challenger is None:
        return None
    before, after = baseline.scores.get(measure, {}), challenger.scores.get(measure, {})
    if not before or before.keys() != after.keys():
        return None
    axis = Axis.fit((*before.values(), *after.values()), floor=0.0)
    room = (axis.high - axis.low) * 2 * JITTER
    x = Axis(axis.low - room, axis.high + room, axis.ticks, axis.labels, f"{baseline.name}, {measure}")
    ties: list[tuple[float, float]] = []
    changed: list[Mark] = []
    for topic in sorted(before):
        right, up = _jitter(topic)
        point = before[topic] + right * room / 2, after[topic] + up * room / 2
        if abs(after[topic] - before[topic]) <= ROUNDING * max(abs(after[topic]), abs(before[topic])):
            ties.append(point)
            continue
        query = baseline.texts.get(topic) or challenger.texts.get(topic) or f"topic {topic}"
        tip = f"{clipped(query, QUERY)}\n{short(before[topic])} → {short(after[topic])}"
        outcome = "better" if after[topic] > before[topic] else "worse"
        changed.append(Mark("circle", f"point {outcome}", (point,), tip, 3.5))
    wins, losses = pair.paired.wins, pair.paired.losses
    corners = ((x.low, x.high), (x.high, x.high))
    marks = [
        Mark("line", "zero", ((axis.low, axis.low), (axis.high, axis.high))),
        *([Mark("dots", "dots tie", ties)] if ties else []),
        *changed,
        Mark("text", "corner better", corners[:1], text=f"▲ {wins:,} better", offset=(0.0, -12.0)),
        Mark("text", "corner worse", corners[1:], text=f"▼ {losses:,} worse", anchor="end", offset=(0.0, -12.0)),
    ]
    counts = f"{wins:,} better, {losses:,} worse, {pair.paired.ties:,} the same"
    label = f"{measure} of each topic, {baseline.name} across, {challenger.name} upward: {counts}"
    ids_only = (
        "" if baseline.texts or challenger.texts else " The queries are not in this report: topics have ids only."
    )
    plot = Plot(label, x, x, marks, height=386.0, top=26.0, bottom=42.0)  # as high as it is wide inside its margins
    title = f"{challenger.name} against {baseline.name}"
    return Panel(view.label(pair.comparison.dataset), title, plot, f"{counts}.{ids_only}")


def _jitter(topic: str) -> tuple[float, float]:
    """Return a point in the unit circle, always the same for the same topic."""
    drawn = zlib.crc32(topic.encode("utf-8", "replace"))
    angle, distance = (drawn & 0xFFFF) / 0xFFFF * math.tau, math.sqrt((drawn >> 16) / 0xFFFF)
    return distance * math.cos(angle), distance * math.sin(angle)


def changes(view: View) -> dict[str, Any] | None:
    """Return the topics whose score changed most, of each pair, with both rankings."""
    found = []
    for pair in view.pairs():
        if items := pair.comparison.moved.get(pair.paired.challenger):
            title = (
                f"{view.label(pair.comparison.dataset)}: {pair.paired.challenger} against {pair.paired.baseline}, "
                f"{counted(len(items), 'topic')} by change in {pair.comparison.measure}"
            )
            found.append((title, pair.paired, items))
    return {"pairs": found} if found else None
