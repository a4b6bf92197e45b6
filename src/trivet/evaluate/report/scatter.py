"""On which questions do two profiles differ?"""

from __future__ import annotations

import math
import zlib

from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import clipped, short
from trivet.evaluate.report.markup import Html, Section, joined, legend, panel, panels, said
from trivet.evaluate.report.material import Pair, View
from trivet.evaluate.significance import ROUNDING

JITTER = 0.015  # as a share of the axis
TOLD = 160  # columns of a question shown on hover


def section(view: View) -> Section | None:
    pairs = view.pairs()
    if not pairs:
        return None
    pictures, missing = [], []
    for pair in pairs:
        picture = _picture(view, pair)
        if picture is not None:
            pictures.append(picture)
        else:
            missing.append(f"{pair.paired.challenger} on {view.label(pair.comparison.dataset)}")
    parts = [legend((("dot better", "challenger better"), ("dot worse", "worse"), ("dot tie", "the same")))]
    parts.append(panels(pictures))
    if missing:
        parts.append(said(f"Not drawn, the scores of each topic are not in this report: {', '.join(missing)}."))
    if (total := view.compared()) > len(pairs):
        parts.append(said(f"{len(pairs)} of {total} pairs are drawn, to keep the page small; all are in the tests."))
    return Section(
        "topics",
        "Topics",
        "On which questions do they differ?",
        "Every topic is a dot: its value under the baseline across, under the challenger upward. Above the diagonal "
        f"the challenger is better. Dots are moved by up to {JITTER:.1%} of the axis, so that equal ones do not hide "
        "each other. Point at a coloured dot to read its question.",
        joined(parts),
    )


def _picture(view: View, pair: Pair) -> Html | None:
    measure = pair.comparison.measure
    if pair.baseline is None or pair.challenger is None:
        return None
    before, after = pair.baseline.scores.get(measure, {}), pair.challenger.scores.get(measure, {})
    if not before or before.keys() != after.keys():
        return None
    frame = svg.Frame(height=svg.WIDTH + 6, left=44, right=14, top=26, bottom=42)  # as wide as it is high
    low, high = svg.spread((*before.values(), *after.values()), 5, floor=0.0)
    room = (high - low) * 2 * JITTER
    x, y = (svg.Linear(low - room, high + room, *ends) for ends in (frame.x, frame.y))
    ticks = svg.ticks(low, high)
    marks = [
        frame.across(x, ticks, svg.named(ticks), f"{pair.baseline.name}, {measure}"),
        frame.upward(y, ticks, svg.named(ticks)),
        svg.line(x(low), y(low), x(high), y(high), "zero"),
    ]
    ties: list[tuple[float, float]] = []
    moved: list[Html] = []
    for topic in sorted(before):
        right, up = _jitter(topic)
        place = x(before[topic] + right * room / 2), y(after[topic] + up * room / 2)
        if abs(after[topic] - before[topic]) <= ROUNDING * max(abs(after[topic]), abs(before[topic])):
            ties.append(place)
            continue
        question = pair.baseline.texts.get(topic) or pair.challenger.texts.get(topic) or f"topic {topic}"
        tip = f"{clipped(question, TOLD)}\n{short(before[topic])} → {short(after[topic])}"
        moved.append(svg.circle(*place, 3.5, f"point {'better' if after[topic] > before[topic] else 'worse'}", tip))
    wins, losses = pair.paired.wins, pair.paired.losses
    marks += [svg.dots(ties, "tie")] if ties else []
    marks += moved
    marks.append(svg.label(frame.x[0], 14, f"▲ {wins:,} better", "corner better"))
    marks.append(svg.label(frame.x[1], 14, f"▼ {losses:,} worse", "corner worse", "end"))
    label = view.label(pair.comparison.dataset)
    counts = f"{wins:,} better, {losses:,} worse, {pair.paired.ties:,} the same"
    told = f"{measure} of each topic, {pair.baseline.name} across, {pair.challenger.name} upward: {counts}"
    unnamed = not pair.baseline.texts and not pair.challenger.texts
    below = f"{counts}{'. The questions are not in this report: topics are told by their ids' if unnamed else ''}."
    title = f"{pair.challenger.name} against {pair.baseline.name}"
    return panel(label, title, frame.picture(told, *marks), below)


def _jitter(topic: str) -> tuple[float, float]:
    """A place in a circle of radius 1, the same for the same topic in every picture."""
    drawn = zlib.crc32(topic.encode("utf-8", "replace"))
    angle, distance = (drawn & 0xFFFF) / 0xFFFF * math.tau, math.sqrt((drawn >> 16) / 0xFFFF)
    return distance * math.cos(angle), distance * math.sin(angle)
