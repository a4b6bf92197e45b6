"""The spine: in which order is a question answered?

This file alone knows it: scope → legs → fusion → links → fetch → rerankers → page. All else is a leaf with one verb.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LegTimeout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trivet import intake
from trivet.errors import InputError, ModelReplacedError, NotFoundError, StoreError
from trivet.filters import And, Filter, Not, Or, Range, epoch, parse_filter
from trivet.fusion import fuse
from trivet.fusion.weighing import WEIGHINGS
from trivet.intake import MAX_QUERY
from trivet.legs.dense import Dense
from trivet.legs.lexical import Lexical
from trivet.legs.question import Leg, Question
from trivet.legs.trigram import Trigram
from trivet.memory.succession import Chains
from trivet.models import Models
from trivet.profile import LEGS, PROFILES, Profile, named
from trivet.rerank import build
from trivet.stores.sqlite import records
from trivet.stores.sqlite.shelf import Shelf, State
from trivet.types import (
    Candidate,
    Degraded,
    Explanation,
    Hit,
    Key,
    LegVerdict,
    Query,
    Ranking,
    Results,
    Stage,
)

if TYPE_CHECKING:
    from trivet.stores.sqlite.scope import Scope
    from trivet.types import Vector

# Waking a thread and being woken by it costs a query about 1 ms. A leg that has answered quickly this many times, and
# whose index has nothing to catch up on, is asked in the caller's thread while the others work, until it is slow.
QUICK_MS, TRUSTED_AFTER = 20.0, 8
TRIES = 5  # a collection re-embedded this often within one search is not waited for
DROPS_ONLY = ("dedup",)  # rerankers that keep the order and the scores: a longer list only adds to what they leave


class Legs:
    """The threads the legs of a file run in: one pool a leg, so that an endpoint that hangs does not stop the words."""

    def __init__(self) -> None:
        self._quick = dict.fromkeys(LEGS, 0)
        self._pools = {leg: ThreadPoolExecutor(max_workers=8, thread_name_prefix=f"trivet-{leg}") for leg in LEGS}

    def submit(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        try:
            return self._pools[leg.name].submit(_timed, leg, question, depth)
        except RuntimeError:  # shut down between the first look at the store and here
            raise StoreError("store: it was closed while a search began; open it again with trivet.open") from None

    def answer(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        """The same, answered in this thread before it returns."""
        future: Future[tuple[Ranking, float]] = Future()
        try:
            future.set_result(_timed(leg, question, depth))
        except Exception as error:
            future.set_exception(error)
        return future

    def remember(self, leg: str, ms: float) -> None:
        self._quick[leg] = self._quick[leg] + 1 if ms < QUICK_MS else 0

    def is_quick(self, leg: str) -> bool:
        """Has it answered quickly for a while?"""
        return self._quick[leg] >= TRUSTED_AFTER

    def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)  # a leg that hangs must not hold up the close


class Search:
    """Questions to one collection."""

    def __init__(self, shelf: Shelf, models: Models, legs: Legs) -> None:
        self._shelf, self._models, self._pools = shelf, models, legs
        self._parsed: tuple[str, Profile] | None = None

    def settings(self, stored: str) -> Profile:
        """The stored settings as a profile; parsed again only when they have changed."""
        kept = self._parsed
        if kept is None or kept[0] != stored:
            kept = self._parsed = (stored, Profile.from_json(stored))
        return kept[1]

    def run(
        self,
        query: str,
        where: Any,
        profile: str | Profile | None,
        exclude: str | Iterable[str],
        vector: Any,
        offset: int,
        at: datetime | str | float | None,
        overrides: Mapping[str, Any],
        as_of: datetime | str | float | None = None,
    ) -> Results:
        started = time.perf_counter()
        chosen, asked, answers = self._consult(query, where, profile, _ids(exclude), vector, at, overrides, as_of)
        fusing = time.perf_counter()
        weights = WEIGHINGS[chosen.weighing](asked.query.text, answers.rankings, chosen.weights)
        answers.pool = self._fuse(answers, chosen, weights)
        following = time.perf_counter()
        linked = chosen.follow_links and self._shelf.has_chains(asked.state.version)
        if linked:
            self._follow(answers, asked)
        fetching = time.perf_counter()
        hits, reranked = self._page(answers, _offset(offset), asked.query, chosen)
        ended = time.perf_counter()
        trace = (
            *answers.stages,
            Stage("fusion", (following - fusing) * 1000, _told(chosen, weights)),
            *([Stage("links", (fetching - following) * 1000, f"{len(answers.stands_for)} replaced")] if linked else []),
            Stage("fetch", (ended - fetching) * 1000 - reranked),
            Stage("rerank", reranked, ", ".join(step.name for step in chosen.rerankers)),
            Stage("total", (ended - started) * 1000),
        )
        degraded = (*asked.degraded, *answers.degraded)
        return Results(query, tuple(hits), str(chosen), trace, degraded, len(answers.pool))

    def _consult(
        self,
        query: str,
        where: Any,
        profile: str | Profile | None,
        exclude: tuple[str, ...],
        vector: Any,
        at: Any,
        overrides: Mapping[str, Any],
        as_of: Any = None,
    ) -> tuple[Profile, _Asked, _Answers]:
        """What the legs say; asked again when the model they began with was replaced under them."""
        for attempt in range(1, TRIES + 1):
            state = self._shelf.state()
            chosen = self._profile(state, profile, overrides)
            asked = self._ask(state, query, where, exclude, vector, at, chosen, as_of)
            try:
                return chosen, asked, self._answers(asked, chosen)
            except ModelReplacedError:
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def rankings(self, query: str, where: Any, profile: Profile, exclude: tuple[str, ...] = ()) -> tuple[Ranking, ...]:
        """What each leg says, before anything is made of it."""
        return tuple(self._consult(query, where, profile, exclude, None, None, {})[2].rankings)

    def _profile(self, state: State, profile: str | Profile | None, overrides: Mapping[str, Any]) -> Profile:
        if profile is None:
            chosen = self.settings(state.settings)
        elif isinstance(profile, str):
            chosen = named(profile)
        elif isinstance(profile, Profile):
            chosen = profile
        else:
            raise InputError(f"profile: {profile!r} is not a name or a Profile; known: {', '.join(PROFILES)}")
        return chosen.with_changes(overrides) if overrides else chosen

    def _ask(
        self,
        state: State,
        query: str,
        where: Any,
        exclude: tuple[str, ...],
        vector: Any,
        at: Any,
        profile: Profile,
        as_of: Any,
    ) -> _Asked:
        degraded: list[Degraded] = []
        if not isinstance(query, str):
            raise InputError(f"query: {type(query).__name__} is not text")
        if not query.strip() and vector is None:
            raise InputError("query: it is empty; ask something, or list documents with `documents(where=…)`")
        text = intake.clean(query)
        if len(text) > MAX_QUERY:
            degraded.append(Degraded("query", f"{len(text):,} characters; only the first {MAX_QUERY:,} were used"))
            text = text[:MAX_QUERY]
        parsed = _valid(parse_filter(where), as_of)
        scope = self._shelf.scope(parsed, [intake.check_id(id, "exclude") for id in exclude], state.version)
        given: Vector | None = None
        if vector is not None:
            if state.model is None:
                raise InputError(
                    "vector: the collection has no model; open it with embedder='vectors:DIM' to bring your own"
                )
            given = intake.vector_bytes(vector, state.model.dim, "vector")
        moment = datetime.fromtimestamp(epoch(at, "at"), UTC) if at is not None else datetime.now(UTC)
        legs, missing = self._legs(state, profile, given is not None, text)
        questions = {
            leg.name: Question(text, state.version, scope, given, profile.match, profile.gates.get(leg.name))
            for leg in legs
        }
        return _Asked(Query(text, parsed, moment), legs, questions, state, (*degraded, *missing), scope, bool(exclude))

    def _legs(self, state: State, profile: Profile, has_vector: bool, text: str) -> tuple[list[Leg], list[Degraded]]:
        """The legs with a weight; what should take part and cannot is degraded."""
        has_text = bool(text.strip())
        legs: list[Leg] = []
        degraded: list[Degraded] = []
        weights, shelf = profile.weights, self._shelf
        if weights["lexical"] > 0 and has_text:
            legs.append(Lexical(shelf.analyzer.query, shelf))
        if weights["trigram"] > 0 and has_text:
            legs.append(Trigram(shelf.analyzer.keywords, shelf))
        if weights["dense"] > 0:
            embedder = self._models.embedder_of(state.model)
            if state.model is None or embedder is None:
                alone = "found by words alone: " if legs else ""
                degraded.append(Degraded("dense", f"{alone}{self._models.why_none}"))
            elif state.model.spec.startswith("vectors:") and not has_vector:
                degraded.append(Degraded("dense", "the caller brings the vectors of this collection, and gave none"))
            else:
                legs.append(Dense(embedder, state.model, shelf))
                if state.pending:
                    told = f"{state.pending:,} of {state.passages:,} passages are not embedded yet"
                    degraded.append(
                        Degraded(
                            "dense", f"{told} ({self._models.backlog.error})" if self._models.backlog.error else told
                        )
                    )
        return legs, degraded

    def _answers(self, asked: _Asked, profile: Profile) -> _Answers:
        """Ask the legs at the same time; one that fails or is late is left out and named."""
        rankings: list[Ranking] = []
        stages: list[Stage] = []
        degraded: list[Degraded] = []
        started = time.perf_counter()
        futures: dict[str, Future[tuple[Ranking, float]]] = {}
        for leg in asked.legs:
            here = (
                leg is asked.legs[-1]
                and self._pools.is_quick(leg.name)
                and self._shelf.is_current(leg.name, asked.state)
            )
            ask = self._pools.answer if here else self._pools.submit
            futures[leg.name] = ask(leg, asked.questions[leg.name], profile.depth(leg.name, profile.k))
        for leg in asked.legs:
            future = futures[leg.name]
            allowed = profile.timeouts[leg.name]
            try:
                ranking, ms = future.result(max(0.0, started + allowed / 1000 - time.perf_counter()))
                self._pools.remember(leg.name, ms)
                if ms > allowed:
                    raise LegTimeout
            except LegTimeout as error:
                future.cancel()
                # since Python 3.11 this is the built-in TimeoutError, which an embedder may raise itself
                own = future.done() and not future.cancelled() and future.exception() is error
                degraded.append(Degraded(leg.name, str(error) if own else f"no answer within {allowed:g} ms"))
            except (InputError, NotFoundError):
                raise
            except Exception as error:
                degraded.append(Degraded(leg.name, str(error) or type(error).__name__))
            else:
                rankings.append(ranking)
                stages.append(Stage(leg.name, ms, ", ".join((f"{len(ranking)} found", *ranking.notes))))
        if not rankings and (failed := [item for item in (*asked.degraded, *degraded) if item.part in LEGS]):
            raise StoreError("search: no leg answered: " + "; ".join(f"{item.part}: {item.reason}" for item in failed))
        return _Answers(rankings, stages, degraded)

    def _fuse(self, answers: _Answers, profile: Profile, weights: Mapping[str, float]) -> list[Candidate]:
        return fuse(profile.fusion, answers.rankings, weights, rrf_k=profile.rrf_k, normalize=profile.normalize)

    def _follow(self, answers: _Answers, asked: _Asked) -> None:
        """What is superseded gives its place to the newest that may be seen; in the whole pool, whatever the page."""
        within = asked.scope
        if asked.excludes:  # left out by name is another matter than not allowed
            within = self._shelf.scope(asked.query.where, (), asked.state.version)

        def allowed(key: Key) -> bool:
            return within is None or int(key) in within

        def shown(key: Key) -> bool:
            return asked.scope is None or int(key) in asked.scope

        def chains(dids: Sequence[int]) -> Chains:
            return Chains(self._shelf.successors(dids), allowed)

        def resolved(dids: Sequence[int]) -> dict[int, tuple[str, ...]]:
            return self._resolved(dids, chains, shown)

        found = chains([int(candidate.key) for candidate in answers.pool])
        answers.pool, answers.stands_for = found.follow(answers.pool, shown)
        answers.resolved = resolved

    def _resolved(
        self, dids: Sequence[int], chains: Callable[[Sequence[int]], Chains], shown: Callable[[Key], bool]
    ) -> dict[int, tuple[str, ...]]:
        """What resolves these documents, in its newest form."""
        found = self._shelf.resolutions(dids)
        known = {did: id for items in found.values() for did, id in items}
        if not known:
            return {}
        newer = chains(list(known))
        attached: dict[int, tuple[str, ...]] = {}
        for problem, items in found.items():
            ends = dict.fromkeys(int(newer.newest(did)) for did, _ in items)
            kept = [end for end in ends if end != problem and shown(end)]
            attached[problem] = tuple(known[end] if end in known else newer.id_of(end) for end in kept)
        return attached

    def _page(self, answers: _Answers, offset: int, query: Query, profile: Profile) -> tuple[list[Hit], float]:
        """The hits after ``offset``, and how many milliseconds the rerankers took.

        A reranker that scores anew sees the profile's pool whatever the page, so that page 2 never reshuffles page 1.
        One that only drops is shown more until the page is full.
        """
        pool, wanted, reranked = answers.pool, offset + profile.k, 0.0
        if not profile.rerankers and not profile.min_relevance:
            return _numbered(self._hits(pool[offset:wanted], answers, profile), offset), reranked
        drops_only = all(step.name in DROPS_ONLY for step in profile.rerankers)
        size = profile.pool_size(profile.k) + (offset if drops_only else 0)
        while True:
            hits = self._hits(pool[:size], answers, profile)
            begun = time.perf_counter()
            for step in profile.rerankers:
                hits = build(step.name, step.options).rerank(hits, query)
            hits = [hit for hit in hits if hit.relevance >= profile.min_relevance]
            reranked += (time.perf_counter() - begun) * 1000
            if not drops_only or len(hits) >= wanted or size >= len(pool):
                return _numbered(hits[offset:wanted], offset), reranked
            size *= 4

    def _hits(self, candidates: Sequence[Candidate], answers: _Answers, profile: Profile) -> list[Hit]:
        """The one text fetch, for the survivors."""
        documents = self._shelf.fetch([int(candidate.key) for candidate in candidates])
        pids = answers.best_passages({candidate.key for candidate in candidates})
        spans = self._shelf.fetch_spans(list(pids.values()))
        unseen = [int(candidate.key) for candidate in candidates if candidate.key not in pids]
        begins = self._shelf.first_passages(unseen) if unseen else {}  # a successor that no leg found itself
        resolved = answers.resolved(list(documents))
        relevance = answers.relevance(profile.weights)
        hits: list[Hit] = []
        for candidate in candidates:
            document = documents.get(int(candidate.key))
            if document is None:  # deleted since it was ranked
                continue
            pid = pids.get(candidate.key)
            span = begins.get(int(candidate.key)) if pid is None else spans.get(pid)
            passage = records.passage_of(document, span)
            hits.append(
                Hit(
                    len(hits) + 1,
                    document.id,
                    candidate.score,
                    relevance(candidate),
                    document,
                    passage,
                    candidate.score,
                    candidate.contributions,
                    stands_for=answers.stands_for.get(candidate.key, ()),
                    resolved_by=resolved.get(int(candidate.key), ()),
                )
            )
        return hits

    def explain(
        self, query: str, id: str, where: Any, profile: str | Profile | None, options: Mapping[str, Any]
    ) -> Explanation:
        """Why is this document an answer, or why is it not? Every leg's rank and score for it, even far down."""
        found = self._shelf.dids([intake.check_id(id, "id")])
        if not found:
            raise NotFoundError(f"id: there is no document {id!r} in collection {self._shelf.name!r}")
        did = found[id]
        overrides = {name: value for name, value in options.items() if not (name == "k" and value is None)}
        vector, exclude = overrides.pop("vector", None), overrides.pop("exclude", ())
        offset, at, as_of = overrides.pop("offset", 0), overrides.pop("at", None), overrides.pop("as_of", None)
        results = self.run(query, where, profile, exclude, vector, offset, at, overrides, as_of)
        hit = next((hit for hit in results.hits if hit.id == id), None)
        heir = next((hit for hit in results.hits if id in hit.stands_for), None)
        chosen, asked, answers = self._consult(query, where, profile, _ids(exclude), vector, at, overrides, as_of)
        weights = WEIGHINGS[chosen.weighing](asked.query.text, answers.rankings, chosen.weights)
        verdicts = [self._verdict(leg, asked, answers, chosen, weights[leg.name], did) for leg in asked.legs]
        return Explanation(
            query,
            id,
            hit.rank if hit else None,
            tuple(verdicts),
            str(chosen),
            hit,
            self._reason(hit, heir, did, asked, verdicts, chosen),
        )

    def _verdict(
        self, leg: Leg, asked: _Asked, answers: _Answers, profile: Profile, weight: float, did: int
    ) -> LegVerdict:
        depth = profile.depth(leg.name, profile.k)
        ranking = next((ranking for ranking in answers.rankings if ranking.leg == leg.name), Ranking(leg.name))
        if did in ranking.keys:
            at = ranking.keys.index(did)
            score = ranking.scores[at]
            return LegVerdict(leg.name, weight, at + 1, score, depth, ranking.strength(score))
        if failed := next((item.reason for item in answers.degraded if item.part == leg.name), ""):
            return LegVerdict(leg.name, weight, None, None, depth, note=f"did not answer: {failed}")
        question = asked.questions[leg.name]
        alone = self._shelf.only(did)  # the same leg, asked about this one document
        single = leg.rank(replace(question, scope=alone, gate=None, match="any"), 1)
        if not single.keys:
            return LegVerdict(leg.name, weight, None, None, depth, note="does not match")
        score = single.scores[0]
        gate = profile.gates.get(leg.name)
        if question.scope is not None and did not in question.scope:
            note = "left out by the filter or the exclusion"
        else:
            note = f"below the gate {gate:g}" if gate is not None and score < gate else f"not among the best {depth}"
        return LegVerdict(leg.name, weight, None, score, depth, single.strength(score), note)

    def _reason(
        self,
        hit: Hit | None,
        heir: Hit | None,
        did: int,
        asked: _Asked,
        verdicts: Sequence[LegVerdict],
        profile: Profile,
    ) -> str:
        if hit is not None:
            place = f", in the place of {', '.join(map(repr, hit.stands_for))}" if hit.stands_for else ""
            return f"rank {hit.rank}{place}"
        if heir is not None:
            return f"superseded: {heir.id!r} is shown in its place, at rank {heir.rank}"
        if any(question.scope is not None and did not in question.scope for question in asked.questions.values()):
            return "left out by the filter or the exclusion"
        if not any(verdict.rank for verdict in verdicts):
            return "no leg has it among its best"
        limit = f"the best {profile.k} above relevance {profile.min_relevance:g}"
        return f"found, but not among {limit} after fusion and reranking"


