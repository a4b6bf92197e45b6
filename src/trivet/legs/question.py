"""What is a leg told?

One value for all legs of one search. The scope is the store's own form of the filter and the excluded ids, made once
and handed unchanged to every leg; ``version`` is the state of the store the question was asked in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trivet.types import Key, Ranking

if TYPE_CHECKING:
    from trivet.types import Vector

Found = tuple[float, int, int]  # score, passage, document


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    version: int
    scope: Any = None
    vector: Vector | None = None
    match: str = "auto"
    gate: float | None = None
    exact: tuple[str, ...] = ()  # names in the text that mean exactly themselves
    lenient: bool = False  # a word that no document has may be a slip of the pen
    expansion: int = 0  # words of the first hits that are added to the question's own
    #: Where a seeded leg begins: the first wave's heads, each with its share of the whole.
    seeds: tuple[tuple[Key, float], ...] = ()


class Leg(Protocol):
    @property
    def name(self) -> str: ...

    def rank(self, question: Question, depth: int) -> Ranking: ...


def ranking(
    leg: str,
    found: list[Found],
    *,
    floor: float = 0.0,
    unrelated: float = 0.0,
    ceiling: float = 1.0,
    gate: float | None = None,
    notes: tuple[str, ...] = (),
) -> Ranking:
    """A Ranking from what a store found; scores below the absolute gate never reach the fusion."""
    if gate is not None:
        found = [hit for hit in found if hit[0] >= gate]
    scores, passages, keys = zip(*found, strict=True) if found else ((), (), ())
    return Ranking(
        leg=leg,
        keys=keys,
        scores=scores,
        passages=passages,
        floor=floor,
        unrelated=unrelated,
        ceiling=ceiling,
        notes=notes,
    )
