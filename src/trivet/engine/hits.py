"""Candidates made into hits: the one fetch of texts."""

from __future__ import annotations

from collections.abc import Collection as CollectionOf
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import TYPE_CHECKING

from trivet.engine.request import Fetched, Plan, Pool, Retrieved
from trivet.engine.surrounding import neighbours_of
from trivet.frozen import quick_deferred, quick_replace
from trivet.fusion.relevance import never_increasing, probability
from trivet.stores.contract import Span, passage_of
from trivet.text.passages import cut
from trivet.types import Adjustment, Candidate, Contribution, Document, Hit, Key, Passage, Ranking

if TYPE_CHECKING:
    from trivet.rerank.reranker import Places
    from trivet.stores.contract import Collection, LexicalIndex, Scope

_hit, _shown = quick_deferred(Hit), quick_replace(Hit, "rank", "relevance", "path")


def fetch(
    collection: Collection,
    candidates: Sequence[Candidate],
    plan: Plan,
    retrieved: Retrieved,
    pool: Pool,
) -> Fetched:
    """Read the documents of the candidates and make hits with ranks from 1 on.

    Call it in the snapshot that the filter was checked in.
    """
    documents = collection.documents.fetch([int(candidate.key) for candidate in candidates])
    passages, spans, rewritten = _passages(collection, candidates, retrieved.rankings)
    resolved, degraded = pool.resolve(list(documents)) if pool.resolve else ({}, ())
    own = relevances([candidate.key for candidate in candidates], pool)
    lifts = _lifts(collection, candidates, pool, documents)
    found: list[Hit] = []
    numbers: dict[str, int] = {}
    for candidate, relevance in zip(candidates, own, strict=True):
        key, did = candidate.key, int(candidate.key)
        document = documents.get(did)
        if document is None:  # deleted since it was ranked
            continue
        numbers[document.id] = did
        lift = lifts.get(key)
        found.append(
            _hit(
                rank=len(found) + 1,
                id=document.id,
                score=candidate.score,
                relevance=relevance,
                document=document,
                fused=candidate.score if lift is None else lift.before,
                adjustments=() if lift is None else (lift,),
                stands_for=pool.stands_for.get(key, ()),
                resolved_by=resolved.get(did, ()),
                context=(),
                path=(),
                _fill=partial(_deferred, candidate, spans.get(did)),
            )
        )
    shown = {id: passages[did] for id, did in numbers.items() if did in passages}
    by_legs = {hit.id: hit.relevance for hit in found}
    return Fetched(found, documents, numbers, shown, by_legs, degraded, not rewritten.isdisjoint(documents))


def _deferred(candidate: Candidate, span: Span | None, hit: Hit) -> tuple[Passage, tuple[Contribution, ...]]:
    """Return the deferred fields of a hit."""
    return passage_of(hit.document, span), candidate.contributions


def _passages(
    collection: Collection, candidates: Sequence[Candidate], rankings: Sequence[Ranking]
) -> tuple[dict[int, int], dict[int, Span], set[int]]:
    """Return by document number the passage to show, its span, and the documents whose passage is gone.

    A document without such a passage shows its first: a successor that no leg found itself, or a document that was
    rewritten since it was ranked.
    """
    best = _best_passages(rankings, [candidate.key for candidate in candidates])
    known = collection.documents.spans(list(best.values()))
    passages = {int(key): pid for key, pid in best.items() if pid in known}
    spans = {did: known[pid] for did, pid in passages.items()}
    if others := [int(item.key) for item in candidates if int(item.key) not in passages]:
        spans |= collection.documents.first_spans(others)
    return passages, spans, {int(key) for key in best} - passages.keys()


def relevances(keys: Sequence[Key], pool: Pool) -> list[float]:
    """Return the relevance of each of these candidates by itself, by the legs."""
    return pool.match.probabilities([pool.found_as.get(key, key) for key in keys] if pool.found_as else keys)


