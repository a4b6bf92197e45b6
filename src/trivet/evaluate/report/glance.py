"""What does it come to, in one look?"""

from __future__ import annotations

from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import between, counted, short
from trivet.evaluate.report.markup import Html, Section, tag
from trivet.evaluate.report.material import LEG, Group, View, colour, kind
from trivet.evaluate.significance import Paired

_TILES = 4


def section(view: View) -> Section | None:
    """A tile for each dataset; of a single one, a tile for some measures."""
    wanted = [view.main] if len(view.groups) > 1 else view.measures[:_TILES]
    shown = [(group, name) for group in view.groups for name in wanted if view.featured(group).scores.get(name)]
    if not shown:
        return None
    return Section(
        "glance",
        "Glance",
        "What does it come to?",
        f"Mean {', '.join(wanted)} with its 95 % interval. The bar is the whole scale from 0 to 1, the upright mark on "
        "it the best single leg.",
        tag("div", *(_tile(view, group, name) for group, name in shown), class_="tiles"),
    )


def _tile(view: View, group: Group, measure: str) -> Html:
    shown = view.featured(group)
    mean, (low, high) = shown.mean(measure), view.interval(shown, measure)
    others = [item for item in group.evaluations if item is not shown and item.scores.get(measure)]
    legs = [item for item in others if kind(item) == LEG]
    leg = max(legs, key=lambda item: item.mean(measure), default=None)
    lines: list[Html] = []
    if leg is not None:
        lines.append(_line("best single leg", leg.name, leg.mean(measure)))
        if pair := _test(view, shown, leg, measure):
            lines.append(tag("p", tag("em", f"{pair.challenger} against {pair.baseline}: {pair.verdict}")))
    if others:
        best = max((shown, *others), key=lambda item: item.mean(measure))
        lines.append(_line("highest mean", "this one" if best is shown else best.name, best.mean(measure)))
    title = measure if len(view.groups) == 1 else group.label
    return tag(
        "article",
        tag("h3", title, " ", tag("small", f"{shown.name}, {counted(group.topics, 'topic')}")),
        tag("p", tag("b", short(mean), class_=f"big {colour(shown)}"), " ", tag("span", between(low, high))),
        _bar(mean, low, high, leg.mean(measure) if leg else None, colour(shown)),
        *lines,
        class_="tile",
    )


def _line(words: str, name: str, mean: float) -> Html:
    return tag("p", tag("span", f"{words}: "), f"{name} {short(mean)}")


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


def _test(view: View, first: Evaluation, second: Evaluation, measure: str) -> Paired | None:
    """The paired test of these two, whichever was the baseline."""
    for comparison in view.material.comparisons:
        if comparison.dataset == first.dataset and comparison.measure == measure:
            for pair in comparison.overall:
                if {pair.baseline, pair.challenger} == {first.name, second.name}:
                    return pair
    return None
