"""Where does it come from?"""

from __future__ import annotations

from collections.abc import Iterable

from trivet.evaluate.report.figures import counted
from trivet.evaluate.report.markup import Cell, Html, Row, Section, Table, folded, joined, tag
from trivet.evaluate.report.material import FEWER_RESAMPLES, View

_HEAD = ("evaluation", "dataset", "profile", "model", "commit", "version", "python", "machine", "at")


def section(view: View) -> Section:
    notes = [
        *view.material.notes,
        *_doubts(view),
        *dict.fromkeys(
            f"{group.label}: {note}" for group in view.groups for item in group.evaluations for note in item.notes
        ),
    ]
    rows = [Row([Cell(said, said) for said in record]) for record in _records(view)]
    table = Table(_HEAD, rows, "every evaluation of this report").html()
    datasets = tag("ul", *(tag("li", tag("b", group.label), " ", tag("code", group.identity)) for group in view.groups))
    parts = [tag("h3", "Datasets"), datasets]
    if notes:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in notes))]
    parts += [folded(counted(len(rows), "evaluation"), table)]
    return Section(
        "provenance",
        "Origin",
        "Where does it come from?",
        "Intervals: percentile bootstrap over topics, 10,000 resamples of the main measure and of differences, "
        f"{FEWER_RESAMPLES:,} of the other measures. A topic without an answer counts 0.",
        joined(parts),
    )


def summary(view: View) -> Html:
    """Under the title: how much, of which code and when."""
    made = [item.made for item in view.material.evaluations]
    commits = sorted({str(record["commit"]) for record in made if record.get("commit")})
    days = sorted({str(record["at"])[:10] for record in made if record.get("at")})
    models = sorted({str(item.model) for item in view.material.evaluations if item.model})
    facts = [
        counted(len(view.groups), "dataset"),
        counted(len(view.names), "profile"),
        counted(sum(group.topics for group in view.groups), "topic"),
        *([f"commit {_few(commits)}"] if commits else []),
        *([f"model {_few(models)}"] if models else []),
        *([days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"] if days else []),
    ]
    return tag("p", *(tag("span", fact) for fact in facts), class_="facts")


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _records(view: View) -> list[list[str]]:
    return [
        [
            item.name,
            item.dataset,
            str(item.profile) if item.profile else "a run from elsewhere",
            item.model or "none",
            *(str(item.made.get(key, "unknown")) for key in ("commit", "version", "python", "machine", "at")),
        ]
        for group in view.groups
        for item in group.evaluations
    ]


def _doubts(view: View) -> list[str]:
    """What makes numbers that stand side by side less comparable than they look."""
    found = []
    for name in view.names:
        items = [item for item in view.material.evaluations if item.name == name and item.profile]
        digests = sorted({item.profile.identity for item in items if item.profile})
        if len(digests) > 1:
            found.append(f"{name} is not the same profile everywhere: {', '.join(digests)}")
    for group in view.groups:
        for what, values in (
            ("models", {item.model for item in group.evaluations if item.model}),
            ("commits", {item.made.get("commit") for item in group.evaluations}),
            ("machines", {item.made.get("machine") for item in group.evaluations}),
        ):
            if len(values) > 1:
                found.append(f"{group.label}: the evaluations are of {len(values)} {what}: {_listed(values)}")
    return found


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted(str(value) for value in values))
