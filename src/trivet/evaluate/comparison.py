"""Paired comparison of evaluations over the same topics.

The first evaluation is the baseline, every other one a challenger. The p-values are corrected over all challengers;
those of the strata over all challengers and strata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.measures import MAIN, canonical
from trivet.evaluate.significance import ROUNDING, Paired, family, holm, paired

SHOWN = 10  # hits of each ranking that are shown for a changed topic


@dataclass(frozen=True, slots=True)
class Moved:
    """A topic whose score changed, with both rankings: (document, grade or None without a judgement)."""

    topic: str
    text: str
    stratum: str
    before: float
    after: float
    baseline: tuple[tuple[str, int | None], ...]
    challenger: tuple[tuple[str, int | None], ...]

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """A baseline against its challengers: overall, by stratum, and the topics that changed most."""

    dataset: str
    measure: str
    baseline: str
    overall: tuple[Paired, ...]  # one for each challenger
    strata: Mapping[str, tuple[Paired, ...]]  # stratum → one for each challenger
    moved: Mapping[str, tuple[Moved, ...]]  # challenger → the topics that changed most, largest change first

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "measure": self.measure,
            "baseline": self.baseline,
            "overall": [_plain(pair) for pair in self.overall],
            "strata": {stratum: [_plain(pair) for pair in pairs] for stratum, pairs in self.strata.items()},
            "moved": {
                name: [{**asdict(item), "change": item.change} for item in items] for name, items in self.moved.items()
            },
        }


def compare(evaluations: Sequence[Evaluation], measure: str = MAIN, top: int = 10) -> Comparison:
    """Compare the first evaluation with each other one; raise where their topics differ."""
    if len(evaluations) < 2:
        raise InputError("compare: give at least two evaluations; the first is the baseline")
    names = [evaluation.name for evaluation in evaluations]
    if len(set(names)) != len(names):
        raise InputError(f"compare: two of them have the same name ({', '.join(names)}); give each its own")
    measure = canonical(measure)
    baseline, *challengers = evaluations
    for other in challengers:
        if other.dataset != baseline.dataset:
            raise InputError(
                f"compare: {baseline.name} is of {baseline.dataset}, {other.name} of {other.dataset}; "
                "only runs over the same topics can be compared"
            )
    values = {other.name: other.of(measure) for other in challengers}
    return Comparison(
        dataset=baseline.dataset,
        measure=measure,
        baseline=baseline.name,
        overall=tuple(family(baseline.of(measure), values, name=baseline.name, measure=measure)),
        strata=_strata(baseline, challengers, measure),
        moved={other.name: _moved(baseline, other, measure, top) for other in challengers},
    )


def _strata(baseline: Evaluation, challengers: Sequence[Evaluation], measure: str) -> dict[str, tuple[Paired, ...]]:
    base = baseline.by_stratum(measure)
    if len(base) < 2:
        return {}
    pairs = [
        (
            stratum,
            paired(
                base[stratum], other.by_stratum(measure)[stratum], names=(baseline.name, other.name), measure=measure
            ),
        )
        for stratum in base
        for other in challengers
    ]
    corrected = holm([pair.p for _, pair in pairs])
    found: dict[str, tuple[Paired, ...]] = {}
    for (stratum, pair), p in zip(pairs, corrected, strict=True):
        found[stratum] = (*found.get(stratum, ()), replace(pair, p_holm=p))
    return found


def _moved(baseline: Evaluation, other: Evaluation, measure: str, top: int) -> tuple[Moved, ...]:
    before, after = baseline.of(measure), other.of(measure)
    changed = sorted(
        (topic for topic in before if not isclose(before[topic], after[topic], rel_tol=ROUNDING)),
        key=lambda topic: (-abs(after[topic] - before[topic]), topic),
    )
    return tuple(
        Moved(
            topic,
            baseline.texts.get(topic) or other.texts.get(topic, ""),  # a result may be stored without texts
            baseline.strata[topic],
            before[topic],
            after[topic],
            _ranking(baseline, topic),
            _ranking(other, topic),
        )
        for topic in changed[:top]
    )


def _ranking(evaluation: Evaluation, topic: str) -> tuple[tuple[str, int | None], ...]:
    answer = evaluation.run.answers.get(topic)
    grades = evaluation.qrels.get(topic, {})
    return tuple((id, grades.get(id)) for id in answer.ids[:SHOWN]) if answer else ()


def _plain(pair: Paired) -> dict[str, Any]:
    return {**asdict(pair), "significant": pair.significant, "verdict": pair.verdict}
