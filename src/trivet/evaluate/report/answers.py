"""The sections on what is returned: calibration, relevance thresholds, the share of each leg and latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.findings import BINS, Bin, Cut
from trivet.evaluate.report.chart import Axis, Mark, Panel, Plot, Row, log_ticks, row_plot
from trivet.evaluate.report.formatting import between, counted, ms, percent, short
from trivet.evaluate.report.material import FUSED, Group, View, colour, is_default, kind
from trivet.evaluate.report.quality import dot
from trivet.legs import LEGS

COUNTS = 0.3  # share of the height of a reliability diagram that the largest bar of counts takes
Z_95 = 1.96  # standard deviations to each side of a 95 % interval
PROFILES = 6  # whose thresholds are drawn
STRIPS = 26  # places at which the pointer reads a threshold chart
CURVES = {
    "precision": ("s2", "precision: share of the hits returned that are relevant"),
    "answered": ("s0", "topics with a relevant hit"),
    "false_unanswerable": ("s1 dashed", "unanswerable queries that still get a hit"),
    "false_nonsense": ("s3 dotted", "nonsense that still gets a hit"),
}
LEG_WORDS = {leg: f"the {leg} leg alone" for leg in LEGS} | {"several": "several legs"}
BAR = 6.5  # half the height of a bar, in SVG units
WIDE = 30.0  # the slowest takes so many times the fastest: from there on the axis is logarithmic
SHORTEST = 0.01  # milliseconds; a shorter time is drawn here


# --- calibration ------------------------------------------------------------------------------------------------------


def calibration(view: View) -> dict[str, Any] | None:
    """Return a reliability diagram for each dataset's featured profile."""
    shown = [item for group in view.groups if (item := view.featured(group)).findings.bins]
    return {"panels": [_reliability(view, item) for item in shown]} if shown else None


def _reliability(view: View, item: Evaluation) -> Panel:
    bins = item.findings.bins
    most = max(bin.hits for bin in bins)
    marks = [
        Mark("bar", "bar several", ((bin.begin, 0.0), (bin.begin + 1 / BINS, COUNTS * bin.hits / most)), _bin_tip(bin))
        for bin in bins
    ]
    marks.append(Mark("line", "base-line s7", ((0.0, 0.0), (1.0, 1.0))))
    marks.append(Mark("curve", "curve s6 thin", [(bin.told, bin.right) for bin in bins]))
    for bin in bins:
        low, high = wilson(bin.right, bin.hits)
        marks.append(Mark("line", "span s6", ((bin.told, low), (bin.told, high)), _bin_tip(bin)))
        marks.append(Mark("circle", "dot s6", ((bin.told, bin.right),), _bin_tip(bin)))
    hits, error = sum(bin.hits for bin in bins), short(item.findings.calibration_error or 0.0)
    dataset = view.label(item.dataset)
    label = f"share judged relevant by relevance, {item.name} on {dataset}: {len(bins)} bins, {error} apart on average"
    plot = Plot(label, Axis.unit("relevance"), Axis.unit(percent=True), marks, height=360.0)
    below = f"{counted(hits, 'hit')}; relevance and the share judged relevant are {error} apart on average."
    return Panel(dataset, item.name, plot, below)


