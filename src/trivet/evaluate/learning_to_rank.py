"""Learning to rank: fit the weights of the ``learned`` reranker to judged topics.

In each pair of a relevant and a non-relevant hit, the relevant one should have the higher score. A linear model of the
features is fitted to the pairs by logistic regression; a pair is weighted by the change in nDCG if the two were swapped
(LambdaRank), in the order of the round before. The fused score is one of the features, so that all weights are in its
standard deviations. The weights are few and regularised towards those in use, and no topic is scored with weights that
it helped to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.evaluate.dataset import Topic
from trivet.evaluate.lab import Lab
from trivet.profile import Profile, Step
from trivet.rerank import RERANKERS, build
from trivet.rerank.learned import FEATURES, WORDING, Learned, deviation, gather, wording_share
from trivet.types import StepProgress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.evaluate.tuning_result import Tuned
    from trivet.rerank import Tools
    from trivet.types import Hit, Query

    Floats = NDArray[np.float64]

RIDGE = 0.01  # best of 0.001 to 0.2 for one collection: more loses gain on conversations, less on unseen sets
ROUNDS = 3  # a fourth changes nothing
WRONG = 25  # non-relevant hits of a topic that form pairs, best first; a swap further down changes no shown hit
STEPS, SETTLED = 50, 1e-9  # of Newton's method: iterations at most, and the step at which it ends


@dataclass(frozen=True, slots=True)
class Example:
    """One topic: the fused score and the features of its hits, best first, and their grades."""

    rows: Floats  # hits × (1 + features); the first column is the fused score in standard deviations
    grades: Floats
    ideal: float  # discounted gain of the best possible order


def examples(
    lab: Lab,
    start: Profile,
    topics: Sequence[Topic],
    qrels: Mapping[str, Mapping[str, int]],
    progress: StepProgress | None,
) -> dict[str, Example]:
    """Return for each topic what the reranker would see."""
    found = {}
    for number, topic in enumerate(topics, start=1):
        found[topic.id] = example(*lab.seen(start, topic, Learned.sees), qrels.get(topic.id, {}))
        if progress and (number % 16 == 0 or number == len(topics)):
            progress("read", number, len(topics))
    return found


def example(query: Query, hits: Sequence[Hit], tools: Tools, judged: Mapping[str, int]) -> Example:
    """Return the fused hits of one topic as the reranker would see them."""
    import numpy as np

    ideal = _gain(np.array(sorted((grade for grade in judged.values() if grade > 0), reverse=True), dtype=float))
    if len(hits) < 2:
        return Example(np.zeros((0, 1 + len(FEATURES))), np.zeros(0), ideal)
    unit, gate = deviation(hits) or 1.0, wording_share(hits)
    factors = np.array([gate if name in WORDING else 1.0 for name in FEATURES])
    evidence = np.array(gather(hits, query, tools), dtype=np.float64) * factors
    fused = np.array([[hit.score / unit] for hit in hits])
    grades = np.array([max(0, judged.get(hit.id, 0)) for hit in hits], dtype=float)
    return Example(np.concatenate([fused, evidence], axis=1), grades, ideal)


def fit(
    groups: Iterable[Sequence[Example]], ridge: float = RIDGE, towards: Mapping[str, float] | None = None
) -> Learned:
    """Return the weights fitted to these topics; every group (a test collection) has the same weight.

    The weights are regularised towards ``towards``, or 0: a feature without evidence keeps that weight.
    """
    import numpy as np

    weighted = []
    for group in groups:
        useful = [item for item in group if item.grades.any() and not item.grades.all()]
        weighted += [(item, 1.0 / len(useful)) for item in useful]
    if not weighted:
        raise InputError("learn: no topic has both a relevant and a non-relevant hit; judge more hits, good and bad")
    pull = np.array([(towards or {}).get(name, 0.0) for name in FEATURES])
    line = _rounds(weighted, ridge, pull)
    if line[0] <= 0 and towards is None:
        raise InputError(
            "learn: hits judged relevant have the lowest scores; check whether the judgements are inverted"
        )
    if line[0] <= 0:  # the fused score must keep a positive weight: fix it, and fit the others
        line = _rounds(weighted, ridge, pull, held=True)
    kept = np.clip(line[1:] / line[0], -10.0, 10.0)
    return Learned(**{name: round(float(value), 3) for name, value in zip(FEATURES, kept, strict=True)})


def _rounds(weighted: Sequence[tuple[Example, float]], ridge: float, pull: Floats, held: bool = False) -> Floats:
    import numpy as np

    line = np.concatenate([[1.0], pull])
    for _ in range(ROUNDS):
        line = _line(*_pairs(weighted, line), line, ridge, pull, held)
    return line


def _pairs(weighted: Sequence[tuple[Example, float]], line: Floats) -> tuple[Floats, Floats]:
    """Return the feature differences of each pair (relevant minus non-relevant), and the pairs' weights."""
    import numpy as np

    differences, counts = [], []
    for item, share in weighted:
        place = np.empty(len(item.rows), dtype=int)
        place[np.argsort(-(item.rows @ line), kind="stable")] = np.arange(len(item.rows))
        right, wrong = np.flatnonzero(item.grades > 0), np.flatnonzero(item.grades <= 0)
        wrong = wrong[np.argsort(place[wrong])][:WRONG]
        one, other = np.repeat(right, len(wrong)), np.tile(wrong, len(right))
        swapped = np.abs(_discount(place[one]) - _discount(place[other])) * item.grades[one]
        differences.append(item.rows[one] - item.rows[other])
        counts.append(swapped / item.ideal * share)
    counted = np.concatenate(counts)
    return np.concatenate(differences), counted / counted.sum()