@dataclass(frozen=True, slots=True)
class _Asked:
    query: Query
    legs: list[Leg]
    questions: Mapping[str, Question]
    state: State
    degraded: tuple[Degraded, ...]
    scope: Scope | None = None
    excludes: bool = False


@dataclass(slots=True)
class _Answers:
    rankings: list[Ranking]
    stages: list[Stage]
    degraded: list[Degraded]
    pool: Sequence[Candidate] = ()
    stands_for: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    resolved: Callable[[Sequence[int]], Mapping[int, tuple[str, ...]]] = lambda dids: {}

    def best_passages(self, keys: set[Any]) -> dict[Any, int]:
        """The passage to show: that of the leg in which the document stands highest."""
        best: dict[Any, tuple[int, int]] = {}
        for ranking in self.rankings:
            for at, key in enumerate(ranking.keys):
                if key in keys and (key not in best or at < best[key][0]):
                    best[key] = (at, ranking.passages[at])
        return {key: pid for key, (_, pid) in best.items()}

    def relevance(self, weights: Mapping[str, float]) -> Callable[[Candidate], float]:
        """The weighted mean of the legs' absolute strengths, over the legs that answered."""
        by_leg = {ranking.leg: (weights[ranking.leg], ranking.strength) for ranking in self.rankings}
        total = sum(weight for weight, _ in by_leg.values()) or 1.0

        def of(candidate: Candidate) -> float:
            found = 0.0
            for item in candidate.contributions:
                weight, strength = by_leg[item.leg]
                found += weight * strength(item.raw)
            return min(1.0, found / total)

        return of


