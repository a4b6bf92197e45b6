"""Which questions moved most, and what was found instead?"""

from __future__ import annotations

from trivet.evaluate.comparison import Moved
from trivet.evaluate.report.figures import counted, short
from trivet.evaluate.report.markup import Html, Section, folded, joined, said, tag
from trivet.evaluate.report.material import Pair, View


def section(view: View) -> Section | None:
    parts = [
        _pair(view, pair, place == 0)
        for place, pair in enumerate(pair for pair in view.pairs() if pair.comparison.moved.get(pair.paired.challenger))
    ]
    if not parts:
        return None
    return Section(
        "moved",
        "Moved",
        "Which questions moved most?",
        "Both rankings side by side, best first. A filled mark with a number is a document judged right, with its "
        "grade; a hollow mark is one judged wrong; no mark: nobody judged it.",
        joined(parts),
    )


def _pair(view: View, pair: Pair, opened: bool) -> Html:
    items = pair.comparison.moved[pair.paired.challenger]
    label = view.label(pair.comparison.dataset)
    title = (
        f"{label}: {pair.paired.challenger} against {pair.paired.baseline}, "
        f"{counted(len(items), 'topic')} by change in {pair.comparison.measure}"
    )
    topics = (_topic(pair, item, opened and place == 0) for place, item in enumerate(items))
    return folded(title, *topics, opened=opened)


def _topic(pair: Pair, item: Moved, opened: bool) -> Html:
    kind = "better" if item.change > 0 else "worse"
    question = tag("span", item.text or f"topic {item.topic} (its text is not in this report)", class_="question")
    head = tag(
        "summary",
        question,
        tag("span", item.stratum, class_="chip"),
        tag("span", f"{short(item.before)} → {short(item.after)}", class_="numbers"),
        tag("span", f"{item.change:+.3f}", class_=f"change {kind}"),
    )
    if item.baseline or item.challenger:
        sides = (_ranking(pair.paired.baseline, item.baseline), _ranking(pair.paired.challenger, item.challenger))
        body = tag("div", *sides, class_="sides")
    else:
        body = said("Neither ranking is in this report, or both found nothing.")
    return tag("details", head, body, class_="topic", open="" if opened else None)


def _ranking(name: str, ranking: tuple[tuple[str, int | None], ...]) -> Html:
    if not ranking:
        return tag("div", tag("h4", name), said("nothing found, or not in this report"))
    return tag("div", tag("h4", name), tag("ol", *(_document(id, grade) for id, grade in ranking)))


def _document(id: str, grade: int | None) -> Html:
    if grade is None:
        return tag("li", tag("span", id, class_="id"))
    if grade <= 0:
        return tag("li", tag("span", "○", class_="grade wrong", title="judged wrong"), tag("span", id, class_="id"))
    mark = tag("span", f"● {grade}", class_="grade right", title=f"judged right, grade {grade}")
    return tag("li", mark, tag("span", id, class_="id"), class_="right")
