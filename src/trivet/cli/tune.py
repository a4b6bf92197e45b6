"""``trivet tune``: learn settings from judged queries, and test them on queries that were not learnt from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.cli import bars, evaluation, options, output, output_files, tables
from trivet.cli.evaluation import DatasetOptions, ProfileOptions
from trivet.cli.options import argument, flag, option, option_groups
from trivet.cli.output import Screen, clean, plural
from trivet.cli.store import open_existing, scorer_or_default
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.evaluate import Dataset, Lab
    from trivet.evaluate.tuning_result import Tuned
    from trivet.profile import Profile

FEEDBACK_PANEL = "Feedback (without DATASET)"
STORE_VARIABLE = "TRIVET_STORE"
VOTES_BAR = 16  # cells, for all folds


@option_groups
def tune(
    profiles: ProfileOptions,
    source: DatasetOptions,
    dataset: Annotated[
        str | None, argument("DATASET", "A folder in BEIR layout, or `demo`. Default: the store's feedback.")
    ] = None,
    measure: evaluation.Measure = "nDCG@10",
    folds: Annotated[
        int | None,
        option("--folds", "N", "Cross-validate: learn from all but one of N parts, test on that one. Default: 5."),
    ] = None,
    holdout: Annotated[
        str | None, option("--holdout", "SPLIT", "Learn from --split and test on this split instead.")
    ] = None,
    rerank: Annotated[
        bool, flag("--rerank", "Learn the weights of the reranker `learned` instead of the settings.")
    ] = False,
    out: Annotated[
        Path | None,
        option("--out", "FILE", "Write the profile as TOML, with its evidence as a comment.", output_files.PANEL),
    ] = None,
    store: Annotated[
        str | None,
        option("--store -s", "PATH", "The store with feedback. Default: TRIVET_STORE, or memory.db.", FEEDBACK_PANEL),
    ] = None,
    collection: Annotated[
        str, option("--collection -c", "NAME", "The collection in it.", FEEDBACK_PANEL, True, "TRIVET_COLLECTION")
    ] = options.DEFAULT_COLLECTION,
    apply: Annotated[
        bool,
        flag("--apply", "Make it the collection's settings, if the gain holds on the other queries.", FEEDBACK_PANEL),
    ] = False,
    json: options.Json = False,
) -> None:
    """Learn weights, fusion and depths from judged queries, and test them on queries that were not learnt from.

    If the gain does not hold there, the profile stays as it was.
    """
    from trivet.engine import shown
    from trivet.evaluate import learning_to_rank, tuning

    _check(dataset, source, holdout, folds, store, apply)
    measure = evaluation.check_measures([measure])[0]
    output_files.check_file(out, "--out")
    place = store or os.environ.get(STORE_VARIABLE) or options.DEFAULT_STORE
    with (
        evaluation.progress() as progress,
        _material(dataset, profiles, source, place, collection, holdout, progress) as material,
    ):
        learn = learning_to_rank.learn if rerank else tuning.tune
        found = learn(
            material.lab,
            material.start,
            measure=measure,
            folds=folds or tuning.FOLDS,
            holdout=material.holdout,
            progress=progress,
        )
        if apply and found.changed:
            material.lab.engine.update_settings(found.profile)
    if out:
        output_files.write_text(out, found.to_toml())
    if json:
        notes = material.lab.dataset.notes
        output.print_json({**found.to_dict(), "applied": apply and found.changed, "notes": notes})
        return
    applied = ""
    if apply:
        outcome = f"are now {found.profile.identity}" if found.changed else "did not change"
        applied = f"the settings of {shown(place)} ({collection}) {outcome}"
    screen = output.stdout()
    screen.show(_view(found, material.lab.dataset, applied, screen))


@dataclass(frozen=True, slots=True)
class _Material:
    """The judged queries in a store, the profile to start from, and the queries to test on."""

    lab: Lab
    start: Profile
    holdout: Dataset | None = None


def _check(
    dataset: str | None,
    source: DatasetOptions,
    holdout: str | None,
    folds: int | None,
    store: str | None,
    apply: bool,
) -> None:
    """Refuse options that would have no effect."""
    if dataset is not None and (store is not None or apply):
        raise InputError("tune: --store and --apply are for feedback; leave them out, or leave out the dataset")
    if dataset is None and (holdout is not None or source != DatasetOptions()):
        raise InputError("tune: without a dataset only --folds, --measure and the ranking options can be used")
    if holdout is not None and folds is not None:
        raise InputError("tune: --folds and --holdout exclude each other; choose one")
    if holdout is not None and holdout == source.split:
        raise InputError(f"tune: --holdout {holdout} is the split to learn from; name another split")
    if folds is not None and folds < 2:
        raise InputError(f"--folds: {folds} is too few; at least 2 are needed")


@contextmanager
def _material(
    dataset: str | None,
    profiles: ProfileOptions,
    source: DatasetOptions,
    place: str,
    collection: str,
    holdout: str | None,
    progress: output.ReportStep,
) -> Iterator[_Material]:
    if dataset is not None:
        start, loaded = profiles.single(), source.load(dataset)
        other = source.load(dataset, holdout) if holdout else None
        with source.lab(loaded, progress) as lab:
            yield _Material(lab, start, other)
        return
    from trivet.evaluate import Lab
    from trivet.evaluate.feedback import from_feedback

    scorer = scorer_or_default(source.scorer)
    with (
        open_existing(place, collection, model=True, scorer=scorer) as engine,
        Lab(from_feedback(engine), engine) as lab,
    ):
        yield _Material(lab, profiles.single(engine.settings))


# --- what is shown ----------------------------------------------------------------------------------------------------


def _view(found: Tuned, dataset: Dataset, applied: str, screen: Screen) -> RenderableType:
    profiles = (found.start, found.profile) if found.changed else (found.start,)
    return Group(
        tables.heading(found.dataset, f"{plural(found.topics, 'judged topic')}, {found.effort}"),
        Text(),
        _verdict(found),
        Text(),
        _out_of_sample(found, screen),
        Text(),
        _weights(found, screen) if found.what == "weights" else _votes(found, screen),
        Text(),
        *tables.notes((*dataset.notes, *found.warnings)),
        *([Text(clean(applied))] if applied else []),
        *(tables.sentence(str(profile)) for profile in profiles),
        tables.sentence(f"{found.model or 'no model'} · commit {found.made.get('commit', 'unknown')}"),
    )


def _verdict(found: Tuned) -> Text:
    verdict, colon, reason = clean(found.reason).partition(": ")
    return Text.assemble((verdict, "bold green" if found.changed else "bold"), colon, reason)


def _out_of_sample(found: Tuned, screen: Screen) -> RenderableType:
    pair = found.pair
    where = f"on {found.holdout}" if found.holdout else f"{found.folds}-fold cross-validated"
    rows: list[list[tables.Cell]] = [
        [clean(pair.baseline), tables.score(pair.mean_baseline), "", "", "", ""],
        [
            "learnt from other topics",
            tables.score(pair.mean_challenger),
            Text(tables.signed(pair.difference), style="bold green" if found.changed else ""),
            Text(tables.signed_span(pair.low, pair.high), style="dim"),
            tables.p(found.p),
            f"{pair.wins}/{pair.losses}/{pair.ties}",
        ],
    ]
    columns = [
        f"{plural(pair.n, 'topic')}, {clean(where)}",
        pair.measure,
        "difference",
        "95 %",
        "p, one-sided",
        "W/L/T",
    ]
    return tables.table(columns, rows, screen)


def _votes(found: Tuned, screen: Screen) -> RenderableType:
    """Return how many folds chose each setting."""
    if found.holdout:
        return Text(f"chosen on {clean(found.dataset)}: {clean(next(iter(found.votes)))}")
    total = sum(found.votes.values())
    rows: list[list[tables.Cell]] = []
    for choice, count in found.votes.items():
        row: list[tables.Cell] = [Text(clean(choice), style="bold" if choice == found.start.name else ""), f"{count:,}"]
        rows.append([*row, bars.single("lexical", count / total, VOTES_BAR, screen.colour)] if screen.terminal else row)
    columns = [f"what {plural(total, 'fold')} chose", "times", *([""] if screen.terminal else [])]
    return tables.table(columns, rows, screen, left=("",))


def _weights(found: Tuned, screen: Screen) -> RenderableType:
    """Return each weight: before, learnt from all topics, and its range over the folds, which shows how sure it is."""
    from trivet.evaluate.learning_to_rank import weights

    before, after = (weights(profile) for profile in (found.start, found.proposed))
    rows: list[list[tables.Cell]] = []
    for name, (low, high) in found.spreads.items():
        row: list[tables.Cell] = [
            name,
            f"{before[name]:+.2f}" if before else "",
            Text(f"{after[name]:+.2f}", style="bold"),
        ]
        rows.append([*row, Text(f"{low:+.2f} to {high:+.2f}" if not found.holdout else "", style="dim")])
    folds = "" if found.holdout else plural(len(found.chosen), "fold")
    return tables.table(["weight", clean(found.start.name), "all topics", folds], rows, screen)
