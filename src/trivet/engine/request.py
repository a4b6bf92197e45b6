"""A search request, and the values that pass from stage to stage of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from trivet.fusion.context import Share
from trivet.fusion.relevance import Matches
from trivet.fusion.weighing import WEIGHINGS, Weighing
from trivet.legs import LEGS
from trivet.rerank import Reranker, build
from trivet.types import Candidate, Degraded, Document, Hit, Key, Query, Ranking, Stage

if TYPE_CHECKING:
    from trivet.legs.leg import Leg, LegQuery, LegType
    from trivet.profile import Profile
    from trivet.stores.contract import Scope, State

Time = date | str | float | None
Resolve = Callable[[Sequence[int]], tuple[Mapping[int, tuple[str, ...]], tuple[Degraded, ...]]]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that a caller asks of one search, as it was given."""

    query: str
    where: Any = None
    profile: str | Profile | None = None
    exclude: str | Iterable[str] = ()
    vector: Any = None
    offset: int = 0
    at: Time = None  # the time of the query, now if None
    as_of: Time = None  # only documents valid at this time
    queries: Iterable[str] | None = None  # other wordings of the query
    overrides: Mapping[str, Any] = field(default_factory=dict)  # fields of the profile, for this search


@dataclass(frozen=True, slots=True)
class Setup:
    """A profile with what its settings name, looked up and built once."""

    profile: Profile
    name: str  # the profile as text
    legs: Mapping[str, LegType]  # those that have a weight
    depths: Mapping[str, int]  # documents that each leg ranks
    pool: int  # candidates that the rerankers see at least
    pool_grows: bool  # whether the candidates after the pool are hits, too
    timed: bool  # whether times in the text of a query are looked for
    rerankers: tuple[Reranker, ...]
    weigh: Weighing

    @classmethod
    def of(cls, profile: Profile) -> Setup:
        rerankers = tuple(build(step.name, step.options) for step in profile.rerankers)
        return cls(
            profile,
            str(profile),
            {leg: LEGS[leg] for leg, weight in profile.weights.items() if weight > 0},
            {leg: profile.depth(leg, profile.k) for leg in profile.weights},
            profile.pool_size(profile.k),
            profile.pool_grows_with_k,
            profile.temporal == "filter" or any(reranker.requires == "window" for reranker in rerankers),
            rerankers,
            WEIGHINGS[profile.weighing],
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A request made ready: validated, understood, with its scope and its legs."""

    setup: Setup
    query: Query
    legs: Sequence[Leg]
    leg_queries: Mapping[str, LegQuery]
    state: State
    scope: Scope | None
    exclude: tuple[str, ...]
    offset: int
    degraded: tuple[Degraded, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The rankings of the legs, and what the seeded legs were asked."""

    rankings: tuple[Ranking, ...]
    leg_queries: Mapping[str, LegQuery]
    stages: tuple[Stage, ...] = ()
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """The fused candidates, with what their neighbours add, after supersession where links are followed."""

    candidates: Sequence[Candidate]
    weights: Mapping[str, float]  # of this query
    match: Matches
    shares: Mapping[Key, Share] = field(default_factory=dict)  # candidate → what its better neighbour adds
    stands_for: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)  # candidate → ids that it supersedes
    found_as: Mapping[Key, Key] = field(default_factory=dict)  # candidate → the superseded document that was ranked
    resolve: Resolve | None = None  # documents → ids of those that resolve them
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """Hits with their texts, and what the rerankers need to know of them."""

    hits: list[Hit]
    documents: Mapping[int, Document]  # by number
    numbers: dict[str, int]  # id → number
    passages: dict[str, int]  # id → the passage that its hit shows
    relevance: dict[str, float]  # id → by the legs alone
    degraded: tuple[Degraded, ...] = ()
    rewritten: bool = False  # a document was rewritten since it was ranked


@dataclass(frozen=True, slots=True)
class RankedPage:
    """The hits of one page, and what the rerankers said."""

    hits: list[Hit]
    notes: str = ""
    rerank_ms: float = 0.0
    degraded: tuple[Degraded, ...] = ()
    rewritten: bool = False
