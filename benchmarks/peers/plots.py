"""Charts of the engines side by side: SVG files with their own colours, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from corpus import SIZES
from peers.registry import ROWS
from peers.targets import number, p50
from trivet.evaluate.report.chart import Axis, Mark, Plot, log_ticks
from trivet.evaluate.report.formatting import ms
from trivet.evaluate.report.page import svg_file

NAMES = {
    "peers-latency.svg": "hybrid p50 against the number of documents",
    "peers-build.svg": "build time against the number of documents",
    "peers-memory.svg": "memory while asked against the number of documents",
    "peers-quality.svg": "nDCG@10 on SciFact against hybrid p50",
}
STYLE = """
svg{font:11px system-ui,sans-serif;background:#fff}
text{fill:#444;paint-order:stroke;stroke:#fff;stroke-width:3px}.axis{fill:#222}.grid{stroke:#e4e4e4}
.curve{fill:none;stroke-width:1.4;stroke:#9a9a9a}.curve.ours{stroke:#0b62c4;stroke-width:2.4}
circle{fill:#9a9a9a}circle.ours{fill:#0b62c4}text.ours{fill:#0b62c4;font-weight:600}
@media(prefers-color-scheme:dark){svg{background:#16181c}text{fill:#bbb;stroke:#16181c}.axis{fill:#eee}.grid{stroke:#2c3036}
.curve.ours{stroke:#6db3ff}circle.ours,text.ours{fill:#6db3ff}}
"""
GAP = 12.5  # SVG units between two lines of text
BESIDE = 180.0  # SVG units: about the length of a label

plot = partial(Plot, height=430.0, left=58.0, right=190.0, top=16.0, bottom=40.0, width=760.0)


def drawn(results: dict[str, Any]) -> dict[str, str]:
    """Return the SVG by file name; a chart that nothing was measured for is left out."""
    reads: dict[str, tuple[Callable[[Any], float | None], str]] = {
        "peers-latency.svg": (p50, "ms"),
        "peers-build.svg": (lambda row: number(row, "build", "s"), "s"),
        "peers-memory.svg": (lambda row: number(row, "ask", "memory_mb", "peak"), "MB"),
    }
    charts = {file: _growth(results, read, NAMES[file], unit) for file, (read, unit) in reads.items()}
    charts["peers-quality.svg"] = _quality(results)
    return {file: chart for file, chart in charts.items() if chart}


def size_axis(title: str, room: float) -> Axis:
    """Return a logarithmic axis over the sizes of the corpus, with that much room at both ends."""
    counts = [float(count) for count in SIZES.values()]
    return Axis(min(counts) / room, max(counts) * room, counts, list(SIZES), title, shift=0.0)


def log_axis(low: float, high: float, title: str = "") -> Axis:
    ticks = log_ticks(low, high)
    return Axis(low, high, ticks, [ms(tick) for tick in ticks], title, shift=0.0)


def curve(points: Sequence[tuple[float, float]], kind: str) -> list[Mark]:
    return [Mark("curve", f"curve {kind}", points), *(Mark("circle", kind, (point,), size=3.0) for point in points)]


def _growth(results: dict[str, Any], read: Callable[[Any], float | None], name: str, unit: str) -> str:
    """Return a line for each engine over the sizes."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for size in sorted(results["rows"], key=lambda name: SIZES[name]):
        for engine, row in results["rows"][size].items():
            if (value := read(row)) is not None and value > 0:
                lines.setdefault(engine, []).append((SIZES[size], value))
    if not lines:
        return ""
    values = [value for points in lines.values() for _, value in points]
    y = log_axis(min(values) / 2.5, max(values) * 1.3)  # room below for labels that are moved down
    marks = [mark for engine, points in lines.items() for mark in curve(points, _kind(engine))]
    ends = [(points[-1], f"{engine} {ms(points[-1][1])}", engine) for engine, points in lines.items()]
    return _labelled(plot(name, size_axis(f"documents; {name} ({unit})", 1.25), y, marks), ends)


def _quality(results: dict[str, Any]) -> str:
    """Return quality over speed, at the largest size that everything fast enough was measured at."""
    sizes = [size for size in ("89k", "10k", "1M") if results["rows"].get(size)]
    if not sizes or not results["judged"]:
        return ""
    measured = results["rows"][sizes[0]]
    points = {
        engine: (time, quality)
        for engine, found in results["judged"].items()
        if (quality := number(found, "nDCG@10")) is not None and (time := p50(measured.get(engine))) is not None
    }
    if not points:
        return ""
    times = [time for time, _ in points.values()]
    title = f"hybrid p50 at {sizes[0]}, ms; up: nDCG@10 on SciFact"
    x = log_axis(min(times) / 1.5, max(times) * 1.5, title)
    y = Axis.fit(quality for _, quality in points.values())
    marks = [Mark("circle", _kind(engine), (point,), size=4.0) for engine, point in points.items()]
    ends = [(point, engine, engine) for engine, point in points.items()]
    return _labelled(plot(NAMES["peers-quality.svg"], x, y, marks), ends)


def _labelled(chart: Plot, ends: Sequence[tuple[tuple[float, float], str, str]]) -> str:
    """Write (point, text, engine) beside their marks, moved down where they would lie on each other."""
    placed: list[tuple[float, float]] = []
    labels = []
    for point, text, engine in sorted(ends, key=lambda end: chart.place(end[0])[::-1]):
        x, y = chart.place(point)
        at = y + 4
        while any(abs(at - other) < GAP and abs(x - beside) < BESIDE for beside, other in placed):
            at += GAP / 4
        placed.append((x, at))
        labels.append(Mark("text", _kind(engine), (point,), text=text, offset=(7.0, at - y)))
    return svg_file(chart, STYLE, labels)


def _kind(name: str) -> str:
    return "ours" if any(row.ours for row in ROWS if row.name == name) else "theirs"
