"""How are several rankings tried on the same questions?

Every profile in one store; other systems' runs are only scored. Used by ``eval``, ``compare`` and ``gate``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.errors import InputError
from trivet.surfaces.cli import sources
from trivet.surfaces.cli.options import option

if TYPE_CHECKING:
    from trivet.evaluate import Dataset, Evaluation, Headroom, Run
    from trivet.profile import Profile

Runs = Annotated[list[str] | None, option("--run", "FILE", "Another system's answers: a TREC run. Repeat for more.")]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked and of whom; ``fast`` gives the same answers without times."""

    dataset: Dataset
    source: sources.Source
    profiles: Mapping[str, Profile]
    measures: Sequence[str]
    runs: Sequence[Run] = ()
    fast: bool = False
    headroom: bool = False

    @property
    def names(self) -> list[str]:
        return [*self.profiles, *(run.name for run in self.runs)]

    def evaluate(self) -> tuple[list[Evaluation], dict[str, Headroom]]:
        from trivet.evaluate import evaluate, headroom, judge

        found: list[Evaluation] = []
        rooms: dict[str, Headroom] = {}
        if self.profiles:
            with sources.steps() as report, self.source.lab(self.dataset, report) as lab:
                for name, profile in self.profiles.items():
                    told = sources.of(name, report)
                    item = evaluate(lab, profile, measures=self.measures, name=name, fast=self.fast, progress=told)
                    found.append(replace(item, notes=(*item.notes, *self._notes(item, profile))))
                    if self.headroom:
                        rooms[name] = headroom(lab, profile, self.measures[0], told)
        found += [judge(self.dataset, run, measures=self.measures) for run in self.runs]
        return found, rooms

    def _notes(self, item: Evaluation, profile: Profile) -> list[str]:
        """What a reader of the numbers must know."""
        reasons = Counter(reason for answer in item.run.answers.values() for reason in answer.degraded)
        degraded = [f"{item.name}: degraded on {count:,} topics: {reason}" for reason, count in reasons.most_common(2)]
        return degraded + sources.shallow(self.measures, profile.k, item.name)


def read_runs(paths: Sequence[str] | None, source: sources.Source, taken: Collection[str]) -> list[Run]:
    """The runs of other systems, each by its tag, or by its file's name where the tag is taken."""
    from trivet.evaluate import read_run

    found = [read_run(path) for path in paths or ()]
    if source.drop_self:
        found = [_without_self(run) for run in found]
    names = Counter([*taken, *(run.name for run in found)])
    found = [
        run if names[run.name] == 1 else replace(run, name=Path(path).stem)
        for run, path in zip(found, paths or (), strict=True)
    ]
    names = Counter([*taken, *(run.name for run in found)])
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(f"--run: {twice[0]!r} is the name of two of them; rename a file")
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
