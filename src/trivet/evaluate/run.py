"""What was answered?

A ``Run`` is what one profile answered to every topic, as in TREC, with what TREC leaves out: the relevance of each hit,
the legs that found it, and how long it took.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from trivet.types import Results

LARGEST = 1e38  # a score beyond it is written as this: single precision ends soon after


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one topic, best first."""

    topic: str
    ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    relevances: tuple[float, ...] = ()
    legs: tuple[tuple[str, ...], ...] = ()  # per hit, the legs that have it among as many of their own best
    ms: float = 0.0
    degraded: tuple[str, ...] = ()

    @classmethod
    def of(cls, topic: str, results: Results) -> Answer:
        hits = results.hits
        return cls(
            topic,
            tuple(hit.id for hit in hits),
            tuple(hit.score for hit in hits),
            tuple(hit.relevance for hit in hits),
            tuple(tuple(item.leg for item in hit.contributions if item.rank <= len(hits)) for hit in hits),
            next((stage.ms for stage in results.trace if stage.name == "total"), 0.0),
            tuple(f"{item.part}: {item.reason}" for item in results.degraded),
        )

    def sorted_scores(self) -> list[float]:
        """Scores that sort as the answer is ordered, for a scorer that sorts for itself.

        trec_eval compares in single precision and breaks ties by id, backwards: equal neighbours are set apart by the
        smallest step there is.
        """
        import numpy as np

        found: list[float] = []
        for score in self.scores:
            value = np.float32(min(max(score, -LARGEST), LARGEST))
            if found and value >= found[-1]:
                value = np.nextafter(np.float32(found[-1]), np.float32(-np.inf))
            found.append(float(value))
        return found


@dataclass(frozen=True, slots=True)
class Run:
    """Every topic's answer, under one name."""

    name: str
    answers: Mapping[str, Answer] = field(repr=False)

    def scores(self) -> dict[str, dict[str, float]]:
        """Topic → document → score, as TREC tools take it."""
        return {
            topic: dict(zip(answer.ids, answer.sorted_scores(), strict=True)) for topic, answer in self.answers.items()
        }

    def lines(self) -> Iterable[str]:
        """TREC's run format: topic Q0 document rank score tag."""
        tag = "_".join(self.name.split()) or "trivet"
        for topic, answer in self.answers.items():
            listed = zip(answer.ids, answer.sorted_scores(), strict=True)
            for rank, (id, score) in enumerate(listed, start=1):
                yield f"{_word(topic)} Q0 {_word(id)} {rank} {score!r} {tag}"

    def write(self, path: str | Path) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("".join(f"{line}\n" for line in self.lines()), encoding="utf-8")


def read_run(path: str | Path) -> Run:
    """A run another system wrote; the score orders it, and the rank where two scores are equal."""
    file = Path(path)
    if not file.is_file():
        raise NotFoundError(f"run: there is no file {str(path)!r}")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        broken = file.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{file.name}, line {broken}: not UTF-8") from None
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror or error})") from None
    rows: dict[str, list[tuple[float, int, str]]] = {}
    tag = file.stem
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fields = line.split()
        try:
            topic, _, id, rank, said, *rest = fields
            score = float(said)
            if not math.isfinite(score):
                raise ValueError(said)
            rows.setdefault(topic, []).append((-score, int(rank), id))
        except ValueError:
            raise InputError(
                f"{file.name}, line {number}: expected 'topic Q0 document rank score tag', got {line[:80]!r}"
            ) from None
        tag = rest[0] if rest else tag
    answers: dict[str, Answer] = {}
    for topic, found in rows.items():
        found.sort()
        ids = tuple(id for _, _, id in found)
        if len(set(ids)) != len(ids):
            twice = next(id for at, id in enumerate(ids) if id in ids[:at])
            raise InputError(f"{file.name}: topic {topic!r} lists the document {twice!r} twice")
        answers[topic] = Answer(topic, ids, tuple(-score for score, _, _ in found))
    return Run(tag, answers)


def _word(id: str) -> str:
    """TREC's format is split at blanks, and has no way to quote them."""
    if id.split() != [id]:
        raise InputError(f"run: the id {id!r} has a blank in it, which TREC's run format cannot hold; use --json")
    return id


def plain(answer: Answer) -> dict[str, Any]:
    return {
        "topic": answer.topic,
        "ids": list(answer.ids),
        "scores": [round(score, 6) for score in answer.scores],
        "relevances": [round(value, 4) for value in answer.relevances],
        "legs": [list(legs) for legs in answer.legs],
        "ms": round(answer.ms, 3),
        **({"degraded": list(answer.degraded)} if answer.degraded else {}),
    }


def from_plain(record: Mapping[str, Any]) -> Answer:
    return Answer(
        record["topic"],
        tuple(record["ids"]),
        tuple(record["scores"]),
        tuple(record["relevances"]),
        tuple(tuple(legs) for legs in record["legs"]),
        record["ms"],
        tuple(record.get("degraded", ())),
    )
