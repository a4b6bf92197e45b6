"""A lab: a test collection in a store, and two ways to search it with the same results.

``run`` is what the product does: documents were added with ``add``, topics go through ``search``. ``rerun`` is for
sweeps: the same pipeline over caches, so that a leg runs once for each depth and only the fusion is repeated. A test
compares the two, scores included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trivet
from trivet.cache_folder import cache_folder
from trivet.engine.leg_threads import Job, LegThreads, Timed
from trivet.engine.pipeline import Pipeline
from trivet.engine.request import SearchRequest
from trivet.errors import InputError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.vectors import CachedEmbedder
from trivet.models.embedders import load_embedder
from trivet.types import StepProgress

if TYPE_CHECKING:
    from trivet.legs.leg import Leg, LegQuery
    from trivet.profile import Profile
    from trivet.rerank import Tools
    from trivet.types import Embedder, Hit, Query, Ranking, Scorer


PATIENCE_MS = 600_000.0  # for the first topic, which may have to wait until an index is built
TIMED_EMBEDDINGS = 50  # topics embedded one by one, past every cache, to measure the time
_BLANKS = count(1)  # how many, the next time that is measured


class Lab:
    """A test collection in a store. A context manager; a store that ``fill`` made is deleted at close."""

    def __init__(self, dataset: Dataset, engine: trivet.Engine, drop_self: bool = False) -> None:
        """``engine`` has the documents and is not closed here; ``fill`` makes one from the documents of the dataset."""
        self.dataset, self.engine, self.drop_self = dataset, engine, drop_self
        self._filled = False
        self._made_with: dict[str, Any] = {}
        self._cached: CachedEmbedder | None = None
        self._memory: _CachedPipeline | None = None
        self._ready: set[str] = set()  # legs whose index is built
        # one moment for every topic that has none of its own, or the freshness of a document would differ by run
        self._now = datetime.now(UTC).isoformat()

    @classmethod
    def fill(
        cls,
        dataset: Dataset,
        *,
        embedder: str | Embedder | None = None,
        cache: str | Path | None = None,
        language: str | None = None,
        passage_size: int | None = None,
        drop_self: bool = False,
        progress: StepProgress | None = None,
        scorer: str | Scorer | None = None,
    ) -> Lab:
        """Add the documents to a new store; ``embedder="none"`` leaves the dense leg out."""
        inner = load_embedder(embedder if embedder is not None else "builtin")
        cached = CachedEmbedder(inner, Path(cache) if cache else cache_folder()) if inner is not None else None
        engine: trivet.Engine | None = None
        try:
            engine = trivet.open(
                ":memory:",
                embedder=cached if cached is not None else "none",
                language=language,
                passage_size=passage_size,
                scorer=scorer,
            )
            engine.add(list(dataset.documents), progress=_named(progress, "add"))
            if cached is not None:
                engine.wait(progress=_named(progress, "embed"))
        except BaseException:
            if engine is not None:
                engine.close()
            if cached is not None:
                cached.close()
            raise
        lab = cls(dataset, engine, drop_self)
        lab._filled, lab._cached = True, cached
        lab._made_with = {"language": language, "passage_size": passage_size}
        return lab

    @property
    def identity(self) -> str:
        """The identity of the dataset, with every option that is not the default."""
        ways = [f"{name}={value}" for name, value in self._made_with.items() if value is not None]
        return "~".join([self.dataset.identity, *ways, *(["drop_self"] if self.drop_self else [])])

    @property
    def model(self) -> str | None:
        return self.engine.stats().model

    def run(
        self,
        profile: Profile,
        topics: Sequence[Topic] | None = None,
        *,
        name: str | None = None,
        progress: StepProgress | None = None,
    ) -> Run:
        """Run every topic through ``search``."""
        asked = self.dataset.topics if topics is None else topics
        self._prepare(profile, asked)

        def answer(topic: Topic) -> Answer:
            found = self.engine.search(
                topic.text, where=topic.where, profile=profile, at=topic.at or self._now, exclude=self._left_out(topic)
            )
            return Answer.of(topic.id, found)

        return _run(name or profile.name, asked, answer, progress, "ask")

    def rerun(
        self,
        profile: Profile,
        topics: Sequence[Topic] | None = None,
        *,
        name: str | None = None,
        progress: StepProgress | None = None,
    ) -> Run:
        """Return the same run from cached rankings; its times are not the product's and are left out."""
        asked = self.dataset.topics if topics is None else topics
        self._prepare(profile, asked)
        pipeline = self._cached_pipeline()

        def answer(topic: Topic) -> Answer:
            at = topic.at or self._now
            found = pipeline.search(SearchRequest(topic.text, topic.where, profile, self._left_out(topic), at=at))
            return replace(Answer.of(topic.id, found), ms=0.0)

        return _run(name or profile.name, asked, answer, progress, "fuse")

    def seen(self, profile: Profile, topic: Topic, count: int) -> tuple[Query, list[Hit], Tools]:
        """Return what the first reranker gets for a topic: the query, the best ``count`` fused hits, and its tools."""
        self._prepare(profile, [topic])
        at = topic.at or self._now
        request = SearchRequest(topic.text, topic.where, profile, self._left_out(topic), at=at)
        return self._cached_pipeline().before_reranking(request, count)

    def rankings(self, profile: Profile) -> dict[str, tuple[Ranking, ...]]:
        """Map topics to the rankings of the legs, before fusion."""
        self._prepare(profile, self.dataset.topics)
        pipeline = self._cached_pipeline()
        return {
            topic.id: pipeline.rankings(SearchRequest(topic.text, topic.where, profile, self._left_out(topic)))
            for topic in self.dataset.topics
        }

    def _cached_pipeline(self) -> Pipeline:
        """Return the engine's own pipeline, with caches that last as long as the lab."""
        if self._memory is None:
            self._memory = _CachedPipeline(self.engine)
        return self._memory.pipeline

    def embedding_ms(self) -> list[float]:
        """Measure the milliseconds that embedding a query takes; empty without a model."""
        if self._cached is None or not self.dataset.topics:
            return []
        inner, spent = self._cached.inner, []
        # blanks more make another text for the model's own cache of queries, and the same for the model
        blanks = " " * next(_BLANKS)
        for number, topic in enumerate(self.dataset.topics[: TIMED_EMBEDDINGS + 3]):
            begun = time.perf_counter()
            inner.embed_queries([f"{topic.text}{blanks}"])
            if number >= 3:
                spent.append((time.perf_counter() - begun) * 1000)
        return spent

    def _prepare(self, profile: Profile, topics: Sequence[Topic]) -> None:
        """Embed every query and build every index, so that no search is slow because it is the first."""
        if self._cached is not None and profile.weights["dense"] > 0:
            texts = [topic.text for topic in topics]
            for start in range(0, len(texts), 256):
                self._cached.embed_queries(texts[start : start + 256])
        legs = {leg for leg, weight in profile.weights.items() if weight > 0}
        if topics and not legs <= self._ready:
            self.engine.prepare(profile)
            patient = replace(profile, timeouts=dict.fromkeys(legs, PATIENCE_MS))
            self.engine.search(topics[0].text, where=topics[0].where, profile=patient)
            self._ready |= legs

    def _left_out(self, topic: Topic) -> tuple[str, ...]:
        return (topic.id,) if self.drop_self else ()

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        if self._filled:  # the store is the lab's own
            self.engine.close()
        if self._cached is not None:
            self._cached.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _run(
    name: str, topics: Sequence[Topic], answer: Callable[[Topic], Answer], progress: StepProgress | None, step: str
) -> Run:
    if not topics:
        raise InputError("topics: there is none to ask")
    answers: dict[str, Answer] = {}
    for number, topic in enumerate(topics, start=1):
        answers[topic.id] = answer(topic)
        if progress and (number % 16 == 0 or number == len(topics)):
            progress(step, number, len(topics))
    return Run(name, answers)


