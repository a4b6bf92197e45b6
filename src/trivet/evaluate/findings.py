"""Findings beside the measures: precision, hits of a single leg, false answers, thresholds, calibration and latency."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from trivet.evaluate.dataset import Qrels, Topic
from trivet.evaluate.run import Answer, Run

NONSENSE = 50  # made-up queries run on every collection
_CONSONANTS = "bdfgjklmnprstvwzxq"
THRESHOLDS = tuple(round(0.02 * step, 2) for step in range(51))
BINS = 10  # of relevance, equally wide


@dataclass(frozen=True, slots=True)
class Cut:
    """What is returned when hits below ``threshold`` relevance are dropped."""

    threshold: float
    precision: float | None  # share of the hits returned that are relevant; None where none is returned
    answered: float  # share of topics with a relevant hit
    false_unanswerable: float | None  # share of unanswerable topics that still get a hit
    false_nonsense: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """The hits of one range of relevance, and the share of them that is relevant."""

    begin: float
    hits: int
    told: float  # their mean relevance
    right: float  # share judged relevant; a hit for an unanswerable topic is not


@dataclass(frozen=True, slots=True)
class Findings:
    """What a run shows beside its measures."""

    topics: int
    unanswered: int  # judged topics without any hit
    degraded: int  # topics for which a part of the search could not take part
    returned: float  # mean number of hits of a topic
    precision: float  # share of all hits returned that are relevant
    right: int  # relevant hits
    only: Mapping[str, int]  # leg → relevant hits that no other leg has among as many of its best
    unanswerable: int  # number of unanswerable topics
    false_unanswerable: float | None  # share of them with a hit, at the profile's threshold
    nonsense: int
    false_nonsense: float | None
    p50_ms: float
    p95_ms: float
    embed_ms: float | None  # median time of embedding a query, not part of the above
    cuts: tuple[Cut, ...] = field(default=(), repr=False)
    bins: tuple[Bin, ...] = field(default=(), repr=False)  # those with a hit

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error: the mean distance of relevance and the share judged relevant, over all hits."""
        hits = sum(item.hits for item in self.bins)
        return sum(item.hits * abs(item.told - item.right) for item in self.bins) / hits if hits else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Findings:
        # an older result has no bins
        bins = tuple(Bin(**item) for item in plain.get("bins", ()))
        return cls(**{**plain, "cuts": tuple(Cut(**cut) for cut in plain["cuts"]), "bins": bins})


def summarize(
    run: Run, qrels: Qrels, unanswerable: Run | None, nonsense: Run | None, embedding_ms: Sequence[float] = ()
) -> Findings:
    """Return the findings of the runs over judged, unanswerable and made-up topics."""
    answers = [run.answers.get(topic, Answer(topic)) for topic in qrels]
    returned = sum(len(answer.ids) for answer in answers)
    right = 0
    only: dict[str, int] = {}
    for answer in answers:
        for at, id in enumerate(answer.ids):
            if qrels[answer.topic].get(id, 0) <= 0:
                continue
            right += 1
            if at < len(answer.legs) and len(answer.legs[at]) == 1:
                only[answer.legs[at][0]] = only.get(answer.legs[at][0], 0) + 1
    times = sorted(answer.ms for answer in answers)
    # another system's run has no relevance, so no threshold applies
    scored = any(answer.relevances for answer in answers) or not returned
    return Findings(
        topics=len(answers),
        unanswered=sum(not answer.ids for answer in answers),
        degraded=sum(bool(answer.degraded) for answer in answers),
        returned=returned / len(answers),
        precision=right / returned if returned else 0.0,
        right=right,
        only=dict(sorted(only.items())),
        unanswerable=len(unanswerable.answers) if unanswerable else 0,
        false_unanswerable=_answered(unanswerable, 0.0),
        nonsense=len(nonsense.answers) if nonsense else 0,
        false_nonsense=_answered(nonsense, 0.0),
        p50_ms=percentile(times, 0.5),
        p95_ms=percentile(times, 0.95),
        embed_ms=percentile(sorted(embedding_ms), 0.5) if embedding_ms else None,
        cuts=tuple(_cut(answers, qrels, unanswerable, nonsense, threshold) for threshold in THRESHOLDS if scored),
        bins=_bins(answers, qrels, unanswerable),
    )


def _cut(
    answers: Sequence[Answer], qrels: Qrels, unanswerable: Run | None, nonsense: Run | None, threshold: float
) -> Cut:
    returned = right = answered = 0
    for answer in answers:
        kept = [id for id, value in zip(answer.ids, answer.relevances, strict=False) if value >= threshold]
        found = sum(qrels[answer.topic].get(id, 0) > 0 for id in kept)
        returned, right, answered = returned + len(kept), right + found, answered + bool(found)
    return Cut(
        threshold,
        right / returned if returned else None,
        answered / len(answers),
        _answered(unanswerable, threshold),
        _answered(nonsense, threshold),
    )


def _bins(answers: Sequence[Answer], qrels: Qrels, unanswerable: Run | None) -> tuple[Bin, ...]:
    """Return the bins that have a hit; the last one includes a relevance of 1."""
    others = unanswerable.answers.values() if unanswerable else ()
    placed: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for answer in (*answers, *others):
        judged = qrels.get(answer.topic, {})
        for id, value in zip(answer.ids, answer.relevances, strict=False):
            placed[min(int(value * BINS), BINS - 1)].append((value, judged.get(id, 0) > 0))
    return tuple(
        Bin(
            at / BINS,
            len(hits),
            sum(value for value, _ in hits) / len(hits),
            sum(right for _, right in hits) / len(hits),
        )
        for at, hits in enumerate(placed)
        if hits
    )


def _answered(run: Run | None, threshold: float) -> float | None:
    """Return the share of these topics with a hit of that relevance; None where there are no such topics."""
    if run is None or not run.answers:
        return None
    return sum(any(value >= threshold for value in answer.relevances) for answer in run.answers.values()) / len(
        run.answers
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which that share of the sorted values lies."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def nonsense(topics: Sequence[Topic], count: int = NONSENSE, seed: int = 0) -> tuple[Topic, ...]:
    """Return queries in words of no language, each with the filter of a real topic."""
    random_ = random.Random(seed)  # always the same queries
    made = []
    for number in range(count):
        words = [_word(random_) for _ in range(4)]
        where = topics[number % len(topics)].where if topics else None
        made.append(Topic(f"nonsense-{number}", f"{' '.join(words)}?", "nonsense", where))
    return tuple(made)


def _word(random_: random.Random) -> str:
    """Return syllables with an ending that no word has; without it two syllables make words such as "zero"."""
    syllables = [
        random_.choice(_CONSONANTS) + random_.choice(["a", "e", "i", "o", "u", "oo", "yx", "uz"])
        for _ in range(random_.randint(1, 3))
    ]
    return "".join(syllables) + random_.choice(_CONSONANTS) + random_.choice(["yxu", "uqz"])
