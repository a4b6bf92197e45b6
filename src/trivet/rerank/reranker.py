"""The interface of a reranker, its options, and functions that change the score of a hit.

A reranker takes hits and returns hits. It may reorder, rescore and drop, never add. Every change of a score is recorded
on the hit as an ``Adjustment``; ``relevance`` is never changed. A reranker that needs more than the hits, or that can
fail, implements ``apply`` too: it gets ``Tools`` and returns ``Reranked``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from math import inf, isinf
from operator import itemgetter
from typing import Any, ClassVar, Protocol

from trivet.errors import InputError
from trivet.frozen import quick_replace
from trivet.types import Adjustment, Degraded, Hit, Query

_moved = quick_replace(Hit, "rank", "score", "adjustments")
#: The terms of a title, and the positions of each term in the text.
Places = tuple[Collection[str], Mapping[str, Sequence[int]]]
#: A hit, its new score, and the reason, which may be empty if the score stays.
Verdict = tuple[Hit, float, str]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a reranker: a number in a range, a whole number, one of a few words, or a name."""

    default: float | int | str
    about: str
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if isinstance(self.default, str) and not self.choices:
            return "a name of 1 to 200 characters"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return kind if isinf(self.low) else f"{kind} from {self.low:g} to {self.high:g}"

    def accepts(self, value: object) -> bool:
        """Return whether the value is allowed."""
        if isinstance(self.default, str) and not self.choices:
            return isinstance(value, str) and 0 < len(value) <= 200
        if self.choices:
            return value in self.choices
        kind = int if isinstance(self.default, int) else int | float
        return isinstance(value, kind) and not isinstance(value, bool) and self.low <= value <= self.high  # no NaN


def option(default: float | int | str, about: str, **limits: Any) -> Any:
    """Return a dataclass field that carries its ``Option``, so an option is described in one place."""
    return field(default=default, metadata={"option": Option(default, about, **limits)})


class Scoring(Protocol):
    """A scorer with a cache that runs in its own thread, so a search can stop waiting for it."""

    @property
    def id(self) -> str:
        """The model and everything that changes its scores."""

    @property
    def batch(self) -> int:
        """The number of passages that are best scored together."""

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        """Return the cached scores; None for a passage without one."""

    def open(self) -> Future[None]:
        """Load the model, once per process; the future is done when ``ask`` can be called."""

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]:
        """Score the passages; one score each, higher is better."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a search gives a reranker beside the hits. Each may be missing."""

    scorer: Scoring | None = None
    reader: Scoring | None = None  # the built-in scorer
    language: str = "en"  # of the collection's texts
    before: Callable[[Sequence[Hit]], Mapping[str, str]] | None = (
        None  # hits -> by id, the turn before it in its session
    )
    terms: Callable[[str], Sequence[str]] | None = None  # text -> its terms, as in the lexical index
    order: Mapping[str, int] = field(default_factory=dict)  # document id -> its place in the order of adding
    #: (document ids, terms) -> by id, which of the terms are in the title and at which positions of the passage they
    #: are; the same as from ``terms``, without analysing the text. Documents that the store does not know are left out.
    places: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None = None


@dataclass(frozen=True, slots=True)
class Reranked:
    """The hits after a reranker, what it could not do and why, and a note for the trace."""

    hits: list[Hit]
    degraded: tuple[Degraded, ...] = ()
    note: str = ""
    read: Mapping[str, float] = field(default_factory=dict)  # document id -> the score of the built-in reader


@dataclass(frozen=True)
class Reranker(ABC):
    """Reorders, rescores or drops hits. Its options are its dataclass fields; their values are checked on creation."""

    #: The name in a profile, the same as in the registry.
    name: ClassVar[str]
    #: The fewest candidates it has to see, even if the pool of the profile is smaller.
    sees: ClassVar[int] = 0
    #: Whether it keeps the order and the scores and only drops hits. Then a longer list only adds to what it leaves.
    drops_only: ClassVar[bool] = False
    #: The part of an understood query that it needs, ``"avoided"`` or ``"window"``; empty if it needs none.
    requires: ClassVar[str] = ""
    #: Whether it does nothing without a scorer.
    needs_scorer: ClassVar[bool] = False
    #: Options of earlier versions, which settings that were stored then may still name. They have no effect.
    retired: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for key, allowed in self.options().items():
            value = getattr(self, key)
            if not allowed.accepts(value):
                raise InputError(f"reranker {self.name!r}: {key} is {value!r}; allowed: {allowed.allowed}")

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the options by name."""
        return {known.name: known.metadata["option"] for known in fields(cls)}

    def concerns(self, query: Query) -> bool:
        """Return whether it can change the hits of this query; if not, a search leaves it out."""
        return not self.requires or bool(query.understood and getattr(query.understood, self.requires))

    @abstractmethod
    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        """Return the hits that stay, best first, with ranks from 1."""

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        """Rerank as a search does it: with tools, and with a report of what went wrong."""
        return Reranked(self.rerank(hits, query))


def spread_of(hits: Sequence[Hit]) -> float:
    """Return the best score minus the worst, 1 if all are equal: the unit of a bonus, as scales differ by fusion."""
    return max(hit.score for hit in hits) - min(hit.score for hit in hits) or 1.0 if hits else 1.0


def scaled(score: float, factor: float) -> float:
    """Return ``score`` times ``factor``; below zero ``2 - factor``, so that a factor below 1 always lowers."""
    return score * factor if score >= 0.0 else score * (2.0 - factor)


def best_first(by: Reranker, verdicts: Iterable[Verdict]) -> list[Hit]:
    """Return the hits ordered by their new scores, each change recorded; equal scores keep their order."""
    ordered = sorted(verdicts, key=itemgetter(1), reverse=True)
    return [_rescored(by, rank, *verdict) for rank, verdict in enumerate(ordered, start=1)]


def _rescored(by: Reranker, rank: int, hit: Hit, score: float, reason: str) -> Hit:
    if score == hit.score:
        return hit if rank == hit.rank else moved(hit, rank, score, hit.adjustments)
    return moved(hit, rank, score, (*hit.adjustments, Adjustment(by.name, hit.score, score, reason)))


def renumbered(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits in the given order with ranks from 1 on."""
    return [
        hit if hit.rank == rank else moved(hit, rank, hit.score, hit.adjustments)
        for rank, hit in enumerate(hits, start=1)
    ]


def moved(hit: Hit, rank: int, score: float, adjustments: tuple[Adjustment, ...]) -> Hit:
    """Return the hit with another rank and score."""
    return _moved(hit, rank, score, adjustments)
