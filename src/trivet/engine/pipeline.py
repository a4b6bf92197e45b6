"""The search pipeline: the one file that knows the order of the stages.

plan → legs → fusion → recheck of the filter → context → supersession → fetch → rerank → page. A stage takes values and
returns values; control always comes back here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from trivet.concurrency import deadline
from trivet.engine import hits
from trivet.engine.explain import Explainer
from trivet.engine.plan import Planner, valid_at
from trivet.engine.request import Fetched, Plan, Pool, RankedPage, Retrieved, SearchRequest
from trivet.engine.supersession import follow
from trivet.engine.validation import check_id
from trivet.errors import ModelReplacedError, NotFoundError, StoreError
from trivet.filters import Filter, fields_of, parse_filter
from trivet.fusion import fuse
from trivet.fusion.context import SOURCES, Lifted, shares
from trivet.fusion.pool import keys_of, scores_of
from trivet.fusion.relevance import Matches
from trivet.legs import LEGS
from trivet.legs.graph import heads
from trivet.profile import Profile
from trivet.rerank import Reranked, Reranker, Tools
from trivet.stores.contract import read_again
from trivet.types import Degraded, Explanation, Hit, Query, Ranking, Results, Stage

if TYPE_CHECKING:
    from trivet.engine.leg_threads import LegThreads
    from trivet.engine.models import CollectionModels
    from trivet.stores.contract import Collection, State

Version = tuple[int, bytes]  # number and token

TRIES = 5  # searches begun again because the collection was re-embedded meanwhile
REWRITTEN_TRIES = 3  # searches begun again because a ranked document was rewritten meanwhile


class Pipeline:
    """Searches of one collection."""

    def __init__(self, collection: Collection, models: CollectionModels, threads: LegThreads, tools: Tools) -> None:
        self._collection, self._threads, self._tools = collection, threads, tools
        self._planner = Planner(collection, models)
        self._linked: tuple[Version, bool] = ((-1, b""), False)  # whether this version has a link to follow
        self._without_sessions: Version | None = None  # the last version in which no document is in a session

    def settings(self, stored: str) -> Profile:
        """Return stored settings as a profile."""
        return self._planner.settings(stored)

    def search(self, request: SearchRequest) -> Results:
        """Return the page of hits that the request asks for, with the trace."""
        return self._run(request).results

    def _run(self, request: SearchRequest) -> _Run:
        with self._collection.searching():
            return read_again(lambda: self._search(request))

    def _search(self, request: SearchRequest) -> _Run:
        clock = _Clock()
        for attempt in range(1, REWRITTEN_TRIES + 1):
            plan, retrieved = self._retrieve(request)
            clock.lap()
            pool = self._fuse(plan, retrieved)
            fusion = clock.lap()
            deadline.check()
            with self._collection.snapshot():  # the filter and the texts are read in one state
                plan, pool = self._recheck(plan, pool)
                pool = self._lift_by_context(plan, pool)
                context = clock.lap()
                pool, followed = self._follow(plan, pool)
                links = clock.lap()
                deadline.check()
                page = self._page(plan, retrieved, pool)
                fetched = clock.lap()
                if plan.setup.profile.neighbours:
                    page = replace(page, hits=hits.with_surroundings(self._collection, page.hits, plan))
                    clock.lap()
            if not page.rewritten or attempt == REWRITTEN_TRIES:
                break
        trace = (
            *plan.stages,
            *retrieved.stages,
            Stage("fusion", fusion, _fusion_note(plan.setup.profile, pool.weights)),
            *([Stage("context", context, f"{len(pool.shares)} lifted")] if pool.shares else []),
            *([Stage("links", links, f"{len(pool.stands_for)} replaced")] if followed else []),
            Stage("fetch", fetched - page.rerank_ms),
            Stage("rerank", page.rerank_ms, page.notes),
            Stage("total", clock.total),
        )
        degraded = (*plan.degraded, *retrieved.degraded, *pool.degraded, *page.degraded)
        found = tuple(page.hits)
        results = Results(request.query, found, plan.setup.name, trace, degraded, len(pool.candidates))
        return _Run(results, plan, retrieved, pool)

    # --- plan and legs ------------------------------------------------------------------------------------------------

    def _retrieve(self, request: SearchRequest) -> tuple[Plan, Retrieved]:
        """Plan and run the legs; begin again when their model was replaced meanwhile."""
        for attempt in range(1, TRIES + 1):
            deadline.check()
            plan = self._planner.plan(request)
            try:
                return plan, self._run_legs(plan)
            except ModelReplacedError:
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _run_legs(self, plan: Plan) -> Retrieved:
        """Run the legs at the same time, then the seeded ones from what these found."""
        queries = plan.leg_queries
        first = self._threads.run([leg for leg in plan.legs if not leg.seeded], queries, plan.setup, plan.state)
        seeded = [leg for leg in plan.legs if leg.seeded]
        if not seeded:
            return _checked(plan, first)
        seeds = heads(first.rankings)
        queries = {**queries, **{leg.name: replace(queries[leg.name], seeds=seeds) for leg in seeded}}
        then = self._threads.run(seeded, queries, plan.setup, plan.state)
        rankings, stages = (*first.rankings, *then.rankings), (*first.stages, *then.stages)
        return _checked(plan, Retrieved(rankings, queries, stages, (*first.degraded, *then.degraded)))

    # --- fusion and the snapshot --------------------------------------------------------------------------------------

    def _fuse(self, plan: Plan, retrieved: Retrieved) -> Pool:
        """Fuse the rankings with the weights of this query."""
        profile, rankings = plan.setup.profile, retrieved.rankings
        weights = plan.setup.weigh(plan.query.text, rankings, profile.weights)
        fused = fuse(profile.fusion, rankings, weights, rrf_k=profile.rrf_k, normalize=profile.normalize)
        return Pool(fused, weights, Matches(rankings, weights))

    def _lift_by_context(self, plan: Plan, pool: Pool) -> Pool:
        """Let neighbours in a session add to each other's scores.

        Neighbours that no leg found become candidates, as far as they may be seen. A superseded turn still adds to its
        neighbours, so this runs before ``_follow`` replaces it.
        """
        weight, version = plan.setup.profile.context, (plan.state.version, plan.state.token)
        if not weight or version == self._without_sessions:
            return pool
        scores = scores_of(pool.candidates)
        adjacent = self._collection.documents.adjacent(
            [int(key) for key in islice(scores, SOURCES)], plan.state.version
        )
        if adjacent is None:
            self._without_sessions = version
        if not adjacent:
            return pool
        added = shares(scores, adjacent, weight)
        if plan.scope is not None:  # a candidate has passed the filter already
            unknown = [int(key) for key in added if key not in scores]
            plan.scope.expect(unknown)
            for key in unknown:
                if key not in plan.scope:
                    del added[key]
        return replace(pool, candidates=Lifted(pool.candidates, scores, added), shares=added)

    def _follow(self, plan: Plan, pool: Pool) -> tuple[Pool, bool]:
        """Replace superseded candidates; also return whether links were followed."""
        followed = plan.setup.profile.follow_links and self._has_links(plan.state)
        return follow(self._collection, plan, pool) if followed else pool, followed

    def _has_links(self, state: State) -> bool:
        """Tell whether there is any link to follow; looked up once for each version."""
        version = (state.version, state.token)
        if self._linked[0] != version:
            self._linked = (version, self._collection.links.any_followed())
        return self._linked[1]

    def _recheck(self, plan: Plan, pool: Pool) -> tuple[Plan, Pool]:
        """Apply the filter again in the state of the snapshot: others may have written since the legs ran."""
        state, where = self._collection.state(), plan.query.where
        # an access is written without a new version
        accessed = where is not None and any(name == "accessed" for name, _ in fields_of(where))
        if (state.version, state.token) == (plan.state.version, plan.state.token) and not accessed:
            return plan, pool
        scope = self._collection.filters.recheck(where, plan.exclude)
        if scope is not None:
            scope.expect(int(candidate.key) for candidate in pool.candidates)
            pool = replace(pool, candidates=[item for item in pool.candidates if int(item.key) in scope])
        return replace(plan, state=state, scope=scope), pool

    # --- fetch, rerank and page ---------------------------------------------------------------------------------------

    def _page(self, plan: Plan, retrieved: Retrieved, pool: Pool) -> RankedPage:
        """Fetch and rerank candidates, and cut the page out of them.

        A reranker that scores anew always sees the profile's pool, so that page 2 never reorders page 1. Rerankers
        that only drop hits are shown more candidates until the page is full.
        """
        profile, candidates = plan.setup.profile, pool.candidates
        end = plan.offset + profile.k
        if not profile.rerankers and not profile.min_relevance:
            fetched = hits.fetch(self._collection, candidates[plan.offset : end], plan, retrieved, pool)
            keys = keys_of(candidates)
            around = hits.relevances(keys[: plan.offset], pool), hits.relevances(keys[end:], pool)
            values = hits.final_relevance(fetched.hits, fetched, pool, {}, around)
            found = hits.shown(self._collection, fetched.hits, values, plan, retrieved, fetched)
            return RankedPage(found, degraded=fetched.degraded, rewritten=fetched.rewritten)
        steps = [step for step in plan.setup.rerankers if step.concerns(plan.query)]
        drops_only = all(step.drops_only for step in steps)
        size = max(plan.setup.pool, *(step.sees for step in steps), 1)
        size += plan.offset if drops_only else 0
        run = _RerankRun(plan.query, pool, profile.min_relevance)
        while True:
            fetched = hits.fetch(self._collection, candidates[:size], plan, retrieved, pool)
            found, values = run.rerank(fetched.hits, steps, fetched, self._lend(plan, fetched))
            if not drops_only or len(found) >= end or size >= len(candidates):
                break
            size *= 4
        if not drops_only and len(found) < end and plan.setup.pool_grows:
            rest = hits.fetch(self._collection, candidates[size:], plan, retrieved, pool)
            fetched = _joined(fetched, rest)
            drops = [step for step in steps if step.drops_only]
            longer = [*found, *hits.below(found, rest.hits)]
            found, values = run.rerank(longer, drops, fetched, self._lend(plan, fetched))
        degraded = (*fetched.degraded, *run.degraded)
        page = slice(plan.offset, end)
        found = hits.shown(self._collection, found[page], values[page], plan, retrieved, fetched)
        return RankedPage(found, ", ".join(run.notes), run.ms, degraded, fetched.rewritten)

    def _lend(self, plan: Plan, fetched: Fetched) -> Tools:
        """Return what the rerankers of this search may use."""
        analyzer = self._collection.analyzer
        return replace(
            self._tools,
            language=analyzer.language,
            before=partial(hits.turns_before, self._collection, plan),
            terms=analyzer.terms,
            order={id: self._collection.documents.order_of(did) for id, did in fetched.numbers.items()},
            places=hits.Positions(self._collection.lexical, fetched.passages),
        )

    # --- explanations and evaluation ----------------------------------------------------------------------------------

    def explain(self, request: SearchRequest, id: str) -> Explanation:
        """Explain the rank of one document, or why it is no hit: every leg's rank and score for it."""
        where = valid_at(parse_filter(request.where), request.as_of)
        did = self._visible(id, where)
        if did is None:
            missing = f"document {id!r} not found in collection {self._collection.name!r}"
            if where is None:
                raise NotFoundError(f"id: {missing}")
            # the same words whether the filter hides it or it does not exist
            profile = self._planner.profile(self._collection.state(), request)
            reason = f"{missing} among the documents that the filter allows"
            return Explanation(request.query, id, None, (), str(profile), None, reason)
        run = self._run(request)
        explainer = Explainer(self._collection, run.plan, run.retrieved, run.pool.weights)
        return explainer.explain(request.query, id, did, run.results)

    def _visible(self, id: str, where: Filter | None) -> int | None:
        """Return the number of a document; None if there is none that the filter allows."""
        checked = check_id(id, "id")

        def find() -> int | None:
            with self._collection.snapshot():
                did = self._collection.documents.numbers([checked]).get(checked)
                scope = self._collection.filters.recheck(where, ())
                return did if did is None or scope is None or did in scope else None

        return read_again(find)

    def before_reranking(self, request: SearchRequest, count: int) -> tuple[Query, list[Hit], Tools]:
        """Return what the first reranker would get, for programs that learn from it."""
        plan, retrieved = self._retrieve(request)
        pool = self._fuse(plan, retrieved)
        with self._collection.snapshot():
            plan, pool = self._recheck(plan, pool)
            pool, _ = self._follow(plan, self._lift_by_context(plan, pool))
            fetched = hits.fetch(self._collection, pool.candidates[:count], plan, retrieved, pool)
        return plan.query, fetched.hits, self._lend(plan, fetched)

    def rankings(self, request: SearchRequest) -> tuple[Ranking, ...]:
        """Return the rankings of the legs, before fusion."""
        return self._retrieve(request)[1].rankings