def _named(progress: StepProgress | None, step: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(step, done, total)


# --- the same search, with caches ------------------------------------------------------------------------------------


class _CachedPipeline:
    """The engine's pipeline over caches: no leg runs and no document is read twice."""

    def __init__(self, engine: trivet.Engine) -> None:
        self._threads = _CachedLegs()
        self.pipeline: Pipeline = engine.pipeline_over(_CachedCollection, self._threads)

    def close(self) -> None:
        self._threads.close()


class _CachedLegs(LegThreads):
    """Legs that run in the caller's thread, each query once."""

    def __init__(self) -> None:
        super().__init__()
        self._rankings: dict[Any, Ranking] = {}

    def submit(self, leg: str, job: Job[Timed]) -> None:
        self.answer(leg, job)

    def rank(self, leg: Leg, query: LegQuery, depth: int) -> Timed:
        # a scope is told by its identity: the cached collection makes one for each filter and keeps it
        key = (leg.name, depth, id(query.scope), replace(query, scope=None, vector=None))
        if key not in self._rankings:
            self._rankings[key] = super().rank(leg, query, depth).ranking
        return Timed(self._rankings[key], 0.0, 0.0)  # no time: a leg that was late once would be left out for good


class _CachedCollection:
    """A collection whose reads are cached, for a store that nobody writes to meanwhile."""

    def __init__(self, collection: Any) -> None:
        self._collection = collection
        self._state = collection.state()
        self.documents = _CachedDocuments(collection.documents)
        self.filters = _CachedFilters(collection.filters)
        self.analyzer = _Reading(collection.analyzer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)

    def state(self) -> Any:
        return self._state


class _CachedFilters:
    def __init__(self, filters: Any) -> None:
        self._filters = filters
        self._scopes: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filters, name)

    def scope(self, where: Any, exclude: Sequence[str], version: int) -> Any:
        key = (where, tuple(exclude))
        if key not in self._scopes:
            self._scopes[key] = self._filters.scope(where, exclude, version)
        return self._scopes[key]


class _CachedDocuments:
    def __init__(self, documents: Any) -> None:
        self._documents = documents
        self._read: dict[int, Any] = {}
        self._spans: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._documents, name)

    def fetch(self, dids: Sequence[int]) -> dict[int, Any]:
        return _kept(self._read, dids, self._documents.fetch)

    def spans(self, pids: Sequence[int]) -> dict[int, Any]:
        return _kept(self._spans, pids, self._documents.spans)


class _Reading:
    """An analyser that reads no passage twice."""

    def __init__(self, analyzer: Any) -> None:
        self._analyzer = analyzer
        self._read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._analyzer, name)

    def terms(self, text: str) -> Any:
        if text not in self._read:
            self._read[text] = self._analyzer.terms(text)
        return self._read[text]


def _kept(kept: dict[int, Any], wanted: Sequence[int], fetch: Callable[[list[int]], Any]) -> dict[int, Any]:
    if missing := [key for key in wanted if key not in kept]:
        kept.update(fetch(missing))
    return {key: kept[key] for key in wanted if key in kept}
