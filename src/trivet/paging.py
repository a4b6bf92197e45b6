"""The candidates are fused: which hits are on this page, with what text, and in which order?"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trivet import deadline
from trivet.fusion.relevance import probability, standings
from trivet.inquiry import Answers, Asked
from trivet.neighbours import context_of
from trivet.passages import cut
from trivet.profile import Profile
from trivet.rerank import Reranked, Reranker, Tools, build
from trivet.rerank.reranker import Places, renumbered
from trivet.stores.contract import Scope, Shelf, passage_of
from trivet.twins import quick
from trivet.types import Adjustment, Candidate, Degraded, Document, Hit, Key, Passage, Query, Ranking

_hit = quick(Hit)
DROPS_ONLY = ("dedup",)  # rerankers that keep the order and the scores: a longer list only adds to what they leave


@dataclass(slots=True)
class Page:
    hits: list[Hit] = field(default_factory=list)
    said: dict[str, Reranked] = field(default_factory=dict)  # by each reranker, the last time it was asked
    rerank_ms: float = 0.0

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        return tuple(item for done in self.said.values() for item in done.degraded)

    @property
    def notes(self) -> list[str]:
        return [f"{name} ({done.note})" if done.note else name for name, done in self.said.items()]


class Pages:
    """Candidates of one collection made into hits."""

    def __init__(self, shelf: Shelf, tools: Tools) -> None:
        self._shelf, self._tools = shelf, tools
        self._order_of: Callable[[int], int] = getattr(shelf, "order_of", int)  # where numbers are not one apart

    def page(self, answers: Answers, offset: int, asked: Asked, profile: Profile) -> Page:
        """The hits after ``offset``.

        A reranker that scores anew sees the profile's pool whatever the page, so that page 2 never reshuffles page 1.
        One that only drops is shown more until the page is full.
        """
        pool, wanted, page, query = answers.pool, offset + profile.k, Page(), asked.query
        if not profile.rerankers and not profile.min_relevance:
            page.hits = renumbered(self.hits(pool[offset:wanted], answers, asked), offset + 1)
            return page
        steps = [build(step.name, step.options) for step in profile.rerankers]
        steps = [step for step in steps if step.concerns(query)]
        drops_only = all(step.name in DROPS_ONLY for step in steps)
        size = max(profile.pool_size(profile.k), *(step.sees for step in steps), 1) + (offset if drops_only else 0)
        while True:
            hits = self.hits(pool[:size], answers, asked)
            hits = self._reranked(hits, query, steps, answers, page)
            hits = [hit for hit in hits if hit.relevance >= profile.min_relevance]
            if not drops_only or len(hits) >= wanted or size >= len(pool):
                break
            size *= 4
        if not drops_only and len(hits) < wanted and isinstance(profile.pool, str):
            hits = self._prolonged(hits, pool[size:], answers, profile, asked, steps, page)
        page.hits = renumbered(hits[offset:wanted], offset + 1)
        return page

    def _prolonged(
        self,
        hits: list[Hit],
        rest: Sequence[Candidate],
        answers: Answers,
        profile: Profile,
        asked: Asked,
        steps: Sequence[Reranker],
        page: Page,
    ) -> list[Hit]:
        """Behind what the rerankers saw, the fused order goes on: a pool that grows with the page is no last page."""
        more = self.hits(rest, answers, asked)
        if hits and more and more[0].score > hits[-1].score:
            last, down = hits[-1].score, more[0].score - hits[-1].score
            more = [_moved(hit, min(last, hit.score - down)) for hit in more]  # rounding may lift one above the last
        drops = [step for step in steps if step.name in DROPS_ONLY]
        both = self._reranked([*hits, *more], asked.query, drops, answers, page)
        return [hit for hit in both if hit.relevance >= profile.min_relevance]

    def _reranked(
        self, hits: list[Hit], query: Query, steps: Sequence[Reranker], answers: Answers, page: Page
    ) -> list[Hit]:
        """Through every reranker that the question concerns; what they have to say is written on the page."""
        tools, begun = self.lent(answers), time.perf_counter()
        for step in steps:
            deadline.check()
            done = step.apply(hits, query, tools)
            hits = done.hits
            page.said[step.name] = done
        page.rerank_ms += (time.perf_counter() - begun) * 1000
        return hits

    def lent(self, answers: Answers) -> Tools:
        """What the rerankers are lent for this question."""
        places = partial(_places, self._shelf, answers.shown) if hasattr(self._shelf, "places") else None
        return replace(self._tools, terms=self._shelf.analyzer.terms, order=answers.order, places=places)

    def hits(self, candidates: Sequence[Candidate], answers: Answers, asked: Asked) -> list[Hit]:
        """The one text fetch, for the survivors; in the snapshot that the filter was held to."""
        documents = self._shelf.fetch([int(candidate.key) for candidate in candidates])
        pids = answers.best_passages({candidate.key for candidate in candidates})
        spans = self._shelf.fetch_spans(list(pids.values()))
        # a successor that no leg found itself; and what was rewritten since it was ranked
        unseen = [int(item.key) for item in candidates if pids.get(item.key) not in spans]
        answers.rewritten = answers.rewritten or any(int(key) in documents for key in pids if pids[key] not in spans)
        begins = self._shelf.first_passages(unseen) if unseen else {}
        resolved = answers.resolved(list(documents))
        paths = self._paths(answers.rankings, documents, asked.scope)
        standing = standings(answers.rankings, answers.weights)
        hits: list[Hit] = []
        for candidate in candidates:
            key = candidate.key
            document = documents.get(int(key))
            if document is None:  # deleted since it was ranked
                continue
            answers.order[document.id] = self._order_of(int(key))
            pid = pids.get(key)
            span = begins.get(int(key)) if pid not in spans else spans[pid]
            if pid is not None and pid in spans:
                answers.shown[document.id] = pid
            hits.append(
                _hit(
                    len(hits) + 1,
                    document.id,
                    candidate.score,
                    probability(standing(answers.found_as.get(key, key))),
                    document,
                    passage_of(document, span),
                    candidate.score,
                    candidate.contributions,
                    (),
                    answers.stands_for.get(key, ()),
                    resolved.get(int(key), ()),
                    (),
                    paths.get(key, ()),
                )
            )
        return hits

    def around(self, hit: Hit, count: int, asked: Asked) -> tuple[Passage, ...]:
        """What stands before and after the hit, as far as the caller may see it."""
        size = self._shelf.config.get("passage_size")
        cutting = cut if size is None else lambda text: cut(text, size=size)
        return context_of(hit, count, cutting, self._shelf, asked.query.where, asked.exclude)

    def path(self, ranking: Ranking, key: Key, asked: Asked) -> tuple[str, ...]:
        """How a walk came to this document, in words."""
        with self._shelf.snapshot():
            scope = self._shelf.recheck(asked.query.where, asked.exclude)
            return self._paths([ranking], self._shelf.fetch([int(key)]), scope).get(key, ())

    def _paths(
        self, rankings: Sequence[Ranking], documents: Mapping[int, Document], scope: Scope | None
    ) -> dict[Key, tuple[str, ...]]:
        """How a walk came to these documents, in words: documents by their title, or else their id."""
        found = {
            key: path
            for ranking in rankings
            for key, path in zip(ranking.keys, ranking.paths, strict=False)
            if int(key) in documents and path[:1] != path[-1:]  # round to where it began is no explanation
        }
        passed = {int(did) for path in found.values() for did in path[::2]}
        known = {**documents, **self._shelf.fetch([did for did in passed if did not in documents])} if passed else {}
        if scope is not None:
            scope.expect(passed)
            known = {did: document for did, document in known.items() if did in scope}
        if lost := passed - known.keys():  # gone, or hidden by now: nothing is said of a way that leads through it
            found = {key: path for key, path in found.items() if lost.isdisjoint(map(int, path[::2]))}
        told = {did: known[did].title or known[did].id for did in passed & known.keys()}
        return {
            key: _once(told[int(step)] if at % 2 == 0 else str(step) for at, step in enumerate(path))
            for key, path in found.items()
        }


def _places(shelf: Any, shown: Mapping[str, int], ids: Sequence[str], terms: Collection[str]) -> dict[str, Places]:
    """What a store that keeps such a thing knows of the hits' passages; not of one that was rewritten meanwhile."""
    known = {shown[id]: id for id in ids if id in shown}
    found: Mapping[int, Places] = shelf.places(list(known), terms)
    return {known[pid]: places for pid, places in found.items()}


def _once(steps: Iterable[str]) -> tuple[str, ...]:
    """A concept and the document it is the title of are one step."""
    listed = tuple(steps)
    return tuple(step for at, step in enumerate(listed) if not at or step.casefold() != listed[at - 1].casefold())


def _moved(hit: Hit, score: float) -> Hit:
    note = Adjustment("page", hit.score, score, "behind what was reranked")
    return replace(hit, score=score, adjustments=(*hit.adjustments, note))
