"""How well does a profile find what is right? (``trivet eval``)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.surfaces.cli import leading, options, outputs, screen, sources, trials
from trivet.surfaces.cli.contenders import Contenders
from trivet.surfaces.cli.options import flag, option, spread
from trivet.surfaces.cli.sources import Source
from trivet.surfaces.cli.trials import Trial

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation, Headroom


@spread
def eval_(
    dataset: sources.Name,
    contenders: Contenders,
    source: Source,
    measure: Annotated[
        list[str] | None,
        option("--measure -m", "NAME", "nDCG@10, R@5, Success@1, RecallAll@5, RR… Repeat for more; the first leads."),
    ] = None,
    run: trials.Runs = None,
    headroom: Annotated[bool, flag("--headroom", "What would the best weights for each question gain?")] = False,
    fast: Annotated[bool, flag("--fast", "Ask each leg once for all profiles: the same answers, no times.")] = False,
    save: Annotated[
        Path | None,
        option("--save", "DIR", "JSON for compare and gate, named by commit, profile and dataset.", outputs.PLACE),
    ] = None,
    slim: Annotated[
        bool, flag("--slim", "JSON without answers and texts: nothing of the dataset but ids.", outputs.PLACE)
    ] = False,
    run_out: Annotated[
        str | None,
        option(
            "--run-out",
            "FILE",
            "A TREC run; of several profiles into a folder/ or a file with {profile} in its name.",
            outputs.PLACE,
        ),
    ] = None,
    report: outputs.Report = None,
    json: options.Json = False,
) -> None:
    """Ask every query of a test collection and score the answers: measures, strata, and what measures hide."""
    from trivet.evaluate import MEASURES, compare

    measures = sources.checked(measure or MEASURES)
    profiles = contenders.profiles() if contenders.profile or not run else {}
    others = trials.read_runs(run, source, profiles)
    asked = source.load(dataset)
    trial = Trial(asked, source, profiles, measures, others, fast, headroom)
    if save:
        outputs.folder(save, "--save")
    if run_out:
        outputs.fits_trec(asked)
    files = outputs.runs(run_out, trial.names)
    outputs.file(report, "--report")
    evaluations, rooms = trial.evaluate()
    for item in evaluations:
        if save:
            outputs.wrote(item.save(save, answers=not slim))
        if item.name in files:
            item.run.write(files[item.name])
            outputs.wrote(files[item.name])
    comparisons = [compare(evaluations, measures[0])] if report and len(evaluations) > 1 else []
    room = rooms.get("default") or next(iter(rooms.values()), None)  # the page shows one of a dataset
    outputs.report(report, f"trivet eval {dataset}", evaluations, comparisons, headroom=room)
    _show(evaluations, rooms, len(asked.documents), slim, json)


def _show(
    evaluations: Sequence[Evaluation], rooms: dict[str, Headroom], documents: int, slim: bool, json: bool
) -> None:
    standing = leading.standing(evaluations, next(iter(evaluations[0].scores)))
    if json:
        screen.print_json(
            {
                "dataset": evaluations[0].dataset,
                "documents": documents,
                "evaluations": [item.to_dict(answers=not slim) for item in evaluations],
                "best": standing.best if standing else None,
                "pairs": [asdict(pair) for pair in standing.pairs] if standing else [],
                "headroom": {name: asdict(room) for name, room in rooms.items()},
            }
        )
        return
    from trivet.surfaces.cli import scores

    place = screen.stdout()
    place.show(scores.shown(evaluations, standing, rooms, place, documents))
