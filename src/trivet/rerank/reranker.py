"""What is a reranker, what may be set on it, and how does it leave its mark on a hit?

Hits go in, hits come out: it may reorder, rescore and drop, never add. Every change of score is written down on the hit
as an ``Adjustment``; ``relevance`` is evidence of a match and no prior changes it. One that needs more than
the hits, or can fail, implements ``apply`` beside ``rerank``: it is lent ``Tools`` and answers with ``Reranked``.
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
from trivet.twins import quick
from trivet.types import Adjustment, Degraded, Hit, Query

_hit = quick(Hit)
#: The terms that a title has, and where in the text each term stands.
Places = tuple[Collection[str], Mapping[str, Sequence[int]]]
#: A hit, the score it should have, and why (no reason needed where the score stays).
Verdict = tuple[Hit, float, str]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a reranker: a number in a range, a whole number, one of a few words, or a name."""

    default: float | int | str
    about: str
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        if isinstance(self.default, str) and not self.choices:
            return "a name of 1 to 200 characters"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return kind if isinf(self.low) else f"{kind} from {self.low:g} to {self.high:g}"

    def accepts(self, value: object) -> bool:
        if isinstance(self.default, str) and not self.choices:
            return isinstance(value, str) and 0 < len(value) <= 200
        if self.choices:
            return value in self.choices
        kind = int if isinstance(self.default, int) else int | float
        # A NaN is in no range.
        return isinstance(value, kind) and not isinstance(value, bool) and self.low <= value <= self.high


def option(default: float | int | str, about: str, **limits: Any) -> Any:
    """A dataclass field with its ``Option`` attached: the field is the one place where a setting is described."""
    return field(default=default, metadata={"option": Option(default, about, **limits)})


class Scoring(Protocol):
    """A scorer as the engine lends it: with a memory, and in a thread that need not be waited for."""

    @property
    def id(self) -> str: ...

    @property
    def batch(self) -> int:
        """Passages that are best scored together."""

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        """The scores given before, at no cost; None where there is none."""

    def open(self) -> Future[None]:
        """Done when it can be asked: a model of one's own is opened once a process."""

    def ask(self, query: str, passages: Sequence[str]) -> Future[list[float]]: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What a reranker is lent beside the hits. Each may be missing, and what needs it then says so."""

    scorer: Scoring | None = None
    terms: Callable[[str], Sequence[str]] | None = None  # a passage's, as the index has them
    order: Mapping[str, int] = field(default_factory=dict)  # document → the place at which it was added
    #: Documents and terms → for those it knows, which of the terms a hit's title has and where each stands in its text,
    #: as ``terms`` would list them: the same without reading the text.
    places: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None = None


@dataclass(frozen=True, slots=True)
class Reranked:
    """The hits, what was left undone and why, and a note for the trace."""

    hits: list[Hit]
    degraded: tuple[Degraded, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Reranker(ABC):
    """Hits in, hits out; the settings are the fields, checked however it is made."""

    name: ClassVar[str]
    #: Hits it has to see, where the profile's pool is smaller: one that looks for what the legs do not know of.
    sees: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for key, allowed in self.options().items():
            value = getattr(self, key)
            if not allowed.accepts(value):
                raise InputError(f"reranker {self.name!r}: {key} is {value!r}; allowed: {allowed.allowed}")

    @classmethod
    def options(cls) -> dict[str, Option]:
        return {known.name: known.metadata["option"] for known in fields(cls)}

    def concerns(self, query: Query) -> bool:
        """Has it anything to say to this question? If not, the page is made as if it were not there."""
        return True

    @abstractmethod
    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]: ...

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        """The same, as the search asks for it: with tools, and with room to say what went wrong."""
        return Reranked(self.rerank(hits, query))


def spread_of(hits: Sequence[Hit]) -> float:
    """Best score less worst, 1 among equals: what a bonus is measured by, since every fusion has its own scale."""
    return max(hit.score for hit in hits) - min(hit.score for hit in hits) or 1.0 if hits else 1.0


def scaled(score: float, factor: float) -> float:
    """``score`` times ``factor``; mirrored below zero, where plain multiplying would raise what it means to lower."""
    return score * factor if score >= 0.0 else score * (2.0 - factor)


def best_first(by: Reranker, verdicts: Iterable[Verdict]) -> list[Hit]:
    """Hits by their new scores, each change written down; equal scores stay in the order they came in."""
    ordered = sorted(verdicts, key=itemgetter(1), reverse=True)
    return [_settled(by, rank, *verdict) for rank, verdict in enumerate(ordered, start=1)]


def _settled(by: Reranker, rank: int, hit: Hit, score: float, reason: str) -> Hit:
    if score == hit.score:
        return hit if rank == hit.rank else moved(hit, rank, score, hit.adjustments)
    return moved(hit, rank, score, (*hit.adjustments, Adjustment(by.name, hit.score, score, reason)))


def renumbered(hits: Iterable[Hit], first: int = 1) -> list[Hit]:
    """Ranks 1, 2, 3… in the order given, or from another one on."""
    return [
        hit if hit.rank == rank else moved(hit, rank, hit.score, hit.adjustments)
        for rank, hit in enumerate(hits, start=first)
    ]


def moved(hit: Hit, rank: int, score: float, adjustments: tuple[Adjustment, ...]) -> Hit:
    """The hit at another place: what ``replace`` makes, in a twentieth of the time."""
    return _hit(
        rank,
        hit.id,
        score,
        hit.relevance,
        hit.document,
        hit.passage,
        hit.fused,
        hit.contributions,
        adjustments,
        hit.stands_for,
        hit.resolved_by,
        hit.context,
        hit.path,
    )
