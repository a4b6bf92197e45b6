"""Recorded searches: what the legs gave for the topics of a set, to judge fusions and rerankers without a store.

``record`` runs the legs once for each topic. ``fused`` and ``reranked`` then run the functions of the product over the
record, with any weights, so that a variant of the weighing or of the reranker is judged in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from trivet.evaluate import Lab
from trivet.evaluate.dataset import Dataset, Topic
from trivet.fusion import fuse
from trivet.fusion.weighing import WEIGHINGS, Weighing
from trivet.profile import PROFILES, Profile
from trivet.rerank import Tools, build
from trivet.rerank.reranker import Places
from trivet.text.analysis import Analyzer
from trivet.types import Hit, Query, Ranking

PLAIN = Profile(name="plain", fusion="convex", normalize="zscore", follow_links=False)  # lexical and dense at 0.5
DEFAULT = PROFILES["default"]
LEGS = DEFAULT.with_changes({"name": "legs", "rerankers": [], "weighing": "fixed", "follow_links": False})
EVERY = 1_000  # candidates: more than all legs list together

_ANALYZER = Analyzer("en")  # the language of every store that a lab fills


@dataclass(frozen=True, slots=True)
class Recorded:
    """One topic: its plain run, the rankings of the default's legs, and every candidate as a hit."""

    topic: str
    query: Query
    plain: tuple[str, ...]  # ids of the plain fusion, best first
    rankings: tuple[Ranking, ...]
    hits: Mapping[int, Hit]  # by the key of the rankings; without the scores of a fusion
    order: Mapping[str, int]
    places: Mapping[str, Places]
    judged: Mapping[str, int]

    @property
    def asked(self) -> Query:
        """The query with its analyser, which cannot be pickled."""
        return replace(self.query, terms=lambda text: _ANALYZER.query(text).terms)

    @property
    def tools(self) -> Tools:
        """What the search gave its rerankers."""
        return Tools(terms=_ANALYZER.terms, order=self.order, places=lambda ids, terms: self.places)


def sampled(dataset: Dataset, most: int) -> Dataset:
    """Return the dataset with at most ``most`` topics, chosen by the hash of their ids."""
    placed = sorted(dataset.topics, key=lambda topic: blake2b(topic.id.encode(), digest_size=8).digest())
    return dataset.sample(topic.id for topic in placed[:most])


def record(lab: Lab) -> list[Recorded]:
    """Return what the legs find for each topic of the lab's dataset."""
    plain, rankings = lab.rerun(PLAIN).answers, lab.rankings(LEGS)
    return [_recorded(lab, topic, plain[topic.id].ids, rankings[topic.id]) for topic in lab.dataset.topics]


def _recorded(lab: Lab, topic: Topic, plain: Sequence[str], rankings: Sequence[Ranking]) -> Recorded:
    query, hits, tools = lab.seen(LEGS, topic, EVERY)
    assert tools.terms is not None and tools.places is not None and query.terms is not None
    ranked = {(item.leg, item.rank): hit for hit in hits for item in hit.contributions}
    keyed = {
        key: replace(ranked[ranking.leg, rank], contributions=(), path=())
        for ranking in rankings
        for rank, key in enumerate(ranking.keys, start=1)
    }
    text = query.understood.text if query.understood is not None else query.text
    places = tools.places([hit.id for hit in hits], {*query.terms(text), *tools.terms(text)})
    return Recorded(
        topic.id,
        replace(query, terms=None, where=None),
        tuple(plain),
        tuple(replace(ranking, paths=()) for ranking in rankings),
        keyed,
        dict(tools.order),
        {id: (frozenset(title), dict(found)) for id, (title, found) in places.items()},
        dict(lab.dataset.qrels[topic.id]),
    )


def fused(item: Recorded, weighing: Weighing, weights: Mapping[str, float], count: int) -> list[Hit]:
    """Return the best ``count`` hits of the default's fusion with this weighing and these weights."""
    chosen = weighing(item.query.text, item.rankings, weights)
    found = fuse(DEFAULT.fusion, item.rankings, chosen, normalize=DEFAULT.normalize)[:count]
    return [
        replace(item.hits[int(one.key)], rank=rank, score=one.score, fused=one.score, contributions=one.contributions)
        for rank, one in enumerate(found, start=1)
    ]


def ranked(item: Recorded, profile: Profile) -> list[str]:
    """Return the ids that a profile with the default's legs ranks, best first: fusion and rerankers, no links."""
    steps = [build(step.name, step.options) for step in profile.rerankers]
    steps = [step for step in steps if step.concerns(item.asked)]
    count = max(profile.pool_size(profile.k), *(step.sees for step in steps), 1)
    hits = fused(item, WEIGHINGS[profile.weighing], profile.weights, count)
    for step in steps:
        hits = step.apply(hits, item.asked, item.tools).hits
    return [hit.id for hit in hits[: profile.k]]
