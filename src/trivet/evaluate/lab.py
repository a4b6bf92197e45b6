"""How is a test collection asked?

Two ways to the same answers. ``run`` is the shipped path: documents went in through ``add``, topics go through
``search``. ``rerun`` is for sweeps: the same ``Search``, with a memory for what each leg found and each document
fetched, so a leg is asked once per depth and only the fusion is done anew. A test holds the two to equal answers,
scores included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trivet
from trivet.embedders import load_embedder
from trivet.errors import InputError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.vectors import CachedEmbedder, default_folder
from trivet.search import Legs, Search

if TYPE_CHECKING:
    from trivet.legs.question import Leg, Question
    from trivet.profile import Profile
    from trivet.types import Embedder, Ranking

#: What a long step is called, how far it is, and how far it goes (0: nobody knows).
Progress = Callable[[str, int, int], None]

TIMED_EMBEDDINGS = 50  # questions embedded one by one, past every cache, to say what that takes


class Lab:
    """A test collection in a store, ready to be asked. A context manager; the store is gone at close."""

    def __init__(self, dataset: Dataset, engine: trivet.Engine, drop_self: bool = False) -> None:
        """``engine`` holds the documents already; ``fill`` makes one from the dataset's own."""
        self.dataset, self.engine, self.drop_self = dataset, engine, drop_self
        self._cached: CachedEmbedder | None = None
        self._memory: _Memory | None = None

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
    ) -> Lab:
        """Put the documents into a new store. ``embedder="none"`` leaves meaning out."""
        inner = load_embedder(embedder if embedder is not None else "builtin")
        cached = CachedEmbedder(inner, Path(cache) if cache else default_folder()) if inner is not None else None
        engine = trivet.open(
            ":memory:",
            embedder=cached if cached is not None else "none",
            language=language,
            passage_size=passage_size,
        )
        try:
            engine.add(list(dataset.documents), progress=_named(progress, "add"))
            if cached is not None:
                engine.wait(progress=_named(progress, "embed"))
        except BaseException:
            engine.close()
            raise
        lab = cls(dataset, engine, drop_self)
        lab._cached = cached
        return lab

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
        self._embed(profile, asked)

        def answer(topic: Topic) -> Answer:
            found = self.engine.search(
                topic.text, where=topic.where, profile=profile, at=topic.at, exclude=self._left_out(topic)
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
        self._embed(profile, asked)
        if self._memory is None:
            self._memory = _Memory(self.engine)
        search = self._memory.search

        def answer(topic: Topic) -> Answer:
            found = search.run(topic.text, topic.where, profile, self._left_out(topic), None, 0, topic.at, {})
            kept = Answer.of(topic.id, found)
            return Answer(kept.topic, kept.ids, kept.scores, kept.relevances, kept.legs, 0.0, kept.degraded)

        return _run(name or profile.name, asked, answer, progress, "fuse")

    def embedding_ms(self) -> list[float]:
        """What embedding a question takes, asked of the model itself; empty without a model."""
        if self._cached is None or not self.dataset.topics:
            return []
        inner, spent = self._cached.inner, []
        for number, topic in enumerate(self.dataset.topics[: TIMED_EMBEDDINGS + 3]):
            begun = time.perf_counter()
            # a blank more is another text to the model's own cache of queries and the same to the model
            inner.embed_queries([f"{topic.text} "])
            if number >= 3:
                spent.append((time.perf_counter() - begun) * 1000)
        return spent

    def _embed(self, profile: Profile, topics: Sequence[Topic]) -> None:
        """Every question's vector at once: it is read from the cache, and no search is slow because it was first."""
        if self._cached is not None and profile.weights["dense"] > 0:
            texts = [topic.text for topic in topics]
            for start in range(0, len(texts), 256):
                self._cached.embed_queries(texts[start : start + 256])

    def _left_out(self, topic: Topic) -> tuple[str, ...]:
        return (topic.id,) if self.drop_self else ()

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        if self._cached is not None:  # the store is the lab's own
            self._cached.close()
        self.engine.close()

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
        self._answers: dict[Any, Future[tuple[Ranking, float]]] = {}

    def submit(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        return self.answer(leg, question, depth)

    def answer(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        # a scope is told by its identity: the shelf below makes one per filter and keeps it
        key = (leg.name, question.text, question.match, question.gate, id(question.scope), depth)
        if key not in self._answers:
            self._answers[key] = super().answer(leg, question, depth)
        return self._answers[key]


class _Remembering:
    """A shelf whose readings are kept. It stands for a store that nobody writes to meanwhile."""

    def __init__(self, shelf: Any) -> None:
        self._shelf = shelf
        self._state = shelf.state()
        self._documents: dict[int, Any] = {}
        self._spans: dict[int, Any] = {}
        self._scopes: dict[Any, Any] = {}

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


def _kept(kept: dict[int, Any], wanted: Sequence[int], fetch: Callable[[list[int]], Any]) -> dict[int, Any]:
    if missing := [key for key in wanted if key not in kept]:
        kept.update(fetch(missing))
    return {key: kept[key] for key in wanted if key in kept}
