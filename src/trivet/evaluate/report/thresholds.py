"""Where should hits be cut off?"""

from __future__ import annotations

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.findings import Cut
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import counted, percent
from trivet.evaluate.report.markup import Html, Section, joined, legend, pane, panel, panels, said, switch
from trivet.evaluate.report.material import View

MOST = 6  # profiles to choose from
STRIPS = 26  # places the pointer stops at
_CURVES = {
    "precision": ("s2", "precision: of the hits returned, how many are right"),
    "answered": ("s0", "topics with a right hit"),
    "false_unanswerable": ("s1 dashed", "unanswerable questions that still get a hit"),
    "false_nonsense": ("s3 dotted", "nonsense that still gets a hit"),
}


def section(view: View) -> Section | None:
    shown = _chosen(view)
    if not shown:
        return None
    drawn = {name for items in shown.values() for item in items for name in _CURVES if _points(item, name)}
    keys = legend((f"line {kind}", words) for name, (kind, words) in _CURVES.items() if name in drawn)
    if len(view.groups) == 1:  # there is room for all of them
        parts = [keys, panels(_picture(view, item) for items in shown.values() for item in items)]
    else:
        panes = (pane("threshold", name, panels(_picture(view, item) for item in shown[name])) for name in shown)
        parts = [switch("threshold", "Profile", list(shown)), keys, *panes]
    tellers = [item for group in view.groups for item in group.evaluations if item.findings.cuts]
    if "false_unanswerable" not in drawn:
        parts.append(said("No dataset here has unanswerable questions."))
    if len({item.name for item in tellers}) > len(shown):
        parts.append(said(f"Of {len({item.name for item in tellers})} profiles, {len(shown)} are drawn."))
    return Section(
        "thresholds",
        "Threshold",
        "Where should hits be cut off?",
        "What would be returned if hits below a relevance were dropped: as the threshold rises, false answers and "
        "right ones go. The dashed line is the profile's own min_relevance; what that drops is not in the curves.",
        joined(parts),
    )


def _chosen(view: View) -> dict[str, list[Evaluation]]:
    """Profile → its evaluations: the featured ones first, then those that cut already, then in the page's order."""
    tellers = [item for group in view.groups for item in group.evaluations if item.findings.cuts]
    first = [view.featured(group).name for group in view.groups]
    cutting = [item.name for item in tellers if item.profile and item.profile.min_relevance > 0]
    found = {
        name: [item for item in tellers if item.name == name] for name in dict.fromkeys((*first, *cutting, *view.names))
    }
    return dict([(name, items) for name, items in found.items() if items][:MOST])


def _picture(view: View, item: Evaluation) -> Html:
    frame = svg.Frame(height=250)
    cuts = item.findings.cuts
    x, y = svg.Linear(0.0, 1.0, *frame.x), svg.Linear(0.0, 1.0, *frame.y)
    ticks = svg.ticks(0.0, 1.0)
    names = [f"{tick:.0%}" for tick in ticks]
    marks = [
        frame.across(x, ticks, svg.named(ticks), "relevance below which hits are dropped"),
        frame.upward(y, ticks, names),
    ]
    if item.profile is not None:
        own = item.profile.min_relevance
        marks.append(svg.line(x(own), frame.y[0], x(own), frame.y[1], "base-line"))
    for name, (kind, _) in _CURVES.items():
        if points := _points(item, name):
            marks.append(svg.curve([(x(at), y(value)) for at, value in points], kind))
    step = max(1, -(-len(cuts) // STRIPS))
    width = (frame.x[1] - frame.x[0]) / max(1, len(cuts) - 1) * step
    marks += [
        svg.rect(x(cut.threshold) - width / 2, frame.y[1], width, frame.y[0] - frame.y[1], "strip", _tip(cut))
        for cut in cuts[::step]
    ]
    found = item.findings
    asked = f"{counted(found.topics, 'topic')}, {found.unanswerable:,} unanswerable, {found.nonsense:,} nonsense"
    label = view.label(item.dataset)
    own_words = f", min_relevance {item.profile.min_relevance:g}" if item.profile else ""
    told = f"precision, answered topics and false answers of {item.name} on {label} by threshold"
    return panel(label, f"{item.name}{own_words}", frame.picture(told, *marks), asked)


def _points(item: Evaluation, name: str) -> list[tuple[float, float]]:
    """A curve; that of precision ends where nothing is returned any more, and there is no precision to tell."""
    found = [(cut.threshold, getattr(cut, name)) for cut in item.findings.cuts]
    kept = [(at, float(value)) for at, value in found if value is not None]
    return kept if len(kept) > 1 else []


def _tip(cut: Cut) -> str:
    told = [f"from {cut.threshold:g}", f"precision {percent(cut.precision)}", f"answered {percent(cut.answered)}"]
    if cut.false_unanswerable is not None:
        told.append(f"unanswerable with a hit {percent(cut.false_unanswerable)}")
    if cut.false_nonsense is not None:
        told.append(f"nonsense with a hit {percent(cut.false_nonsense)}")
    return "\n".join(told)
