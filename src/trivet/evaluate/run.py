"""Runs: the hits of every topic, in TREC's format and with relevance, legs and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from trivet.types import Results

LARGEST = 1e38  # larger scores are written as this, because trec_eval reads single precision


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one topic, best first."""

    topic: str
    ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    relevances: tuple[float, ...] = ()
    legs: tuple[tuple[str, ...], ...] = ()  # for each hit, the legs that have it among as many of their best
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
        """Return scores that keep the order of the hits in a tool that sorts by score.

        trec_eval compares in single precision and breaks ties by descending id, so equal neighbours are separated by
        the smallest possible step.
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
    """The hits of every topic, under one name."""

    name: str
    answers: Mapping[str, Answer] = field(repr=False)

    def scores(self) -> dict[str, dict[str, float]]:
        """Return topic → document → score, as TREC tools take it."""
        return {
            topic: dict(zip(answer.ids, answer.sorted_scores(), strict=True)) for topic, answer in self.answers.items()
        }

    def lines(self) -> Iterable[str]:
        """Yield lines of TREC's run format: topic Q0 document rank score tag."""
        tag = "_".join(self.name.split()) or "trivet"
        for topic, answer in self.answers.items():
            listed = zip(answer.ids, answer.sorted_scores(), strict=True)
            for rank, (id, score) in enumerate(listed, start=1):
                yield f"{_word(topic)} Q0 {_word(id)} {rank} {score!r} {tag}"

    def write(self, path: str | Path) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("".join(f"{line}\n" for line in self.lines()), encoding="utf-8")


def read_run(path: str | Path) -> Run:
    """Read a run in TREC's format; the score orders the hits, and the rank those of equal score."""
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
            topic, _, id, rank, score_text, *rest = fields
            score = float(score_text)
            if not math.isfinite(score):
                raise ValueError(score_text)
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
    """Return the id; raise where it has a blank, which TREC's format cannot quote."""
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
