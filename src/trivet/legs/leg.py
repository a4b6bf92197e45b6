"""What a leg is, what it is asked, and what it may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from trivet.types import Degraded, Key, Ranking

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, State
    from trivet.types import Embedder, Vector


@dataclass(frozen=True, slots=True)
class LegContext:
    """What a leg may use of the collection that is searched."""

    collection: Collection
    state: State
    has_text: bool  # False for a search by vector alone
    has_vector: bool  # the caller gave the vector of the query
    by_words: bool  # a leg that needs no model takes part
    filtered: bool  # the query has a filter: counts of the whole collection must not be shown
    embedder: Embedder | None
    no_embedder: str  # why there is none
    embed_error: str  # why passages wait for their vectors, where something failed


@dataclass(frozen=True, slots=True)
class LegQuery:
    """A query as a leg gets it. ``version`` is the state of the collection that it was asked in."""

    text: str
    version: int
    scope: Any = None  # the filter and the excluded ids, in the store's own form; one for all legs of a search
    vector: Vector | None = None
    match: str = "auto"
    gate: float | None = None
    exact: tuple[str, ...] = ()  # identifiers in the text
    lenient: bool = False  # a word that no document has may be a typing error
    expansion: int = 0  # terms of the best hits to add to the query
    sessions: bool = True  # for the graph leg: whether neighbours in a session are connected
    seeds: tuple[tuple[Key, float], ...] = ()  # for a seeded leg: the best of the other legs, with their weights


class Leg(Protocol):
    """A retriever, made for one search."""

    @property
    def name(self) -> str:
        """The name it has in a profile."""

    @property
    def seeded(self) -> bool:
        """Whether it starts from the best candidates of the other legs."""

    @property
    def incomplete(self) -> str:
        """Why its ranking may miss documents; empty where it does not."""

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        """Rank the best ``depth`` documents: unique keys, best first, higher scores are better."""

    def is_current(self, state: State) -> bool:
        """Tell whether its index is up to date, so that ``rank`` only has to read."""


class LegType(Protocol):
    """What is registered for a leg: its class."""

    name: ClassVar[str]
    seeded: ClassVar[bool]

    @classmethod
    def build(cls, context: LegContext) -> Leg | Degraded | None:
        """Return the leg for one search; None if it has nothing to search for, ``Degraded`` if it cannot take part."""


ranking = Ranking.of  # its name in 0.2.0, for legs of other packages
