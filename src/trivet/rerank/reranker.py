"""What is a reranker, what may be set on it, and how does it leave its mark on a hit?

Hits go in, hits come out: it may reorder, rescore and drop, never add. Every change of score is written down on the hit
as an ``Adjustment``; ``relevance`` is evidence of a match and no prior changes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf, isinf
from operator import itemgetter
from typing import Any, ClassVar

from trivet.errors import InputError
from trivet.types import Adjustment, Hit, Query

#: A hit, the score it should have, and why (no reason needed where the score stays).
Verdict = tuple[Hit, float, str]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a reranker: a number in a range, a whole number, or one of a few words."""

    default: float | int | str
    about: str
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return kind if isinf(self.low) else f"{kind} from {self.low:g} to {self.high:g}"

    def accepts(self, value: object) -> bool:
        if self.choices:
            return value in self.choices
        kind = int if isinstance(self.default, int) else int | float
        # A NaN is in no range.
        return isinstance(value, kind) and not isinstance(value, bool) and self.low <= value <= self.high


def option(default: float | int | str, about: str, **limits: Any) -> Any:
    """A dataclass field with its ``Option`` attached: the field is the one place where a setting is described."""
    return field(default=default, metadata={"option": Option(default, about, **limits)})


@dataclass(frozen=True)
class Reranker(ABC):
    """Hits in, hits out; the settings are the fields, checked however it is made."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for key, allowed in self.options().items():
            value = getattr(self, key)
            if not allowed.accepts(value):
                raise InputError(f"reranker {self.name!r}: {key} is {value!r}; allowed: {allowed.allowed}")

    @classmethod
    def options(cls) -> dict[str, Option]:
        return {known.name: known.metadata["option"] for known in fields(cls)}

    @abstractmethod
    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]: ...


def scaled(score: float, factor: float) -> float:
    """``score`` times ``factor``; mirrored below zero, where plain multiplying would raise what it means to lower."""
    return score * factor if score >= 0.0 else score * (2.0 - factor)


def best_first(by: Reranker, verdicts: Iterable[Verdict]) -> list[Hit]:
    """Hits by their new scores, each change written down; equal scores stay in the order they came in."""
    ordered = sorted(verdicts, key=itemgetter(1), reverse=True)
    return [_settled(by, rank, *verdict) for rank, verdict in enumerate(ordered, start=1)]


def _settled(by: Reranker, rank: int, hit: Hit, score: float, reason: str) -> Hit:
    if score == hit.score:
        return hit if rank == hit.rank else replace(hit, rank=rank)
    note = Adjustment(by.name, hit.score, score, reason)
    return replace(hit, rank=rank, score=score, adjustments=(*hit.adjustments, note))


def renumbered(hits: Iterable[Hit]) -> list[Hit]:
    """Ranks 1, 2, 3… in the order given."""
    return [hit if hit.rank == rank else replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)]