def _line(differences: Floats, counts: Floats, line: Floats, ridge: float, pull: Floats, held: bool) -> Floats:
    """Minimise the weighted logistic loss by Newton's method; it is convex, so the start does not matter.

    ``held`` keeps the weight of the fused score fixed.
    """
    import numpy as np

    # weights are relative to the fused score's, which is not regularised: the target is ``pull`` times that weight
    away = np.concatenate([-pull[:, None], np.eye(len(pull))], axis=1)
    penalty = away.T @ np.diag(ridge * differences.var(axis=0)[1:] + 1e-9) @ away
    for _ in range(STEPS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(differences @ line, -500, 500)))
        slope = penalty @ line - differences.T @ (counts * wrong)
        bend = (differences * (counts * wrong * (1.0 - wrong))[:, None]).T @ differences + penalty
        if held:
            slope[0], bend[0, 1:], bend[1:, 0] = 0.0, 0.0, 0.0
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        length = float(np.abs(step).max())
        line = line - step / max(1.0, length)  # limit the step: far from the minimum the loss is not quadratic
        if length < SETTLED:
            break
    return line


def _discount(place: Any) -> Any:
    import numpy as np

    return 1.0 / np.log2(2.0 + place)


def _gain(grades: Floats, depth: int = 10) -> float:
    import numpy as np

    kept = grades[:depth]
    return float((kept * _discount(np.arange(len(kept)))).sum())


def ndcg(item: Example, learned: Learned) -> float:
    """Return the topic's nDCG@10 with these weights, over the hits of the example."""
    import numpy as np

    line = np.array([1.0, *(getattr(learned, name) for name in FEATURES)])
    order = np.argsort(-(item.rows @ line), kind="stable")
    return _gain(item.grades[order]) / item.ideal if item.ideal else 0.0


def weights(profile: Profile) -> dict[str, float]:
    """Return the weights of the profile's ``learned`` step; empty where it has no such step."""
    step = next((step for step in profile.rerankers if step.name == Learned.name), None)
    return asdict(build(step.name, step.options)) if step is not None else {}


def with_learned(start: Profile, learned: Learned) -> Profile:
    """Return the profile with these weights: in place of the old ones, else before the ``dedup`` step."""
    step = Step(Learned.name, asdict(learned))
    stays = [old.name != Learned.name and not RERANKERS[old.name].drops_only for old in start.rerankers]
    place = stays.index(False) if False in stays else None
    kept = [old for old in start.rerankers if old.name != Learned.name]
    kept.insert(len(kept) if place is None else place, step)
    return replace(start, rerankers=tuple(kept))


def learn(lab: Lab, start: Profile, **options: Any) -> Tuned:
    """Tune the weights of the ``learned`` reranker as ``tune`` tunes settings, and return the result.

    The weights are regularised towards those of the start, or the shipped ones. From 30, 100 and 300 topics of a set,
    and shipped weights that were learnt without that set, this gained 0.0065, 0.0101 and 0.0144 nDCG@10 on the other
    topics of the set (16, 15 and 11 sets with that many topics, 5 draws each; the worst lost 0.006, lost 0.003, gained
    0.002). Regularised towards 0 it gained 0.0064, 0.0101 and 0.0130, and from 300 topics lost 0.002 on the worst.
    """
    from trivet.evaluate.tuning import prove

    before = weights(start) or asdict(Learned())

    def fitted(table: Mapping[str, Example], topics: Sequence[Topic]) -> tuple[Profile, dict[str, float]]:
        learned = fit([[table[topic.id] for topic in topics]], towards=before)
        return (start if asdict(learned) == weights(start) else with_learned(start, learned)), asdict(learned)

    def read(topics: Sequence[Topic], qrels: Any, progress: StepProgress | None) -> dict[str, Example]:
        return examples(lab, start, topics, qrels, progress)

    return prove(lab, start, read, fitted, **options)
