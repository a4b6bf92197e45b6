"""The input of a report: evaluations and what was made of them, checked, grouped by dataset and put in order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.comparison import Comparison
from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.measures import MAIN
from trivet.evaluate.significance import Paired, interval
from trivet.evaluate.sweeps import Headroom, Sweep

DEFAULT = "default"
LEG, FUSED, ELSEWHERE = "single legs", "fused", "from elsewhere"  # kinds of evaluation, in the order of the page
#: Evaluations times measures that get charts: each takes a bootstrap of 20 ms (the main one 100) and 1.5 kB of page.
PICTURED = 1_000
#: Pairs drawn topic by topic: each is up to 200 kB of page.
PAIRS = 12
#: Resamples of measures other than the main one, whose intervals are only drawn.
FEWER_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Material:
    """What a report shows. Everything but the evaluations is optional; a section without data is left out."""

    title: str
    evaluations: Sequence[Evaluation]
    comparisons: Sequence[Comparison] = ()
    sweeps: Sequence[Sweep] = ()
    headrooms: Mapping[str, Headroom] = field(default_factory=dict)  # dataset identity → headroom
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The evaluations over one dataset: single legs first, then by score."""

    identity: str
    label: str
    evaluations: tuple[Evaluation, ...]

    @property
    def topics(self) -> int:
        return max(len(evaluation.strata) for evaluation in self.evaluations)


@dataclass(frozen=True, slots=True)
class Pair:
    """A baseline and a challenger that are compared topic by topic."""

    comparison: Comparison
    paired: Paired
    baseline: Evaluation | None  # None: not in the material
    challenger: Evaluation | None


