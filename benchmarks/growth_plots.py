"""What does growth look like? Two lines a picture, both axes by ratio: a straight line is a power of the size."""

from __future__ import annotations

from corpus import SIZES
from peers import plots
from peers.targets import TWO_LEGS
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import ms
from trivet.evaluate.report.markup import joined

Lines = dict[str, list[tuple[float, float]]]  # row → (records, value)
FILES = {
    "hybrid p50, ms": "scale-latency.svg",
    "CPU a question, ms": "scale-cpu.svg",
    "build, s": "scale-build.svg",
    "memory while asked, MB": "scale-memory.svg",
}


def drawn(measures: dict[str, Lines]) -> dict[str, tuple[str, str]]:
    """File name → (what it shows, the picture); one that has no line is left out."""
    pictures = {}
    for told, file in FILES.items():
        lines = {row: points for row, points in measures[told].items() if len(points) > 1}
        if lines:
            pictures[file] = (f"{told}, by the number of documents", _picture(told, lines))
    return pictures


def _picture(told: str, lines: Lines) -> str:
    frame = plots.FRAME
    values = [value for points in lines.values() for _, value in points]
    across = svg.Log(min(SIZES.values()) / 1.25, max(SIZES.values()) * 1.25, *frame.x)
    up = svg.Log(min(values) / 1.3, max(values) * 1.3, *frame.y)
    marks = [plots._axes(across, [float(count) for count in SIZES.values()], list(SIZES), up, f"documents; {told}")]
    for row, points in lines.items():
        kind = "ours" if row == TWO_LEGS else "theirs"
        placed = [(across(x), up(y)) for x, y in points]
        marks += [svg.curve(placed, kind), *(svg.circle(x, y, 3, kind) for x, y in placed)]
        marks.append(svg.label(placed[-1][0] + 7, placed[-1][1] + 4, f"{row} {ms(points[-1][1])}", kind))
    return plots._picture(told, joined(marks))
