"""Which test collection is asked, and how is it put into a store?

What every command of the lab is told of its dataset, and how its long steps are told to a person.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.errors import InputError
from trivet.surfaces.cli import screen
from trivet.surfaces.cli.opening import EMBEDDER_VARIABLE, scorer_of
from trivet.surfaces.cli.options import argument, flag, option

if TYPE_CHECKING:
    from trivet.evaluate import Dataset, Lab

_WHAT = "What is asked"
_STORE = "The store it is put into"

STEPS = {
    "sweep": "trying settings",
    "tune": "trying settings",
    "add": "storing",
    "embed": "embedding",
    "ask": "asking",
    "fuse": "fusing",
}

Name = Annotated[str, argument("DATASET", "A folder in BEIR layout, or `demo`: the small set that ships.")]
Measure = Annotated[
    str, option("--measure -m", "NAME", "R@5, Success@1, RecallAll@5, RR… (any that ir-measures knows).", default=True)
]


@dataclass(frozen=True, slots=True)
class Source:
    """The options that say which topics are asked, over which store."""

    split: Annotated[str, option("--split", "NAME", "Whose judgements.", _WHAT, default=True)] = "test"
    stratum: Annotated[
        list[str] | None, option("--stratum", "NAME", "Only queries of this metadata.type. Repeat for more.", _WHAT)
    ] = None
    without: Annotated[list[str] | None, option("--without", "NAME", "All but these. Repeat for more.", _WHAT)] = None
    unscoped: Annotated[
        bool, flag("--unscoped", "Ask the whole collection, whatever scope or haystack a query names.", _WHAT)
    ] = False
    drop_unknown: Annotated[
        bool, flag("--drop-unknown", "Pass over judgements of ids that are not there, and say how many.", _WHAT)
    ] = False
    drop_self: Annotated[bool, flag("--drop-self", "A query never finds the document that has its own id.", _WHAT)] = (
        False
    )
    embedder: Annotated[
        str | None,
        option(
            "--embedder",
            "SPEC",
            "builtin, none, folder:PATH, http://HOST/v1#MODEL… Else TRIVET_EMBEDDER says, or builtin.",
            _STORE,
        ),
    ] = None
    scorer: Annotated[
        str | None,
        option(
            "--scorer",
            "SPEC",
            "Asked by the reranker cross_encoder: folder:PATH, http://HOST/rerank… Else TRIVET_SCORER says, or none.",
            _STORE,
        ),
    ] = None
    cache: Annotated[
        Path | None,
        option("--cache", "DIR", "Where vectors are kept; else TRIVET_CACHE says, or the user's cache folder.", _STORE),
    ] = None
    language: Annotated[str | None, option("--language", "CODE", "Of the words: en, de, fr…", _STORE)] = None
    passage_size: Annotated[
        int | None, option("--passage-size", "TOKENS", "Longer documents are cut; 0: never.", _STORE)
    ] = None

    def load(self, name: str, split: str | None = None) -> Dataset:
        from trivet.evaluate import load

        return load(
            name,
            split or self.split,
            strata=self.stratum or (),
            without=self.without or (),
            scoped=not self.unscoped,
            drop_unknown=self.drop_unknown,
        )

    @contextmanager
    def lab(self, dataset: Dataset, report: screen.Steps) -> Iterator[Lab]:
        """The dataset in a store of its own, gone afterwards."""
        from trivet.evaluate import Lab

        with Lab.fill(
            dataset,
            embedder=self.embedder or os.environ.get(EMBEDDER_VARIABLE) or None,
            cache=self.cache,
            language=self.language,
            passage_size=self.passage_size,
            drop_self=self.drop_self,
            progress=report,
            scorer=scorer_of(self.scorer),
        ) as lab:
            yield lab


@contextmanager
def steps() -> Iterator[screen.Steps]:
    """The lab's own names for its steps, in words."""
    with screen.steps("starting") as report:
        yield lambda step, done, total: report(STEPS.get(step, step), done, total)


def of(name: str, report: screen.Steps) -> screen.Steps:
    """The same bar, with whose step it is."""
    return lambda step, done, total: report(f"{STEPS.get(step, step)} {name}", done, total)


def checked(measures: Sequence[str]) -> list[str]:
    """The measures' own names; a wrong one and a missing extra are told before any work is done."""
    from trivet.evaluate.measures import canonical
    from trivet.evaluate.significance import interval

    interval((0.0, 1.0), resamples=100)  # needs scipy, as every interval will
    return list(dict.fromkeys(canonical(name) for name in measures))


def shallow(measures: Sequence[str], k: int, name: str) -> list[str]:
    """What looks deeper than the hits that are returned, in words."""
    deeper = [measure for measure in measures if "@" in measure and measure.rpartition("@")[2].isdigit()]
    deeper = [measure for measure in deeper if int(measure.rpartition("@")[2]) > k]
    if not deeper:
        return []
    return [f"{', '.join(deeper)}: {name} returns {k} hits and no more; -k asks for more"]


def one_of(given: Sequence[str] | None, what: str) -> str | None:
    """The one that was named, if any; a second is refused."""
    if given and len(given) > 1:
        raise InputError(f"{what}: {', '.join(map(repr, given))} are {len(given)}; this command takes one")
    return given[0] if given else None
