"""Which of these is better? (``trivet compare``)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.errors import InputError
from trivet.surfaces.cli import options, outputs, screen, sources, trials
from trivet.surfaces.cli.contenders import Contenders
from trivet.surfaces.cli.options import argument, option, spread
from trivet.surfaces.cli.sources import Source
from trivet.surfaces.cli.trials import Trial

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation


@spread
def compare(
    what: Annotated[
        list[str],
        argument("DATASET|RESULT", "A dataset (a folder or `demo`), or .json results of `trivet eval --save`."),
    ],
    contenders: Contenders,
    source: Source,
    measure: sources.Measure = "nDCG@10",
    run: trials.Runs = None,
    moved: Annotated[int, option("--moved", "N", "The queries that moved most, with both rankings.", default=True)] = 5,
    report: outputs.Report = None,
    json: options.Json = False,
) -> None:
    """Compare rankings on the same queries, the first with each other one: paired tests, and what moved.

    Named twice or more, -p gives the profiles; with one of them, --alpha, --weight and --set say what to change, and
    it is compared with itself so changed.
    """
    from trivet.evaluate import compare as paired

    if moved < 0:
        raise InputError(f"--moved: {moved} is less than 0")
    measure = sources.checked([measure])[0]
    outputs.file(report, "--report")
    labels: dict[str, str] = {}
    if all(item.endswith(".json") for item in what):
        evaluations = _saved(what, contenders, source, run)
    elif len(what) > 1:
        raise InputError(f"compare: {what[0]!r} and {what[1]!r} are neither one dataset nor .json results")
    else:
        evaluations, labels = _tried(what[0], contenders, source, run, measure, fast=report is None)
    found = paired(evaluations, measure, top=moved)
    outputs.report(report, f"trivet compare {' '.join(what)}", evaluations, [found])
    if json:
        screen.print_json({**found.to_dict(), "notes": _notes(evaluations)})
        return
    from trivet.surfaces.cli import differences

    place = screen.stdout()
    place.show(differences.shown(found, evaluations, labels, _notes(evaluations), place))


def _tried(
    name: str, contenders: Contenders, source: Source, run: list[str] | None, measure: str, fast: bool
) -> tuple[list[Evaluation], dict[str, str]]:
    """The evaluations, made now, and what each document is about."""
    if contenders.changes and len(contenders.profile or ()) < 2:
        profiles = contenders.as_it_is_and_changed()
    elif contenders.changes:
        raise InputError("compare: --alpha, --weight and --set change one profile; name one, or leave them out")
    else:
        profiles = contenders.profiles(() if run and len(run) > 1 else ("default",))
    others = trials.read_runs(run, source, profiles)
    if len(profiles) + len(others) < 2:
        raise InputError("compare: with what? Name a second -p or a --run, or say what to change with --set or --alpha")
    dataset = source.load(name)
    evaluations, _ = Trial(dataset, source, profiles, [measure], others, fast).evaluate()
    return evaluations, {document["id"]: _label(document) for document in dataset.documents}


def _label(document: Mapping[str, object]) -> str:
    return str(document.get("title") or "") or str(document["text"])[:200]


def _saved(paths: Sequence[str], contenders: Contenders, source: Source, run: list[str] | None) -> list[Evaluation]:
    from trivet.evaluate import read_evaluation

    if contenders != Contenders() or source != Source() or run:
        raise InputError("compare: saved results are compared as they are; only --measure, --moved and --report apply")
    found = [read_evaluation(path) for path in paths]
    return _renamed(found, [Path(path).stem for path in paths])


def _renamed(evaluations: Sequence[Evaluation], stems: Sequence[str]) -> list[Evaluation]:
    """The same profile at two commits is told apart by them, and by the file's name where that is not enough."""
    by_name = [item.name for item in evaluations]
    by_commit = [f"{item.name}@{item.made.get('commit', 'unknown')}" for item in evaluations]
    for names in (by_name, by_commit, stems):
        if max(Counter(names).values()) == 1:
            return [replace(item, name=name) for item, name in zip(evaluations, names, strict=True)]
    return list(evaluations)  # compare refuses it, with the names


def _notes(evaluations: Sequence[Evaluation]) -> list[str]:
    notes = list(dict.fromkeys(note for item in evaluations for note in item.notes))
    models = {item.name: item.model for item in evaluations if item.profile}
    if len(set(models.values())) > 1:
        notes.append("not the same model: " + ", ".join(f"{name} {model or 'none'}" for name, model in models.items()))
    return notes
