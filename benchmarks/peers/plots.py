"""Where do the engines stand, in pictures? SVG files that bring their own colours, light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corpus import SIZES
from peers.registry import ROWS
from peers.targets import number, p50
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import ms
from trivet.evaluate.report.markup import Html, joined, tag

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
FRAME = svg.Frame(height=430.0, left=58.0, right=190.0, top=16.0, bottom=40.0, width=760.0)
GAP = 12.5  # between two lines of text


def drawn(results: dict[str, Any]) -> dict[str, str]:
    """By file name; one that nothing was measured for is left out."""
    reads: dict[str, tuple[Callable[[Any], float | None], str]] = {
        "peers-latency.svg": (p50, "ms"),
        "peers-build.svg": (lambda row: number(row, "build", "s"), "s"),
        "peers-memory.svg": (lambda row: number(row, "ask", "memory_mb", "peak"), "MB"),
    }
    pictures = {file: _growth(results, read, NAMES[file], unit) for file, (read, unit) in reads.items()}
    pictures["peers-quality.svg"] = _quality(results)
    return {file: picture for file, picture in pictures.items() if picture}


def _growth(results: dict[str, Any], read: Callable[[Any], float | None], told: str, unit: str) -> str:
    """One line an engine over the sizes, both axes by ratio."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for size in sorted(results["rows"], key=lambda name: SIZES[name]):
        for name, row in results["rows"][size].items():
            if (value := read(row)) is not None and value > 0:
                lines.setdefault(name, []).append((SIZES[size], value))
    if not lines:
        return ""
    across = svg.Log(8_000, 1_250_000, *FRAME.x)
    values = [value for points in lines.values() for _, value in points]
    up = svg.Log(min(values) / 2.5, max(values) * 1.3, *FRAME.y)  # room below for names that are moved down
    marks = [_axes(across, [float(count) for count in SIZES.values()], list(SIZES), up, f"documents; {told} ({unit})")]
    ends: list[tuple[float, float, str]] = []
    for name, points in lines.items():
        kind = _kind(name)
        placed = [(across(x), up(y)) for x, y in points]
        marks += [svg.curve(placed, kind), *(svg.circle(x, y, 3, kind) for x, y in placed)]
        ends.append((*placed[-1], f"{name} {ms(points[-1][1])}"))
    return _picture(told, joined([*marks, *_labels(ends)]))


def _quality(results: dict[str, Any]) -> str:
    """Up is better, left is faster; at the largest size that everything fast enough was measured at."""
    sizes = [size for size in ("89k", "10k", "1M") if results["rows"].get(size)]
    if not sizes or not results["judged"]:
        return ""
    measured = results["rows"][sizes[0]]
    points = [
        (name, time, quality)
        for name, found in results["judged"].items()
        if (quality := number(found, "nDCG@10")) is not None and (time := p50(measured.get(name))) is not None
    ]
    if not points:
        return ""
    times = [time for _, time, _ in points]
    across = svg.Log(min(times) / 1.5, max(times) * 1.5, *FRAME.x)
    low, high = svg.spread(quality for _, _, quality in points)
    up = svg.Linear(low, high, *FRAME.y)
    ticks = svg.log_ticks(min(times) / 1.5, max(times) * 1.5)
    steps = svg.ticks(low, high)
    marks = [
        FRAME.across(
            across, ticks, [ms(tick) for tick in ticks], f"hybrid p50 at {sizes[0]}, ms; up: nDCG@10 on SciFact"
        ),
        FRAME.upward(up, steps, svg.named(steps)),
    ]
    ends = []
    for name, time, quality in points:
        marks.append(svg.circle(across(time), up(quality), 4, _kind(name)))
        ends.append((across(time), up(quality), name))
    return _picture(NAMES["peers-quality.svg"], joined([*marks, *_labels(ends)]))


def _axes(across: svg.Scale, values: list[float], names: list[str], up: svg.Log, title: str) -> Html:
    ticks = svg.log_ticks(up.low, up.high)
    return joined([FRAME.across(across, values, names, title), FRAME.upward(up, ticks, [ms(tick) for tick in ticks])])


def _labels(ends: list[tuple[float, float, str]]) -> list[Html]:
    """Beside their marks, moved down where they would lie on each other."""
    placed: list[tuple[float, float]] = []
    marks = []
    for x, y, said in sorted(ends, key=lambda end: (end[1], end[0])):
        at = y + 4
        while any(abs(at - other) < GAP and abs(x - beside) < 180 for beside, other in placed):
            at += GAP / 4
        placed.append((x, at))
        name = said if any(said == row.name for row in ROWS) else said.rsplit(" ", 1)[0]
        marks.append(svg.label(x + 7, at, said, _kind(name)))
    return marks


def _kind(name: str) -> str:
    return "ours" if any(row.ours for row in ROWS if row.name == name) else "theirs"


def _picture(told: str, marks: Html) -> str:
    size = f"0 0 {FRAME.width:g} {math.ceil(FRAME.height)}"
    whole = tag(
        "svg",
        tag("style", Html(STYLE)),
        marks,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=size,
        role="img",
        aria_label=told,
    )
    return f"{whole}\n"
