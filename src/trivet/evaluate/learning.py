"""Which weights of the ``learned`` reranker answer these questions best?

Pairs of hits, one right and one wrong: the right one should have the higher score. The line through the evidence is
fitted to them by logistic regression; a pair counts by what swapping the two would change in nDCG (LambdaRank), under
the order of the round before. The fused score is part of the line, so that all weights come out in its deviations.
Few numbers, a pull towards what was there before, and no judgement is ever judged by weights it helped to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.evaluate.dataset import Topic
from trivet.evaluate.lab import Lab, Progress
from trivet.profile import Profile, Step
from trivet.rerank.learned import FEATURES, WORDING, Learned, deviation, gather, wording_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.evaluate.tuned import Tuned

    Floats = NDArray[np.float64]

RIDGE = 0.01  # of 0.001 to 0.2: more loses what conversations gain, less loses on sets left out (benchmarks/ranking.py)
ROUNDS = 3  # a fourth changes nothing
WRONG = 25  # wrong hits a topic is compared with, best first: further down a swap changes nothing that is shown
STEPS, SETTLED = 50, 1e-9  # of Newton's method


@dataclass(frozen=True, slots=True)
class Example:
    """One topic: the fused score and the evidence of its hits, best first, and what they were judged."""

    rows: Floats  # hits × (1 + features): the fused score in deviations first
    grades: Floats
    ideal: float  # the gain of the best order there is, of all that is judged right


def examples(
    lab: Lab, start: Profile, topics: Sequence[Topic], qrels: Mapping[str, Mapping[str, int]], progress: Progress | None
) -> dict[str, Example]:
    """Topic → what the reranker would see."""
    found = {}
    for number, topic in enumerate(topics, start=1):
        found[topic.id] = _example(lab, start, topic, qrels.get(topic.id, {}))
        if progress and (number % 16 == 0 or number == len(topics)):
            progress("read", number, len(topics))
    return found


def _example(lab: Lab, start: Profile, topic: Topic, judged: Mapping[str, int]) -> Example:
    import numpy as np

    query, hits, tools = lab.seen(start, topic, Learned.sees)
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
    """The weights for these topics; every group (a test collection) counts the same.

    ``towards`` are the weights they are pulled to, 0 unless it is said: what no topic speaks of stays as it is there.
    """
    import numpy as np

    weighted = []
    for group in groups:
        telling = [item for item in group if item.grades.any() and not item.grades.all()]
        weighted += [(item, 1.0 / len(telling)) for item in telling]
    if not weighted:
        raise InputError("learn: no topic has a right and a wrong hit; judge more answers, good and bad")
    pull = np.array([(towards or {}).get(name, 0.0) for name in FEATURES])
    line = _rounds(weighted, ridge, pull)
    if line[0] <= 0 and towards is None:
        raise InputError("learn: judged right is what scores low; are the verdicts the wrong way round?")
    if line[0] <= 0:  # the scores must go on counting: what is right then has to be told by the evidence alone
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
    """Right less wrong, and what each pair counts."""
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
    """Newton's method on the weighted logistic loss; convex, so that where it begins does not matter.

    The fused score's own number stays as it is where it is ``held``.
    """
    import numpy as np

    # a weight is measured by the fused score's, which nothing pulls: its distance is from ``pull`` times that
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
        line = line - step / max(1.0, length)  # a long step is cut: far out, the curve is not a parabola
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
    """nDCG@10 of the topic under these weights, of the hits that were seen."""
    import numpy as np

    line = np.array([1.0, *(getattr(learned, name) for name in FEATURES)])
    order = np.argsort(-(item.rows @ line), kind="stable")
    return _gain(item.grades[order]) / item.ideal if item.ideal else 0.0


def weights(profile: Profile) -> dict[str, float]:
    """Those of its ``learned`` step; none where it has no such step."""
    step = next((step for step in profile.rerankers if step.name == Learned.name), None)
    return asdict(Learned(**step.options)) if step is not None else {}


def with_learned(start: Profile, learned: Learned) -> Profile:
    """The profile with these weights: in the place of the old ones, else before what drops copies."""
    step = Step(Learned.name, asdict(learned))
    place = next((at for at, old in enumerate(start.rerankers) if old.name in (Learned.name, "dedup")), None)
    kept = [old for old in start.rerankers if old.name != Learned.name]
    kept.insert(len(kept) if place is None else place, step)
    return replace(start, rerankers=tuple(kept))


def learn(lab: Lab, start: Profile, **options: Any) -> Tuned:
    """As ``tune``, over the weights of the ``learned`` reranker: fitted without the topics they are judged on.

    Pulled towards the start's own weights, or those that ship. From 30, 100 and 300 topics of a set, and weights learnt
    without that set, this gained 0.0065, 0.0101 and 0.0144 nDCG@10 on the set's other topics (16, 15 and 11 sets that
    have as many, 5 draws each; the worst lost 0.006, lost 0.003, gained 0.002). A pull towards 0 gained 0.0064, 0.0101
    and 0.0130, and from 300 topics lost 0.002 on the worst.
    """
    from trivet.evaluate.tuning import prove

    before = weights(start) or asdict(Learned())

    def fitted(table: Mapping[str, Example], topics: Sequence[Topic]) -> tuple[Profile, dict[str, float]]:
        learned = fit([[table[topic.id] for topic in topics]], towards=before)
        return (start if asdict(learned) == weights(start) else with_learned(start, learned)), asdict(learned)

    def read(topics: Sequence[Topic], qrels: Any, progress: Progress | None) -> dict[str, Example]:
        return examples(lab, start, topics, qrels, progress)

    return prove(lab, start, read, fitted, **options)
