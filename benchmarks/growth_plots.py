"""Charts of growth: a line for each row over the number of documents, both axes logarithmic."""

from __future__ import annotations

from peers import plots
from peers.targets import TWO_LEGS
from trivet.evaluate.report.chart import Mark
from trivet.evaluate.report.formatting import ms

Lines = dict[str, list[tuple[float, float]]]  # row → (documents, value)
FILES = {
    "hybrid p50, ms": "scale-latency.svg",
    "CPU a query, ms": "scale-cpu.svg",
    "build, s": "scale-build.svg",
    "memory while asked, MB": "scale-memory.svg",
}


def drawn(measures: dict[str, Lines]) -> dict[str, tuple[str, str]]:
    """Return (caption, SVG) by file name; a chart without a line is left out."""
    charts = {}
    for name, file in FILES.items():
        lines = {row: points for row, points in measures[name].items() if len(points) > 1}
        if lines:
            charts[file] = (f"{name}, by the number of documents", _chart(name, lines))
    return charts


def _chart(name: str, lines: Lines) -> str:
    values = [value for points in lines.values() for _, value in points]
    x, y = plots.size_axis(f"documents; {name}", 1.25), plots.log_axis(min(values) / 1.3, max(values) * 1.3)
    marks = []
    for row, points in lines.items():
        kind = "ours" if row == TWO_LEGS else "theirs"
        marks += plots.curve(points, kind)
        text = f"{row} {ms(points[-1][1])}"
        marks.append(Mark("text", kind, points[-1:], text=text, offset=(7.0, 4.0)))
    return plots.svg_file(plots.plot(name, x, y, marks), plots.STYLE)
