"""How is a test collection asked?

Two ways to the same answers. ``run`` is the shipped path: documents went in through ``add``, topics go through
``search``. ``rerun`` is for sweeps: the same ``Search``, with a memory for what each leg found and each document
fetched, so a leg is asked once per depth and only the fusion is done anew. A test holds the two to equal answers,
scores included.
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
from trivet.embedders import load_embedder
from trivet.errors import InputError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.vectors import CachedEmbedder, default_folder
from trivet.jobs import Job
from trivet.search import Search
from trivet.threads import Legs, Timed

if TYPE_CHECKING:
    from trivet.legs.question import Leg, Question
    from trivet.profile import Profile
    from trivet.rerank import Tools
    from trivet.types import Embedder, Hit, Query, Ranking, Scorer

#: What a long step is called, how far it is, and how far it goes (0: nobody knows).
Progress = Callable[[str, int, int], None]

PATIENCE_MS = 600_000.0  # for the first question, which may have to wait until an index is built
TIMED_EMBEDDINGS = 50  # questions embedded one by one, past every cache, to say what that takes
_BLANKS = count(1)  # how many, the next time that is measured


class Lab:
    """A test collection in a store, ready to be asked. A context manager; what ``fill`` made is gone at close."""

    def __init__(self, dataset: Dataset, engine: trivet.Engine, drop_self: bool = False) -> None:
        """``engine`` holds the documents already and stays the caller's; ``fill`` makes one from the dataset's own."""
        self.dataset, self.engine, self.drop_self = dataset, engine, drop_self
        self._filled = False
        self._made_with: dict[str, Any] = {}
        self._cached: CachedEmbedder | None = None
        self._memory: _Memory | None = None
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
        progress: Progress | None = None,
        scorer: str | Scorer | None = None,
    ) -> Lab:
        """Put the documents into a new store. ``embedder="none"`` leaves meaning out."""
        inner = load_embedder(embedder if embedder is not None else "builtin")
        cached = CachedEmbedder(inner, Path(cache) if cache else default_folder()) if inner is not None else None
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
        """The dataset's, with how it was put in and asked where that is not the usual way."""
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
        progress: Progress | None = None,
    ) -> Run:
        """What the product answers: every topic through ``search``."""
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
        progress: Progress | None = None,
    ) -> Run:
        """The same answers from what the legs found before; its times are not the product's and are left out."""
        asked = self.dataset.topics if topics is None else topics
        self._prepare(profile, asked)
        search = self._remembering()

        def answer(topic: Topic) -> Answer:
            at = topic.at or self._now
            found = search.run(topic.text, topic.where, profile, self._left_out(topic), None, 0, at, {})
            return replace(Answer.of(topic.id, found), ms=0.0)

        return _run(name or profile.name, asked, answer, progress, "fuse")

    def seen(self, profile: Profile, topic: Topic, count: int) -> tuple[Query, list[Hit], Tools]:
        """A topic as the first reranker sees it: the question, the best ``count`` fused hits, what is lent to it."""
        self._prepare(profile, [topic])
        at = topic.at or self._now
        return self._remembering().seen(topic.text, topic.where, profile, self._left_out(topic), at, count)

    def rankings(self, profile: Profile) -> dict[str, tuple[Ranking, ...]]:
        """Topic → what each leg of the profile says, before anything is made of it."""
        self._prepare(profile, self.dataset.topics)
        search = self._remembering()
        return {
            topic.id: search.rankings(topic.text, topic.where, profile, self._left_out(topic))
            for topic in self.dataset.topics
        }

    def _remembering(self) -> Search:
        """The engine's own spine, with a memory that lasts as long as the lab."""
        if self._memory is None:
            self._memory = _Memory(self.engine)
        return self._memory.search

    def embedding_ms(self) -> list[float]:
        """What embedding a question takes, asked of the model itself; empty without a model."""
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
        """Every question's vector and every leg's index: no search is slow, or out of time, because it was first."""
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
    name: str, topics: Sequence[Topic], answer: Callable[[Topic], Answer], progress: Progress | None, step: str
) -> Run:
    if not topics:
        raise InputError("topics: there is none to ask")
    answers: dict[str, Answer] = {}
    for number, topic in enumerate(topics, start=1):
        answers[topic.id] = answer(topic)
        if progress and (number % 16 == 0 or number == len(topics)):
            progress(step, number, len(topics))
    return Run(name, answers)


def _named(progress: Progress | None, step: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(step, done, total)


# --- the same search, with a memory ---------------------------------------------------------------------------------


class _Memory:
    """A spine over the same collection, none of whose readings is done twice."""

    def __init__(self, engine: trivet.Engine) -> None:
        self._legs = _Once()
        self.search: Search = engine.search_over(_Remembering, self._legs)

    def close(self) -> None:
        self._legs.close()


class _Once(Legs):
    """Legs asked in the caller's thread, and the same question only once."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[Any, Ranking] = {}

    def submit(self, leg: str, job: Job[Timed]) -> None:
        self.answer(leg, job)

    def rank(self, leg: Leg, question: Question, depth: int) -> Timed:
        # a scope is told by its identity: the shelf below makes one per filter and keeps it
        asked_for = (
            question.text,
            question.match,
            question.gate,
            question.seeds,
            question.exact,
            question.lenient,
            question.expansion,
        )
        key = (leg.name, id(question.scope), depth, *asked_for)
        if key not in self._answers:
            self._answers[key] = super().rank(leg, question, depth).ranking
        return Timed(self._answers[key], 0.0, 0.0)  # a leg that was late once would be left out for good


class _Remembering:
    """A shelf whose readings are kept. It stands for a store that nobody writes to meanwhile."""

    def __init__(self, shelf: Any) -> None:
        self._shelf = shelf
        self._state = shelf.state()
        self._documents: dict[int, Any] = {}
        self._spans: dict[int, Any] = {}
        self._scopes: dict[Any, Any] = {}
        self.analyzer = _Reading(shelf.analyzer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shelf, name)

    def state(self) -> Any:
        return self._state

    def scope(self, where: Any, exclude: Sequence[str], version: int) -> Any:
        key = (where, tuple(exclude))
        if key not in self._scopes:
            self._scopes[key] = self._shelf.scope(where, exclude, version)
        return self._scopes[key]

    def fetch(self, dids: Sequence[int]) -> dict[int, Any]:
        return _kept(self._documents, dids, self._shelf.fetch)

    def fetch_spans(self, pids: Sequence[int]) -> dict[int, Any]:
        return _kept(self._spans, pids, self._shelf.fetch_spans)


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
