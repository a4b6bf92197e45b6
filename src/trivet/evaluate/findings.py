"""What does recall hide?

How much of what is returned is right, what only one leg found, how often something is answered when nothing should be,
where a threshold would cut, whether relevance means what it says, and how long it takes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from trivet.evaluate.dataset import Qrels, Topic
from trivet.evaluate.run import Answer, Run

NONSENSE = 50  # made-up questions asked of every collection
_CONSONANTS = "bdfgjklmnprstvwzxq"
THRESHOLDS = tuple(round(0.02 * step, 2) for step in range(51))
BINS = 10  # of relevance, each as wide


@dataclass(frozen=True, slots=True)
class Cut:
    """What would be returned if hits below ``threshold`` relevance were dropped."""

    threshold: float
    precision: float | None  # of the hits returned, how many are judged right; None where none is
    answered: float  # topics with at least one right hit
    false_unanswerable: float | None  # unanswerable topics that still get a hit
    false_nonsense: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """The hits of about the same relevance: what it tells of them, and how many are right."""

    begin: float
    hits: int
    told: float  # their mean relevance
    right: float  # the share judged right; a hit for an unanswerable topic is wrong


@dataclass(frozen=True, slots=True)
class Findings:
    topics: int
    unanswered: int  # judged topics without any hit
    degraded: int  # topics for which some part did not answer
    returned: float  # hits a topic, mean
    precision: float  # of all hits returned, the share judged right
    right: int  # hits judged right
    only: Mapping[str, int]  # leg → right hits that no other leg has among as many of its own best
    unanswerable: int  # how many such topics were asked
    false_unanswerable: float | None  # share of them answered, at the profile's threshold
    nonsense: int
    false_nonsense: float | None
    p50_ms: float
    p95_ms: float
    embed_ms: float | None  # median of embedding a question, not part of the above
    cuts: tuple[Cut, ...] = field(default=(), repr=False)
    bins: tuple[Bin, ...] = field(default=(), repr=False)  # those that have a hit

    @property
    def calibration_error(self) -> float | None:
        """How far relevance and the share judged right are apart, over all hits; None where no hit has a relevance."""
        hits = sum(item.hits for item in self.bins)
        return sum(item.hits * abs(item.told - item.right) for item in self.bins) / hits if hits else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Findings:
        # a result from before there were bins has none
        bins = tuple(Bin(**item) for item in plain.get("bins", ()))
        return cls(**{**plain, "cuts": tuple(Cut(**cut) for cut in plain["cuts"]), "bins": bins})


def look(
    run: Run, qrels: Qrels, unanswerable: Run | None, nonsense: Run | None, embedding_ms: Sequence[float] = ()
) -> Findings:
    """What the answers to judged, unanswerable and made-up questions show."""
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
    # another system's run says nothing of relevance: there is no threshold to cut it at
    tells = any(answer.relevances for answer in answers) or not returned
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
        cuts=tuple(_cut(answers, qrels, unanswerable, nonsense, threshold) for threshold in THRESHOLDS if tells),
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
    """The last one holds 1 as well."""
    silent = unanswerable.answers.values() if unanswerable else ()
    placed: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for answer in (*answers, *silent):
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
    """The share of these topics with a hit of that relevance; None where there are no such topics."""
    if run is None or not run.answers:
        return None
    return sum(any(value >= threshold for value in answer.relevances) for answer in run.answers.values()) / len(
        run.answers
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def nonsense(topics: Sequence[Topic], count: int = NONSENSE, seed: int = 0) -> tuple[Topic, ...]:
    """Questions in words that no language has, each asked in the scope of a real one."""
    random_ = random.Random(seed)  # the same questions for everyone
    made = []
    for number in range(count):
        words = [_word(random_) for _ in range(4)]
        where = topics[number % len(topics)].where if topics else None
        made.append(Topic(f"nonsense-{number}", f"{' '.join(words)}?", "nonsense", where))
    return tuple(made)


def _word(random_: random.Random) -> str:
    """Syllables, and an end that no word has: without it two syllables are "bore" or "zero" soon enough."""
    syllables = [
        random_.choice(_CONSONANTS) + random_.choice(["a", "e", "i", "o", "u", "oo", "yx", "uz"])
        for _ in range(random_.randint(1, 3))
    ]
    return "".join(syllables) + random_.choice(_CONSONANTS) + random_.choice(["yxu", "uqz"])