def _valid(where: Filter | None, as_of: Any) -> Filter | None:
    """The filter, and valid at that moment: from ``valid_from`` on, before ``valid_to``; without bounds, always."""
    if as_of is None:
        return where
    moment = epoch(as_of, "as_of")
    # Said by what is not valid: few documents have bounds, and an index knows them.
    valid = Not(Or((Range("valid_from", gt=moment), Range("valid_to", lte=moment))))
    return valid if where is None else And((where, valid))


def _told(profile: Profile, weights: Mapping[str, float]) -> str:
    """The fusion's name, and the weights where the question chose them."""
    if profile.weighing == "fixed":
        return profile.fusion
    chosen = " ".join(f"{leg} {weight:.2f}" for leg, weight in weights.items() if weight > 0)
    return f"{profile.fusion}, weighed by {profile.weighing}: {chosen}"


def _timed(leg: Leg, question: Question, depth: int) -> tuple[Ranking, float]:
    started = time.perf_counter()
    ranking = leg.rank(question, depth)
    return ranking, (time.perf_counter() - started) * 1000


def _numbered(hits: Iterable[Hit], offset: int) -> list[Hit]:
    return [hit if hit.rank == rank else replace(hit, rank=rank) for rank, hit in enumerate(hits, start=offset + 1)]


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"offset: {value!r} is not a whole number from 0 up")
    return value


def _ids(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
