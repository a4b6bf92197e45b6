"""The origin of the numbers: datasets, notes, and the code, model and machine of each evaluation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trivet.evaluate.report.formatting import counted
from trivet.evaluate.report.material import FEWER_RESAMPLES, View
from trivet.evaluate.report.table import Cell, Table

ORIGIN = ("commit", "version", "python", "machine", "at")


def provenance(view: View) -> dict[str, Any]:
    """Return the datasets, the notes and a table of every evaluation's origin."""
    items = [item for group in view.groups for item in group.evaluations]
    from_items = dict.fromkeys(f"{view.label(item.dataset)}: {note}" for item in items for note in item.notes)
    rows = [
        (
            item.name,
            item.dataset,
            str(item.profile) if item.profile else "a run from elsewhere",
            item.model or "none",
            *(str(item.made.get(key, "unknown")) for key in ORIGIN),
        )
        for item in items
    ]
    head = ("evaluation", "dataset", "profile", "model", *ORIGIN)
    return {
        "datasets": [(group.label, group.identity) for group in view.groups],
        "notes": [*view.material.notes, *_warnings(view), *from_items],
        "summary": counted(len(rows), "evaluation"),
        "table": Table(head, [[Cell(text, text) for text in row] for row in rows], "every evaluation of this report"),
        "resamples": f"{FEWER_RESAMPLES:,}",
    }


def facts(view: View) -> list[str]:
    """Return the line under the title: how much was evaluated, with which code and model, and when."""
    made = [item.made for item in view.material.evaluations]
    commits = sorted({str(record["commit"]) for record in made if record.get("commit")})
    days = sorted({str(record["at"])[:10] for record in made if record.get("at")})
    models = sorted({str(item.model) for item in view.material.evaluations if item.model})
    return [
        counted(len(view.groups), "dataset"),
        counted(len(view.names), "profile"),
        counted(sum(group.topics for group in view.groups), "topic"),
        *([f"commit {_few(commits)}"] if commits else []),
        *([f"model {_few(models)}"] if models else []),
        *([days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"] if days else []),
    ]


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _warnings(view: View) -> list[str]:
    """Return what makes numbers side by side less comparable than they look."""
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