class View:
    """A material made ready: checked, grouped by dataset, with labels and with each interval computed once."""

    def __init__(self, material: Material) -> None:
        _check(material)
        self.material = material
        self.main, self.measures = _measures(material.evaluations)
        self.pictured = self.measures[: max(1, PICTURED // len(material.evaluations))]
        self._labels = _labels(_identities(material))
        self._intervals: dict[tuple[str, str, str], tuple[float, float]] = {}
        self._found = {(item.dataset, item.name): item for item in material.evaluations}
        rank = self._ranked()
        self.groups = tuple(
            Group(
                identity,
                self.label(identity),
                tuple(
                    sorted(
                        (item for item in material.evaluations if item.dataset == identity),
                        key=lambda item: rank[item.name],
                    )
                ),
            )
            for identity in dict.fromkeys(item.dataset for item in material.evaluations)
        )
        self.names = sorted(rank, key=lambda name: rank[name])

    def label(self, identity: str) -> str:
        """Return a dataset's name without its digest."""
        return self._labels.get(identity, identity)

    def find(self, dataset: str, name: str) -> Evaluation | None:
        return self._found.get((dataset, name))

    def interval(self, evaluation: Evaluation, measure: str) -> tuple[float, float]:
        """Return the 95 % interval of a mean, by bootstrap over the topics."""
        key = (evaluation.dataset, evaluation.name, measure)
        if key not in self._intervals:
            resamples = 10_000 if measure == self.main else FEWER_RESAMPLES
            self._intervals[key] = interval(list(evaluation.scores[measure].values()), resamples=resamples)
        return self._intervals[key]

    def featured(self, group: Group) -> Evaluation:
        """Return the evaluation that stands for a group: the default, else the first fused one, else the first."""
        given = [item for item in self.material.evaluations if item.dataset == group.identity]
        named = [item for item in given if is_default(item)]
        fused = [item for item in given if kind(item) == FUSED]
        return (named or fused or given)[0]

    def pairs(self) -> list[Pair]:
        """Return the first pairs of each comparison, ``PAIRS`` in all."""
        comparisons = self.material.comparisons
        each = max(1, PAIRS // max(1, len(comparisons)))
        seen: dict[tuple[str, str, str, str], Pair] = {}
        for comparison in comparisons:
            for paired in comparison.overall[:each]:
                evaluations = (self._found.get((comparison.dataset, n)) for n in (paired.baseline, paired.challenger))
                key = (comparison.dataset, comparison.measure, paired.baseline, paired.challenger)
                seen.setdefault(key, Pair(comparison, paired, *evaluations))
        return list(seen.values())

    def compared(self) -> int:
        """Return the number of all pairs."""
        return len(
            {
                (comparison.dataset, comparison.measure, pair.baseline, pair.challenger)
                for comparison in self.material.comparisons
                for pair in comparison.overall
            }
        )

    def _ranked(self) -> dict[str, tuple[int, float, str]]:
        """Return the sort key of each name: its kind, then its mean over the datasets it was run on."""
        means: dict[str, list[float]] = {}
        kinds: dict[str, int] = {}
        for item in self.material.evaluations:
            values = item.scores.get(self.main, {})
            means.setdefault(item.name, []).append(sum(values.values()) / max(1, len(values)))
            kinds.setdefault(item.name, (LEG, FUSED, ELSEWHERE).index(kind(item)))
        return {name: (kinds[name], -sum(found) / len(found), name) for name, found in means.items()}


def kind(evaluation: Evaluation) -> str:
    """Return whether an evaluation is of one leg, of several fused, or of another system's run."""
    if evaluation.profile is None:
        return ELSEWHERE
    return LEG if single_leg(evaluation) else FUSED


def single_leg(evaluation: Evaluation) -> str | None:
    weights = evaluation.profile.weights if evaluation.profile else {}
    used = [leg for leg, weight in weights.items() if weight > 0]
    return used[0] if len(used) == 1 else None


def is_default(evaluation: Evaluation) -> bool:
    return evaluation.profile is not None and evaluation.name == DEFAULT


def colour(evaluation: Evaluation) -> str:
    """Return the style sheet's class of an evaluation."""
    if is_default(evaluation):
        return "default"
    return {LEG: single_leg(evaluation) or "", FUSED: "fused", ELSEWHERE: "elsewhere"}[kind(evaluation)]


def _measures(evaluations: Sequence[Evaluation]) -> tuple[str, tuple[str, ...]]:
    known = list(dict.fromkeys(measure for item in evaluations for measure in item.scores))
    main = MAIN if MAIN in known or not known else known[0]
    return main, tuple(sorted(known, key=lambda measure: measure != main))


def _identities(material: Material) -> list[str]:
    described: tuple[Sequence[Evaluation | Comparison | Sweep], ...] = (
        material.evaluations,
        material.comparisons,
        material.sweeps,
    )
    return list(dict.fromkeys((*(item.dataset for items in described for item in items), *material.headrooms)))


def _labels(identities: Iterable[str]) -> dict[str, str]:
    """Return for each identity the shortest of name, name/split and identity that no other has."""
    known = list(identities)
    found: dict[str, str] = {}
    for identity in known:
        path = identity.partition("#")[0]
        name = path.removesuffix("/test")
        alike = Counter(other.partition("#")[0].removesuffix("/test") for other in known)
        found[identity] = name if name and alike[name] == 1 else identity
    return found


# --- checks -----------------------------------------------------------------------------------------------------------


def _check(material: Material) -> None:
    if not material.evaluations:
        raise InputError("report: there is no evaluation to show; give at least one")
    twice = Counter((item.dataset, item.name) for item in material.evaluations)
    for (dataset, name), count in twice.items():
        if count > 1:
            raise InputError(f"report: {count} evaluations on {dataset} are called {name!r}; give each its own name")
    for place, value in _numbers(material):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"report: {place} is {value!r}; every number must be finite")


def _numbers(material: Material) -> Iterator[tuple[str, Any]]:
    for item in material.evaluations:
        who = f"{item.name} on {item.dataset}"
        for measure, values in item.scores.items():
            yield from ((f"{measure} of {who}, topic {topic!r},", value) for topic, value in values.items())
        yield from _of(item.findings, f"the findings of {who}:")
        for cut in item.findings.cuts:
            yield from _of(cut, f"a cut of {who}:")
        for bin in item.findings.bins:
            yield from _of(bin, f"a bin of {who}:")
    for comparison in material.comparisons:
        for pair in (*comparison.overall, *(pair for pairs in comparison.strata.values() for pair in pairs)):
            yield from _of(pair, f"{pair.challenger} against {pair.baseline} on {comparison.dataset}:")
        for moved in (moved for items in comparison.moved.values() for moved in items):
            yield from _of(moved, f"topic {moved.topic!r} of {comparison.dataset}:")
    for sweep in material.sweeps:
        for point in sweep.points:
            yield from _of(point, f"the sweep over {', '.join(sweep.axes)} on {sweep.dataset}:")
    for dataset, headroom in material.headrooms.items():
        yield from _of(headroom, f"the headroom on {dataset}:")


def _of(record: Any, place: str) -> Iterator[tuple[str, Any]]:
    yield from ((f"{place} {item.name}", getattr(record, item.name)) for item in fields(record))
