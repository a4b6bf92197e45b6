"""Which settings suit these questions, and does it hold for others? (``trivet tune``)"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.errors import InputError
from trivet.surfaces.cli import opening, options, outputs, screen, sources
from trivet.surfaces.cli.contenders import Contender
from trivet.surfaces.cli.options import argument, flag, option, spread
from trivet.surfaces.cli.sources import Source

if TYPE_CHECKING:
    from trivet.evaluate import Dataset, Lab
    from trivet.evaluate.tuned import Tuned
    from trivet.profile import Profile

_FEEDBACK = "From feedback (without DATASET)"
STORE_VARIABLE = "TRIVET_STORE"


@spread
def tune(
    contender: Contender,
    source: Source,
    dataset: Annotated[
        str | None, argument("DATASET", "A folder in BEIR layout, or `demo`. Without it: the store's feedback.")
    ] = None,
    measure: sources.Measure = "nDCG@10",
    folds: Annotated[
        int | None, option("--folds", "N", "Cross-validate: learn from all but one of N parts, prove on it. Else 5.")
    ] = None,
    holdout: Annotated[
        str | None, option("--holdout", "SPLIT", "Learn from --split and prove it on this one instead.")
    ] = None,
    rerank: Annotated[
        bool, flag("--rerank", "Learn the weights of the `learned` reranker instead: what to make of the evidence.")
    ] = False,
    out: Annotated[
        Path | None, option("--out", "FILE", "The profile as TOML, with its evidence on top.", outputs.PLACE)
    ] = None,
    store: Annotated[
        Path | None,
        option("--store -s", "PATH", "Whose feedback; else TRIVET_STORE says, or memory.db.", _FEEDBACK),
    ] = None,
    collection: Annotated[
        str, option("--collection -c", "NAME", "The collection in it.", _FEEDBACK, True, "TRIVET_COLLECTION")
    ] = options.DEFAULT_COLLECTION,
    apply: Annotated[
        bool, flag("--apply", "Make it the collection's settings, if it held on questions it had not seen.", _FEEDBACK)
    ] = False,
    json: options.Json = False,
) -> None:
    """Learn weights, fusion and depths from judged queries, and prove them on queries that were not learnt from.

    Keeps the profile it started from where the gain does not hold.
    """
    from trivet.evaluate import learning, tuning

    _check(dataset, source, holdout, folds, store, apply)
    measure = sources.checked([measure])[0]
    outputs.file(out, "--out")
    place = store or Path(os.environ.get(STORE_VARIABLE) or options.DEFAULT_STORE)
    with sources.steps() as told, _asked(dataset, contender, source, place, collection, holdout, told) as asked:
        learn = learning.learn if rerank else tuning.tune
        found = learn(
            asked.lab,
            asked.start,
            measure=measure,
            folds=folds or tuning.FOLDS,
            holdout=asked.proof,
            progress=told,
        )
        if apply and found.changed:
            asked.lab.engine.update_settings(found.profile)
    if out:
        outputs.write(out, found.to_toml())
    done = ""
    if apply:
        settings = f"the settings of {place} ({collection})"
        done = f"{settings} are now {found.profile.identity}" if found.changed else f"{settings} were left as they are"
    _show(found, asked.lab.dataset, apply and found.changed, done, json)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The questions, ready to be asked, the profile to start from, and the questions to prove it on."""

    lab: Lab
    start: Profile
    proof: Dataset | None = None


def _check(
    dataset: str | None, source: Source, holdout: str | None, folds: int | None, store: Path | None, apply: bool
) -> None:
    """What would do nothing is refused."""
    if dataset is not None and (store is not None or apply):
        raise InputError("tune: --store and --apply are about a store's feedback; leave them out, or the dataset")
    if dataset is None and (holdout is not None or source != Source()):
        raise InputError("tune: feedback has no splits, strata or other store; only --folds and --measure apply")
    if holdout is not None and folds is not None:
        raise InputError("tune: --folds and --holdout are two ways to prove it; choose one")
    if holdout is not None and holdout == source.split:
        raise InputError(f"tune: --holdout {holdout} is what is learnt from; name another split, or another --split")
    if folds is not None and folds < 2:
        raise InputError(f"--folds: {folds} is too few; with 2 or more one is kept to prove it on")


@contextmanager
def _asked(
    dataset: str | None,
    contender: Contender,
    source: Source,
    place: Path,
    collection: str,
    holdout: str | None,
    told: screen.Steps,
) -> Iterator[_Asked]:
    if dataset is not None:
        start, topics = contender.one(), source.load(dataset)
        proof = source.load(dataset, holdout) if holdout else None
        with source.lab(topics, told) as lab:
            yield _Asked(lab, start, proof)
        return
    from trivet.evaluate import Lab
    from trivet.evaluate.judgements import from_feedback

    scorer = opening.scorer_of(source.scorer)
    with (
        opening.existing(place, collection, model=True, scorer=scorer) as engine,
        Lab(from_feedback(engine), engine) as lab,
    ):
        yield _Asked(lab, contender.one(engine.settings))


def _show(found: Tuned, dataset: Dataset, applied: bool, done: str, json: bool) -> None:
    if json:
        screen.print_json({**found.to_dict(), "applied": applied, "notes": list(dataset.notes)})
        return
    from trivet.surfaces.cli import lessons

    place = screen.stdout()
    place.show(lessons.shown(found, dataset, done, place))
