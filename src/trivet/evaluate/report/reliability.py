"""Does relevance mean what it says?"""

from __future__ import annotations

import math

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.findings import BINS, Bin
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, counted, percent, short
from trivet.evaluate.report.markup import Html, Section, joined, legend, panel, panels
from trivet.evaluate.report.material import View

BARS = 0.3  # of the picture's height is for how many hits there are
_95 = 1.96  # deviations


def section(view: View) -> Section | None:
    shown = [item for group in view.groups if (item := view.featured(group)).findings.bins]
    if not shown:
        return None
    keys = legend(
        (
            ("dot s6", "share judged right, with its 95 % interval"),
            ("line s7 dashed", "right as often as relevance says"),
            ("dot several", "how many hits"),
        )
    )
    return Section(
        "reliability",
        "Reliability",
        "Does relevance mean what it says?",
        "All hits returned, in ten bins by their relevance: what it tells of them across, the share judged right "
        "upward. Above the diagonal relevance is too modest, below it promises too much. Hits nobody judged count as "
        "wrong, and so do all hits for questions that nothing answers.",
        joined((keys, panels(_picture(view, item) for item in shown))),
    )


def _picture(view: View, item: Evaluation) -> Html:
    bins = item.findings.bins
    frame = svg.Frame(height=svg.WIDTH - 20)
    x, y = svg.Linear(0.0, 1.0, *frame.x), svg.Linear(0.0, 1.0, *frame.y)
    most = max(bin.hits for bin in bins)
    high = svg.Linear(0.0, most, frame.y[0], y(BARS))
    ticks = svg.ticks(0.0, 1.0)
    marks = [
        frame.across(x, ticks, svg.named(ticks), "relevance"),
        frame.upward(y, ticks, [f"{tick:.0%}" for tick in ticks]),
    ]
    for bin in bins:
        left, wide = x(bin.begin), x(1 / BINS) - x(0.0)
        marks.append(svg.rect(left, high(bin.hits), wide, frame.y[0] - high(bin.hits), "bar several", _tip(bin)))
    marks.append(svg.line(x(0.0), y(0.0), x(1.0), y(1.0), "base-line s7"))
    marks.append(svg.curve([(x(bin.told), y(bin.right)) for bin in bins], "s6 thin"))
    for bin in bins:
        low, top = wilson(bin.right, bin.hits)
        marks.append(svg.line(x(bin.told), y(low), x(bin.told), y(top), "span s6", _tip(bin)))
        marks.append(svg.circle(x(bin.told), y(bin.right), 4.5, "dot s6", _tip(bin)))
    hits, error = sum(bin.hits for bin in bins), item.findings.calibration_error or 0.0
    label = view.label(item.dataset)
    told = f"share judged right by relevance, {item.name} on {label}: {len(bins)} bins, {short(error)} apart on average"
    below = f"{counted(hits, 'hit')}; relevance and the share judged right are {short(error)} apart on average."
    return panel(label, item.name, frame.picture(told, *marks), below)


def _tip(bin: Bin) -> str:
    told = f"relevance {bin.begin:.1f} to {bin.begin + 1 / BINS:.1f}, mean {short(bin.told)}"
    interval = between(*wilson(bin.right, bin.hits))
    return f"{told}\n{percent(bin.right)} of {counted(bin.hits, 'hit')} right, 95 % interval {interval}"


def wilson(share: float, count: int) -> tuple[float, float]:
    """The interval of a share, which for few hits or extreme shares stays between 0 and 1 (Wilson 1927)."""
    spread = _95**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = _95 * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
