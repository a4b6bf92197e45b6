"""Recorded searches: what the legs gave for the topics of a set, to judge fusions and rerankers without a store.

``record`` runs the legs once for each topic. ``fused`` then runs the fusion of the product over the record, with any
weights, so that a variant of the weighing or of a reranker is judged in seconds.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from trivet.evaluate import Lab
from trivet.evaluate.dataset import Dataset, Topic
from trivet.fusion import fuse
from trivet.fusion.weighing import Weighing
from trivet.profile import PROFILES, READER, Profile, with_reader
from trivet.rerank import Tools
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
    """One topic: the rankings of the default's legs, and every candidate as a hit."""

    topic: str
    query: Query
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


def careful(base: Profile = DEFAULT, **mixing: float) -> Profile:
    """Return the default profile, as given, with the reader: without a time limit, and with these weights."""
    found = with_reader(base)
    step = replace(READER, options={**READER.options, "budget_ms": 600_000.0, **mixing})
    return replace(found, rerankers=tuple(step if each == READER else each for each in found.rerankers))


@contextmanager
def kept_scores(lab: Lab, cache: str | None, name: str) -> Iterator[None]:
    """Keep what the reader returns for a set in a file beside the vectors.

    Reading takes most of the time, and several measurements read the same pairs. A key has the model's hash in it.
    """
    file = Path(cache or "build") / "reader" / f"{name}.pickle"
    known = lab.engine._shared.reader._scores
    if file.exists():
        known.update(pickle.loads(file.read_bytes()))
    yield
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(known))


def sampled(dataset: Dataset, most: int) -> Dataset:
    """Return the dataset with at most ``most`` topics, chosen by the hash of their ids."""
    placed = sorted(dataset.topics, key=lambda topic: blake2b(topic.id.encode(), digest_size=8).digest())
    return dataset.sample(topic.id for topic in placed[:most])


def record(lab: Lab) -> list[Recorded]:
    """Return what the legs find for each topic of the lab's dataset."""
    rankings = lab.rankings(LEGS)
    return [_recorded(lab, topic, rankings[topic.id]) for topic in lab.dataset.topics]


def _recorded(lab: Lab, topic: Topic, rankings: Sequence[Ranking]) -> Recorded:
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
