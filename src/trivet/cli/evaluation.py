"""What the evaluation commands share: the options for datasets and profiles, and running profiles on a dataset.

Used by ``eval``, ``compare``, ``sweep``, ``tune`` and ``gate``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType

from trivet.cli import options, output, tables
from trivet.cli.options import RANKING_PANEL, STORE_PANEL, argument, flag, option
from trivet.cli.store import EMBEDDER_VARIABLE, scorer_or_default
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.evaluate import Dataset, Evaluation, Headroom, Lab, Run
    from trivet.profile import Profile

DATASET_PANEL = "Dataset"
UNNAMED = "custom"  # the name that Profile gives to a file without one

#: The steps that ``trivet.evaluate`` reports, as a progress bar names them.
STEPS = {
    "sweep": "trying settings",
    "tune": "trying settings",
    "add": "storing",
    "embed": "embedding",
    "ask": "searching",
    "fuse": "fusing",
}

DatasetName = Annotated[str, argument("DATASET", "A folder in BEIR layout, or `demo`: the small dataset that ships.")]
Measure = Annotated[
    str, option("--measure -m", "NAME", "R@5, Success@1, RecallAll@5, RR… (any of ir-measures).", default=True)
]
Runs = Annotated[list[str] | None, option("--run", "FILE", "A TREC run of another system to score. Repeat for more.")]


# --- options ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """Which queries are run, and the store that the dataset's documents are put into."""

    split: Annotated[str, option("--split", "NAME", "The split with the judgements.", DATASET_PANEL, default=True)] = (
        "test"
    )
    stratum: Annotated[
        list[str] | None,
        option("--stratum", "NAME", "Only queries with this metadata.type. Repeat for more.", DATASET_PANEL),
    ] = None
    without: Annotated[
        list[str] | None,
        option("--without", "NAME", "No queries with this metadata.type. Repeat for more.", DATASET_PANEL),
    ] = None
    unscoped: Annotated[
        bool, flag("--unscoped", "Search the whole collection, also where a query names a scope.", DATASET_PANEL)
    ] = False
    drop_unknown: Annotated[
        bool, flag("--drop-unknown", "Ignore judgements of unknown ids, and print how many.", DATASET_PANEL)
    ] = False
    drop_self: Annotated[
        bool, flag("--drop-self", "Remove the document that has the query's own id from its hits.", DATASET_PANEL)
    ] = False
    embedder: options.Embedder = None
    scorer: options.Scorer = None
    cache: Annotated[
        Path | None,
        option("--cache", "DIR", "Cache of vectors. Default: TRIVET_CACHE, or the user's cache folder.", STORE_PANEL),
    ] = None
    language: Annotated[
        str | None, option("--language", "CODE", "The language of the documents: en, de, fr…", STORE_PANEL)
    ] = None
    passage_size: Annotated[
        int | None, option("--passage-size", "TOKENS", "Split longer documents; 0 never splits.", STORE_PANEL)
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
    def lab(self, dataset: Dataset, report: output.ReportStep) -> Iterator[Lab]:
        """Put the dataset into a temporary store; delete it afterwards."""
        from trivet.evaluate import Lab

        with Lab.fill(
            dataset,
            embedder=self.embedder or os.environ.get(EMBEDDER_VARIABLE) or None,
            cache=self.cache,
            language=self.language,
            passage_size=self.passage_size,
            drop_self=self.drop_self,
            progress=report,
            scorer=scorer_or_default(self.scorer),
        ) as lab:
            yield lab


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """The profiles, and the changes to each of them."""

    profile: Annotated[  # a list in every command: of two plain options typer would silently take the second
        list[str] | None,
        option(
            "--profile -p",
            "NAME|FILE",
            "A profile of `trivet profiles`, or a .toml/.json file. `eval` and `compare` take several.",
            RANKING_PANEL,
        ),
    ] = None
    k: Annotated[int | None, option("-k", "N", "Number of hits. Default: the profile's.", RANKING_PANEL)] = None
    alpha: options.Alpha = None
    weight: options.Weights = None
    set_: options.Settings = None

    @property
    def changes(self) -> dict[str, Any]:
        """The changed settings, without the number of hits."""
        return options.parse_changes(self.set_ or (), self.weight or (), alpha=self.alpha)

    def profiles(self, default: Iterable[str] = ("default",)) -> dict[str, Profile]:
        """Return all named profiles with the changes, by name."""
        return _by_name([self._changed(_read(name)) for name in self.profile or default])

    def single(self, default: Profile | None = None) -> Profile:
        """Return the named profile, or the default, with the changes."""
        name = self._single_name()
        return self._changed(default if name is None and default else _read(name or "default"))

    def before_and_after(self) -> dict[str, Profile]:
        """Return the named profile without and with the changes."""
        start = _read(self._single_name() or "default").with_changes(options.parse_changes(k=self.k))
        return _by_name([start, start.with_changes({"name": f"{start.name}-changed", **self.changes})])

    def _single_name(self) -> str | None:
        if self.profile and len(self.profile) > 1:
            raise InputError(f"--profile: this command takes one profile, not {', '.join(map(repr, self.profile))}")
        return self.profile[0] if self.profile else None

    def _changed(self, profile: Profile) -> Profile:
        return profile.with_changes({**self.changes, **options.parse_changes(k=self.k)})


def _read(name: str) -> Profile:
    profile = options.read_profile(name)
    assert profile is not None  # only None gives None
    stem = re.sub(r"[^\w.-]", "-", Path(name).stem)[:64]
    return profile.with_changes({"name": stem}) if profile.name == UNNAMED and stem else profile


def _by_name(profiles: list[Profile]) -> dict[str, Profile]:
    """Return each profile under its name, or under its identity where two have the same name."""
    names = Counter(profile.name for profile in profiles)
    found = {profile.name if names[profile.name] == 1 else profile.identity: profile for profile in profiles}
    if len(found) < len(profiles):
        twice = Counter(profile.identity for profile in profiles).most_common(1)[0][0]
        raise InputError(f"--profile: {twice} was named twice")
    return found


def check_measures(names: Sequence[str]) -> list[str]:
    """Return the measures' full names; report an unknown one or a missing package before any work is done."""
    from trivet.evaluate.measures import canonical
    from trivet.evaluate.significance import interval

    interval((0.0, 1.0), resamples=100)  # needs scipy, as every interval will
    return list(dict.fromkeys(canonical(name) for name in names))


# --- running ----------------------------------------------------------------------------------------------------------


@contextmanager
def progress() -> Iterator[output.ReportStep]:
    """Show the steps of an evaluation as a progress bar."""
    with output.steps("starting") as report:
        yield lambda step, done, total: report(STEPS.get(step, step), done, total)


@dataclass(frozen=True, slots=True)
class Trial:
    """Several profiles, and runs of other systems, on one dataset. ``fast`` gives the same hits without times."""

    dataset: Dataset
    options: DatasetOptions
    profiles: Mapping[str, Profile]
    measures: Sequence[str]
    runs: Sequence[Run] = ()
    fast: bool = False
    headroom: bool = False

    @property
    def names(self) -> list[str]:
        return [*self.profiles, *(run.name for run in self.runs)]

    def evaluate(self) -> tuple[list[Evaluation], dict[str, Headroom]]:
        """Return the evaluation of each profile and run, and the headroom of each profile if it was asked for."""
        from trivet.evaluate import evaluate, headroom, judge

        found: list[Evaluation] = []
        headrooms: dict[str, Headroom] = {}
        if self.profiles:
            with progress() as report, self.options.lab(self.dataset, report) as lab:
                for name, profile in self.profiles.items():
                    named = _naming(name, report)
                    item = evaluate(lab, profile, measures=self.measures, name=name, fast=self.fast, progress=named)
                    found.append(replace(item, notes=(*item.notes, *self._notes(item, profile))))
                    if self.headroom:
                        headrooms[name] = headroom(lab, profile, self.measures[0], named)
        found += [judge(self.dataset, run, measures=self.measures) for run in self.runs]
        return found, headrooms

    def _notes(self, item: Evaluation, profile: Profile) -> list[str]:
        reasons = Counter(reason for answer in item.run.answers.values() for reason in answer.degraded)
        degraded = [
            f"{item.name}: degraded on {output.plural(count, 'topic')}: {reason}"
            for reason, count in reasons.most_common(2)
        ]
        return degraded + too_few_hits(self.measures, profile.k, item.name)


def _naming(name: str, report: output.ReportStep) -> output.ReportStep:
    return lambda step, done, total: report(f"{STEPS.get(step, step)} {name}", done, total)


def too_few_hits(measures: Sequence[str], k: int, name: str) -> list[str]:
    """Return a note on the measures that look at more hits than the profile returns."""
    depths = {measure: measure.rpartition("@")[2] for measure in measures if "@" in measure}
    deeper = [measure for measure, depth in depths.items() if depth.isdigit() and int(depth) > k]
    if not deeper:
        return []
    return [f"{', '.join(deeper)}: {name} returns {output.plural(k, 'hit')} only; ask for more with -k"]


def read_runs(paths: Sequence[str] | None, dataset: DatasetOptions, taken: Collection[str]) -> list[Run]:
    """Read the runs of other systems. A run is named by its tag, or by its file where the tag is taken."""
    from trivet.evaluate import read_run

    found = [read_run(path) for path in paths or ()]
    if dataset.drop_self:
        found = [_without_self(run) for run in found]
    names = Counter([*taken, *(run.name for run in found)])
    found = [
        run if names[run.name] == 1 else replace(run, name=Path(path).stem)
        for run, path in zip(found, paths or (), strict=True)
    ]
    names = Counter([*taken, *(run.name for run in found)])
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(f"--run: two runs have the name {twice[0]!r}; rename a file")
    return found


def _without_self(run: Run) -> Run:
    return replace(
        run,
        answers={
            topic: replace(
                answer,
                ids=tuple(id for id in answer.ids if id != topic),
                scores=tuple(score for id, score in zip(answer.ids, answer.scores, strict=True) if id != topic),
            )
            for topic, answer in run.answers.items()
        },
    )


def provenance(evaluations: Sequence[Evaluation], notes: Sequence[str] = ()) -> RenderableType:
    """Return the notes, profiles, models and commits behind the numbers: what another run needs to be the same."""
    all_notes = dict.fromkeys((*(note for item in evaluations for note in item.notes), *notes))
    models = dict.fromkeys(item.model or "no model" for item in evaluations if item.profile)
    commits = dict.fromkeys(str(item.made.get("commit", "unknown")) for item in evaluations)
    return Group(
        *tables.notes(all_notes),
        *(tables.sentence(str(item.profile)) for item in evaluations if item.profile),
        tables.sentence(" · ".join((*models, f"commit {', '.join(commits)}"))),
    )