@dataclass(frozen=True, slots=True)
class _Run:
    """A search with the values that led to its results."""

    results: Results
    plan: Plan
    retrieved: Retrieved
    pool: Pool


class _Clock:
    """Milliseconds from lap to lap, and in all."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()

    def lap(self) -> float:
        before, self._last = self._last, time.perf_counter()
        return (self._last - before) * 1000

    @property
    def total(self) -> float:
        return (self._last - self._start) * 1000


@dataclass(slots=True)
class _RerankRun:
    """The rerankers of one search, and the last outcome of each."""

    query: Query
    pool: Pool
    least: float  # relevance of a hit
    ms: float = 0.0
    outcomes: dict[int, tuple[str, Reranked]] = field(default_factory=dict)  # by the identity of the reranker

    def rerank(
        self, found: list[Hit], steps: Sequence[Reranker], fetched: Fetched, tools: Tools
    ) -> tuple[list[Hit], list[float]]:
        """Pass the hits through the rerankers, in order; return those that are relevant enough, and their relevance."""
        started = time.perf_counter()
        for step in steps:
            deadline.check()
            done = step.apply(found, self.query, tools)
            found, self.outcomes[id(step)] = done.hits, (step.name, done)
        self.ms += (time.perf_counter() - started) * 1000
        values = hits.final_relevance(found, fetched, self.pool, self.read)
        enough = sum(value >= self.least for value in values)  # it never increases down the list
        return found[:enough], values[:enough]

    @property
    def read(self) -> dict[str, float]:
        """What the reader returned, by document id."""
        return {id: score for _, done in self.outcomes.values() for id, score in done.read.items()}

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        return tuple(item for _, done in self.outcomes.values() for item in done.degraded)

    @property
    def notes(self) -> list[str]:
        return [f"{name} ({done.note})" if done.note else name for name, done in self.outcomes.values()]


def _joined(first: Fetched, then: Fetched) -> Fetched:
    return Fetched(
        first.hits,
        {**first.documents, **then.documents},
        first.numbers | then.numbers,
        first.passages | then.passages,
        first.relevance | then.relevance,
        tuple(dict.fromkeys((*first.degraded, *then.degraded))),
        first.rewritten or then.rewritten,
    )


def _checked(plan: Plan, retrieved: Retrieved) -> Retrieved:
    """Refuse a search for which no leg answered. A seeded leg without seeds did not answer."""
    failed = [item for item in (*plan.degraded, *retrieved.degraded) if item.part in LEGS]
    seeded = {leg.name for leg in plan.legs if leg.seeded}
    if failed and not any(len(ranking) or ranking.leg not in seeded for ranking in retrieved.rankings):
        reasons = "; ".join(f"{item.part}: {item.reason}" for item in failed)
        raise StoreError(f"search: no leg answered: {reasons}")
    return retrieved


def _fusion_note(profile: Profile, weights: Mapping[str, float]) -> str:
    """Return the fusion's name, and the weights where they depend on the query."""
    if profile.weighing == "fixed":
        return profile.fusion
    chosen = " ".join(f"{leg} {weight:.2f}" for leg, weight in weights.items() if weight > 0)
    return f"{profile.fusion}, weighed by {profile.weighing}: {chosen}"
