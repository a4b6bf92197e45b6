"""What does it come to, in one look?"""

from __future__ import annotations

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, counted, short
from trivet.evaluate.report.markup import Html, Section, tag
from trivet.evaluate.report.material import LEG, Group, View, colour, kind
from trivet.evaluate.significance import Paired


def section(view: View) -> Section | None:
    tiles = [_tile(view, group) for group in view.groups if view.featured(group).scores.get(view.main)]
    if not tiles:
        return None
    return Section(
        "glance",
        "At a glance",
        "What does it come to?",
        f"Mean {view.main} with its 95 % interval, for each dataset.",
        tag("div", *tiles, class_="tiles"),
    )


def _tile(view: View, group: Group) -> Html:
    shown = view.featured(group)
    mean, (low, high) = shown.mean(view.main), view.interval(shown, view.main)
    others = [item for item in group.evaluations if item is not shown and item.scores.get(view.main)]
    legs = [item for item in others if kind(item) == LEG]
    leg = max(legs, key=lambda item: item.mean(view.main), default=None)
    lines: list[Html] = []
    if leg is not None:
        lines.append(_line("best single leg", leg, view))
        if pair := _test(view, shown, leg):
            lines.append(tag("p", tag("em", f"{pair.challenger} against {pair.baseline}: {pair.verdict}")))
    if others and (best := max((*others, shown), key=lambda item: item.mean(view.main))) is not leg:
        lines.append(
            tag("p", tag("span", "highest mean: "), "this one") if best is shown else _line("highest", best, view)
        )
    return tag(
        "article",
        tag("h3", group.label, " ", tag("small", counted(group.topics, "topic"))),
        tag(
            "p",
            tag("b", short(mean), class_=f"big {colour(shown)}"),
            " ",
            tag("span", between(low, high), class_="soft"),
        ),
        tag("p", shown.name, class_="who"),
        _bar(mean, low, high, leg.mean(view.main) if leg else None, colour(shown)),
        *lines,
        class_="tile",
    )


def _line(words: str, item: Evaluation, view: View) -> Html:
    return tag("p", tag("span", f"{words}: "), f"{item.name} {short(item.mean(view.main))}")


def _bar(mean: float, low: float, high: float, leg: float | None, colour: str) -> Html:
    """The whole range of a score, and where this one lies in it."""
    frame = svg.Frame(height=14, left=2, right=2, top=0, bottom=0, width=260)
    x = svg.Linear(0.0, max(1.0, high), *frame.x)
    marks = [
        svg.rect(x(0), 5, x(max(1.0, high)) - x(0), 4, "track"),
        svg.rect(x(low), 5, x(high) - x(low), 4, f"fill {colour}"),
        svg.circle(x(mean), 7, 5, f"dot {colour}"),
    ]
    if leg is not None:
        marks.insert(1, svg.line(x(leg), 0, x(leg), 14, "mark-leg", f"best single leg {short(leg)}"))
    return frame.picture(f"{short(mean)} on a scale from 0 to 1", *marks)


def _test(view: View, first: Evaluation, second: Evaluation) -> Paired | None:
    """The paired test of these two, whichever was the baseline."""
    for comparison in view.material.comparisons:
        if comparison.dataset == first.dataset and comparison.measure == view.main:
            for pair in comparison.overall:
                if {pair.baseline, pair.challenger} == {first.name, second.name}:
                    return pair
    return None
