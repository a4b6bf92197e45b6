"""How well does each profile find what is right?"""

from __future__ import annotations

from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, counted, short
from trivet.evaluate.report.markup import Html, Section, joined, legend, pane, panel, panels, said
from trivet.evaluate.report.material import LEG, Group, View, colour, kind
from trivet.evaluate.report.matrix import matrix
from trivet.evaluate.report.rows import Entry, Rows, dot

_WORDS = {
    "lexical": "words alone",
    "trigram": "trigrams alone",
    "dense": "meaning alone",
    "fused": "fused",
    "default": "the default profile",
    "elsewhere": "another system's run",
}


def section(view: View) -> Section | None:
    if not view.pictured:
        return None
    drawn = {colour(item) for group in view.groups for item in group.evaluations}
    keys = legend((f"dot {kind}", words) for kind, words in _WORDS.items() if kind in drawn)
    pictures = {
        measure: [picture for group in view.groups if (picture := _picture(view, group, measure)) is not None]
        for measure in view.pictured
    }
    if len(view.groups) == 1:  # there is room for every measure side by side
        parts = [keys, panels(picture for found in pictures.values() for picture in found)]
    else:
        parts = [pane("measure", name, matrix(view, name), keys, panels(found)) for name, found in pictures.items()]
    if left_out := view.measures[len(view.pictured) :]:
        parts.append(said(f"Not drawn, to keep the page small, but in the tables: {', '.join(left_out)}."))
    return Section(
        "quality",
        "Quality",
        "How well does each profile find what is right?",
        "The mean over all judged topics, with the interval that holds it in 95 % of bootstrap resamples. The dashed "
        "line is the best single leg. Intervals that overlap do not show that two profiles are alike: every profile "
        "was asked the same topics, so a difference is judged topic by topic, in the paired tests.",
        joined(parts),
    )


def _picture(view: View, group: Group, measure: str) -> Html | None:
    shown = [item for item in group.evaluations if item.scores.get(measure)]
    if not shown:
        return None
    rows = Rows(map(Entry.of, shown))
    frame = rows.frame
    means = [item.mean(measure) for item in shown]
    intervals = [view.interval(item, measure) for item in shown]
    low, high = svg.spread((*means, *(bound for both in intervals for bound in both)), 4, floor=0.0)
    x = svg.Linear(low, high, *frame.x)
    marks = [rows.named(), frame.across(x, ticks := svg.ticks(low, high, 4), svg.named(ticks), measure)]
    legs = [mean for item, mean in zip(shown, means, strict=True) if kind(item) == LEG]
    if legs and len(legs) < len(shown):
        marks.append(svg.line(x(max(legs)), frame.y[1], x(max(legs)), frame.y[0], "mean-line"))
    for entry, y, mean, (start, end) in zip(rows.entries, rows.middles, means, intervals, strict=True):
        tip = f"{entry.name}: {measure} {short(mean)}, 95 % interval {between(start, end)}"
        marks.append(svg.line(x(start), y, x(end), y, f"span {entry.colour}", tip))
        marks.append(dot(entry, x(mean), y, tip))
    marks.append(rows.ended([short(mean) for mean in means]))
    best = max(zip(means, (item.name for item in shown), strict=True))
    told = f"{measure} of {len(shown)} profiles on {group.label}; the highest mean is {best[1]} with {short(best[0])}"
    topics = counted(group.topics, "topic")
    name, detail = (group.label, measure) if len(view.groups) > 1 else (measure, group.label)
    return panel(name, f"{detail}, {topics}", frame.picture(told, *marks))
