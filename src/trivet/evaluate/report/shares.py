"""What did only one leg find?"""

from __future__ import annotations

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import percent
from trivet.evaluate.report.markup import Html, Section, joined, legend, panel, panels
from trivet.evaluate.report.material import FUSED, Group, View, kind
from trivet.evaluate.report.rows import Entry, Rows
from trivet.profile import LEGS

_WORDS = {"lexical": "words alone", "trigram": "trigrams alone", "dense": "meaning alone", "graph": "connections alone"}
_BAR = 13.0


def section(view: View) -> Section | None:
    drawn = [group for group in view.groups if _fused(group)]
    if not drawn:
        return None
    used = {leg for group in drawn for item in _fused(group) for leg, count in item.findings.only.items() if count}
    keys = [(f"dot {leg}", f"found by {_WORDS[leg]}") for leg in LEGS if leg in used]
    return Section(
        "legs",
        "Legs",
        "What did only one leg find?",
        "Of the right hits each fused profile returned, how many one leg alone had found: what would be lost without "
        "it.",
        joined((legend([*keys, ("dot several", "found by several legs")]), panels(_picture(group) for group in drawn))),
    )


def _fused(group: Group) -> list[Evaluation]:
    return [item for item in group.evaluations if kind(item) == FUSED and item.findings.right]


def _picture(group: Group) -> Html:
    shown = _fused(group)
    rows = Rows((Entry.of(item) for item in shown), right=76)
    frame = rows.frame
    x = svg.Linear(0.0, 1.0, *frame.x)
    ticks = svg.ticks(0.0, 1.0)
    marks = [rows.named(), frame.across(x, ticks, [f"{tick:.0%}" for tick in ticks], "of the right hits")]
    for item, middle in zip(shown, rows.middles, strict=True):
        right, only = item.findings.right, item.findings.only
        done = 0
        several = right - sum(only.values())
        for leg, count in (*((leg, only.get(leg, 0)) for leg in LEGS), ("several", several)):
            if count <= 0:
                continue
            words = "several legs" if leg == "several" else f"{_WORDS[leg]}"
            tip = f"{item.name}: {count:,} of {right:,} right hits ({percent(count / right)}) found by {words}"
            wide = x(count / right) - x(0)
            marks.append(svg.rect(x(done / right), middle - _BAR / 2, wide, _BAR, f"bar {leg}", tip))
            done += count
    marks.append(rows.ended([f"{sum(item.findings.only.values()):,}/{item.findings.right:,}" for item in shown]))
    told = f"right hits of {len(shown)} profiles on {group.label} by the legs that found them"
    return panel(group.label, "on the right: by one leg / all right hits", frame.picture(told, *marks))