def final_relevance(
    hits: Sequence[Hit],
    fetched: Fetched,
    pool: Pool,
    read: Mapping[str, float],
    around: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> list[float]:
    """Return the final relevance of each hit.

    ``around`` is the relevance of the candidates before and after these hits. A hit that was not read is after those
    that were, and at most as relevant as the least of them.
    """
    before, after = around
    own = [fetched.relevance[hit.id] for hit in hits]
    if read:
        keys = {hit.id: fetched.numbers[hit.id] for hit in hits if hit.id in read}
        by_id = {id: probability(pool.match(pool.found_as.get(key, key)), read[id]) for id, key in keys.items()}
        most = min(by_id.values(), default=1.0)
        own = [by_id.get(hit.id, min(value, most)) for hit, value in zip(hits, own, strict=True)]
    return never_increasing([*before, *own, *after])[len(before) : len(before) + len(own)]


def shown(
    collection: Collection,
    hits: Sequence[Hit],
    values: Sequence[float],
    plan: Plan,
    retrieved: Retrieved,
    fetched: Fetched,
) -> list[Hit]:
    """Return the hits of a page, with their ranks, these values of relevance, and how the graph walk reached each."""
    numbers = [fetched.numbers[hit.id] for hit in hits]
    paths = walk_paths(collection, retrieved.rankings, numbers, fetched.documents, plan.scope)
    return [
        _shown(hit, rank, relevance, paths.get(did, ()))
        for rank, (hit, relevance, did) in enumerate(zip(hits, values, numbers, strict=True), start=plan.offset + 1)
    ]


def _lifts(
    collection: Collection, candidates: Sequence[Candidate], pool: Pool, documents: Mapping[int, Document]
) -> dict[Key, Adjustment]:
    """Return what a neighbour added to the fused score of each of these candidates, with the id of the neighbour."""
    if not pool.shares:
        return {}
    asked = {candidate.key: pool.found_as.get(candidate.key, candidate.key) for candidate in candidates}
    added = {key: pool.shares[found] for key, found in asked.items() if found in pool.shares}
    unread = {int(share.neighbour) for share in added.values()} - documents.keys()
    known = {**documents, **collection.documents.fetch(list(unread))} if unread else documents
    lifts = {}
    for candidate in candidates:
        share = added.get(candidate.key)
        if share is not None:
            neighbour = known.get(int(share.neighbour))  # None: it has expired a moment ago
            reason = f"{share.amount:+.2f} from {neighbour.id}" if neighbour is not None else ""
            fused = fsum(item.share for item in candidate.contributions)
            lifts[candidate.key] = Adjustment("context", fused, candidate.score, reason)
    return lifts


def _best_passages(rankings: Sequence[Ranking], keys: Iterable[Key]) -> dict[Key, int]:
    """Map documents to the passage to show: that of the leg which ranks the document highest; 0 is no passage."""
    legs = [(ranking.places(), ranking.passages) for ranking in rankings if ranking.passages]
    best: dict[Key, int] = {}
    for key in keys:
        highest = None
        for places, passages in legs:
            place = places.get(key)
            if place is not None and (highest is None or place < highest) and passages[place]:
                highest, best[key] = place, passages[place]
    return best


@dataclass(frozen=True, slots=True)
class Positions:
    """Term positions of the passages that hits show, by document id; those of a rewritten passage are not known."""

    index: LexicalIndex
    passages: Mapping[str, int]

    def __call__(self, ids: Sequence[str], terms: CollectionOf[str]) -> dict[str, Places]:
        known = {self.passages[id]: id for id in ids if id in self.passages}
        return {known[pid]: places for pid, places in self.index.positions(list(known), terms).items()}


def below(reranked: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """Shift the scores of the remaining candidates, in fused order, below those of the reranked hits."""
    if not reranked or not rest or rest[0].score <= reranked[-1].score:
        return list(rest)
    last, down = reranked[-1].score, rest[0].score - reranked[-1].score
    return [_shifted(hit, min(last, hit.score - down)) for hit in rest]  # rounding may lift one above the last


def _shifted(hit: Hit, score: float) -> Hit:
    note = Adjustment("page", hit.score, score, "after what was reranked")
    return replace(hit, score=score, adjustments=(*hit.adjustments, note))


def with_surroundings(collection: Collection, hits: Sequence[Hit], plan: Plan) -> list[Hit]:
    """Attach the passages before and after each hit, as far as the caller may see them."""
    size = collection.config.get("passage_size")
    cutting = cut if size is None else lambda text: cut(text, size=size)
    count, where = plan.setup.profile.neighbours, plan.query.where
    documents, exclude = collection.documents, plan.exclude
    return [replace(hit, context=neighbours_of(hit, count, cutting, documents, where, exclude)) for hit in hits]


def turns_before(collection: Collection, plan: Plan, hits: Sequence[Hit]) -> dict[str, str]:
    """Return the turn before each hit in its session, with its speaker, by the id of the hit."""
    where, exclude = plan.query.where, plan.exclude
    found = {hit.id: neighbours_of(hit, 1, cut, collection.documents, where, exclude) for hit in hits}
    return {id: around[0].text for id, around in found.items() if around and around[0].ordinal < 0}


def walk_paths(
    collection: Collection,
    rankings: Iterable[Ranking],
    wanted: Sequence[int],
    documents: Mapping[int, Document],
    scope: Scope | None,
) -> dict[Key, tuple[str, ...]]:
    """Return for each of these documents how the graph walk reached it: titles (or ids) of documents, and concepts."""
    found: dict[Key, tuple[Key, ...]] = {}
    for ranking in rankings:
        places = ranking.places()
        reached = [did for did in wanted if did in places] if ranking.paths else []
        found.update(zip(reached, _paths(ranking.paths, [places[did] for did in reached]), strict=True))
    # a walk back to its start explains nothing
    found = {key: path for key, path in found.items() if path[:1] != path[-1:]}
    passed = {int(did) for path in found.values() for did in path[::2]}
    if not passed:
        return {}
    known = {**documents, **collection.documents.fetch([did for did in passed if did not in documents])}
    if scope is not None:
        scope.expect(passed)
        known = {did: document for did, document in known.items() if did in scope}
    if lost := passed - known.keys():  # deleted, or hidden by now: a path through it is not shown
        found = {key: path for key, path in found.items() if lost.isdisjoint(map(int, path[::2]))}
    titles = {did: known[did].title or known[did].id for did in passed & known.keys()}
    return {
        key: _without_repeats(titles[int(step)] if at % 2 == 0 else str(step) for at, step in enumerate(path))
        for key, path in found.items()
    }


def _paths(paths: Sequence[tuple[Key, ...]], places: Sequence[int]) -> Sequence[tuple[Key, ...]]:
    if not places:
        return ()
    from trivet.graph.walk import Paths

    return paths.of(places) if isinstance(paths, Paths) else [paths[place] for place in places]


def _without_repeats(steps: Iterable[str]) -> tuple[str, ...]:
    """Join a concept and the document that has it as its title into one step."""
    listed = tuple(steps)
    return tuple(step for at, step in enumerate(listed) if not at or step.casefold() != listed[at - 1].casefold())