def _bin_tip(bin: Bin) -> str:
    interval = between(*wilson(bin.right, bin.hits))
    return (
        f"relevance {bin.begin:.1f} to {bin.begin + 1 / BINS:.1f}, mean {short(bin.told)}\n"
        f"{percent(bin.right)} of {counted(bin.hits, 'hit')} relevant, 95 % interval {interval}"
    )


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share; it stays between 0 and 1 for few hits or extreme shares (Wilson 1927)."""
    spread = Z_95**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z_95 * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


# --- thresholds -------------------------------------------------------------------------------------------------------


def thresholds(view: View) -> dict[str, Any] | None:
    """Return charts of what each relevance threshold would return, for up to ``PROFILES`` profiles."""
    cut = [item for group in view.groups for item in group.evaluations if item.findings.cuts]
    if not cut:
        return None
    featured = [view.featured(group).name for group in view.groups]
    cutting = [item.name for item in cut if item.profile and item.profile.min_relevance > 0]
    by_name = {name: [item for item in cut if item.name == name] for name in (*featured, *cutting, *view.names)}
    shown = dict([(name, items) for name, items in by_name.items() if items][:PROFILES])
    drawn = {name for items in shown.values() for item in items for name in CURVES if _points(item, name)}
    return {
        "legend": [(f"line {line}", words) for name, (line, words) in CURVES.items() if name in drawn],
        "panels": {name: [_threshold(view, item) for item in items] for name, items in shown.items()},
        "several": len(view.groups) > 1,
        "unanswerable": "false_unanswerable" in drawn,
        "profiles": len({item.name for item in cut}),
    }


def _threshold(view: View, item: Evaluation) -> Panel:
    found = item.findings
    marks = []
    if item.profile is not None:
        threshold = item.profile.min_relevance
        marks.append(Mark("line", "base-line", ((threshold, 0.0), (threshold, 1.0))))
    for name, (line, _) in CURVES.items():
        if points := _points(item, name):
            marks.append(Mark("curve", f"curve {line}", points))
    step = max(1, -(-len(found.cuts) // STRIPS))
    half = step / max(1, len(found.cuts) - 1) / 2
    marks += [
        Mark("bar", "strip", ((cut.threshold - half, 0.0), (cut.threshold + half, 1.0)), _cut_tip(cut))
        for cut in found.cuts[::step]
    ]
    dataset = view.label(item.dataset)
    label = f"precision, answered topics and false answers of {item.name} on {dataset} by threshold"
    x = Axis.unit("relevance below which hits are dropped")
    detail = f"{item.name}, min_relevance {item.profile.min_relevance:g}" if item.profile else item.name
    below = f"{counted(found.topics, 'topic')}, {found.unanswerable:,} unanswerable, {found.nonsense:,} nonsense"
    return Panel(dataset, detail, Plot(label, x, Axis.unit(percent=True), marks), below)


def _points(item: Evaluation, name: str) -> list[tuple[float, float]]:
    """Return a curve; precision ends where nothing is returned any more."""
    found = [(cut.threshold, getattr(cut, name)) for cut in item.findings.cuts]
    kept = [(threshold, float(value)) for threshold, value in found if value is not None]
    return kept if len(kept) > 1 else []


def _cut_tip(cut: Cut) -> str:
    lines = [f"from {cut.threshold:g}", f"precision {percent(cut.precision)}", f"answered {percent(cut.answered)}"]
    if cut.false_unanswerable is not None:
        lines.append(f"unanswerable with a hit {percent(cut.false_unanswerable)}")
    if cut.false_nonsense is not None:
        lines.append(f"nonsense with a hit {percent(cut.false_nonsense)}")
    return "\n".join(lines)


# --- legs -------------------------------------------------------------------------------------------------------------


def legs(view: View) -> dict[str, Any] | None:
    """Return, for each dataset, which relevant hits of a fused profile a single leg found."""
    drawn = [(group, fused) for group in view.groups if (fused := _fused(group))]
    if not drawn:
        return None
    used = {leg for _, fused in drawn for item in fused for leg, count in item.findings.only.items() if count}
    keys = [(f"dot {leg}", f"found by {words}") for leg, words in LEG_WORDS.items() if leg in (*used, "several")]
    return {"legend": keys, "panels": [_shares(group, fused) for group, fused in drawn]}


def _fused(group: Group) -> list[Evaluation]:
    return [item for item in group.evaluations if kind(item) == FUSED and item.findings.right]


def _shares(group: Group, shown: Sequence[Evaluation]) -> Panel:
    rows = []
    for item in shown:
        right, only = item.findings.right, item.findings.only
        single = sum(only.values())
        marks, done = [], 0
        for leg, words in LEG_WORDS.items():
            if (count := right - single if leg == "several" else only.get(leg, 0)) <= 0:
                continue
            tip = f"{item.name}: {count:,} of {right:,} relevant hits ({percent(count / right)}) found by {words}"
            marks.append(Mark("bar", f"bar {leg}", ((done / right, -BAR), ((done + count) / right, BAR)), tip))
            done += count
        rows.append(Row(item.name, f"{single:,}/{right:,}", marks, chosen=is_default(item)))
    label = f"relevant hits of {len(shown)} profiles on {group.label} by the legs that found them"
    plot = row_plot(label, Axis.unit("of the relevant hits", percent=True), rows, right=76.0)
    return Panel(group.label, "on the right: by one leg / all relevant hits", plot)


# --- latency ----------------------------------------------------------------------------------------------------------


def latency(view: View) -> dict[str, Any] | None:
    """Return the median and the 95th percentile of a search, for each dataset, and who has no times."""
    timed = [(group, items) for group in view.groups if (items := _timed(group))]
    if not timed:
        return None
    keys = [("dot fused", "median"), ("tick-mark", "95th percentile")]
    if any(item.findings.embed_ms for _, items in timed for item in items):
        keys.append(("dot embed", "embedding the query, in addition (median)"))
    names = {item.name for _, items in timed for item in items}
    return {
        "legend": keys,
        "panels": [_times(group, items) for group, items in timed],
        "untimed": ", ".join(sorted(set(view.names) - names)),
    }


def _timed(group: Group) -> list[Evaluation]:
    return [item for item in group.evaluations if item.findings.p95_ms > 0]


def _times(group: Group, shown: Sequence[Evaluation]) -> Panel:
    rows, times = [], []
    for item in shown:
        found = item.findings
        p50, p95 = (max(SHORTEST, time) for time in (found.p50_ms, found.p95_ms))
        times += [p50, p95]
        tip = f"{item.name}: median {ms(p50)} ms, 95th percentile {ms(p95)} ms"
        marks = [
            Mark("line", f"span {colour(item)}", ((p50, 0.0), (p95, 0.0)), tip),
            Mark("line", f"end {colour(item)}", ((p95, -6.0), (p95, 6.0)), tip),
        ]
        if found.embed_ms:
            embed = f"{item.name}: embedding the query {ms(found.embed_ms)} ms, median, not part of the other times"
            times.append(max(SHORTEST, found.embed_ms))
            marks.append(Mark("diamond", "dot embed", ((times[-1], 0.0),), embed, 5.0))
        marks.append(dot(item, p50, tip))
        rows.append(Row(item.name, f"{ms(found.p50_ms)} / {ms(found.p95_ms)}", marks, kind(item), is_default(item)))
    label = f"median and 95th percentile of the time of a search on {group.label}, {len(shown)} profiles"
    return Panel(group.label, "median / 95th percentile", row_plot(label, _time_axis(times), rows, right=96.0))


def _time_axis(times: Sequence[float]) -> Axis:
    if max(times) / min(times) < WIDE:
        return Axis.fit((0.0, *times), "milliseconds", 4)
    low, high = min(times) / 1.15, max(times) * 1.15
    ticks = log_ticks(low, high, 5)
    return Axis(low, high, ticks, [f"{tick:,g}" for tick in ticks], "milliseconds, logarithmic", shift=0.0)
