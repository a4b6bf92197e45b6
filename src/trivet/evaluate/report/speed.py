"""How long does an answer take?"""

from __future__ import annotations

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import ms
from trivet.evaluate.report.markup import Html, Section, joined, legend, panel, panels, said
from trivet.evaluate.report.material import Group, View
from trivet.evaluate.report.rows import Entry, Rows, dot

WIDE = 30.0  # the slowest takes so many times the fastest: from there on a logarithmic axis
SHORTEST = 0.01  # milliseconds: nothing is drawn to the left of it


def section(view: View) -> Section | None:
    timed = [group for group in view.groups if _timed(group)]
    if not timed:
        return None
    keys = [("dot fused", "median"), ("tick-mark", "95th percentile")]
    if any(item.findings.embed_ms for group in timed for item in _timed(group)):
        keys.append(("dot embed", "embedding the question, on top of it (median)"))
    parts = [legend(keys), panels(_picture(group) for group in timed)]
    untimed = sorted({item.name for group in view.groups for item in group.evaluations} - _names(timed))
    if untimed:
        parts.append(said(f"Without times, from another system or from the quick path: {', '.join(untimed)}."))
    return Section(
        "speed",
        "Speed",
        "How long does an answer take?",
        "One search, from the question's vector to the hits, in milliseconds, on the machine named at the end.",
        joined(parts),
    )


def _timed(group: Group) -> list[Evaluation]:
    return [item for item in group.evaluations if item.findings.p95_ms > 0]


def _names(groups: list[Group]) -> set[str]:
    return {item.name for group in groups for item in _timed(group)}


def _picture(group: Group) -> Html:
    shown = _timed(group)
    rows = Rows(map(Entry.of, shown), right=96)
    frame = rows.frame
    times = [max(SHORTEST, time) for item in shown for time in _times(item)]
    logarithmic = max(times) / min(times) >= WIDE
    low, high = (min(times) / 1.15, max(times) * 1.15) if logarithmic else svg.spread((0.0, *times), 4)
    x: svg.Scale = (svg.Log if logarithmic else svg.Linear)(low, high, *frame.x)
    ticks = svg.log_ticks(low, high, 5) if logarithmic else svg.ticks(low, high, 4)
    ticks = svg.spaced(ticks, x, 30)
    title = "milliseconds, logarithmic" if logarithmic else "milliseconds"
    marks = [rows.named(), frame.across(x, ticks, [f"{tick:,g}" for tick in ticks], title)]
    for item, entry, y in zip(shown, rows.entries, rows.middles, strict=True):
        p50, p95 = (max(SHORTEST, time) for time in (item.findings.p50_ms, item.findings.p95_ms))
        tip = f"{item.name}: median {ms(p50)} ms, 95th percentile {ms(p95)} ms"
        marks.append(svg.line(x(p50), y, x(p95), y, f"span {entry.colour}", tip))
        marks.append(svg.line(x(p95), y - 6, x(p95), y + 6, f"end {entry.colour}", tip))
        if embed := item.findings.embed_ms:
            told = f"{item.name}: embedding the question {ms(embed)} ms, median, not part of the other times"
            marks.append(svg.diamond(x(max(SHORTEST, embed)), y, 5, "dot embed", told))
        marks.append(dot(entry, x(p50), y, tip))
    marks.append(rows.ended([f"{ms(item.findings.p50_ms)} / {ms(item.findings.p95_ms)}" for item in shown]))
    told = f"median and 95th percentile of the time of a search on {group.label}, {len(shown)} profiles"
    return panel(group.label, "median / 95th percentile", frame.picture(told, *marks))


def _times(item: Evaluation) -> tuple[float, ...]:
    found = item.findings
    return (found.p50_ms, found.p95_ms, *((found.embed_ms,) if found.embed_ms else ()))
