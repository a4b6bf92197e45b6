"""The spine: open, add, search.

This file alone knows the order: scope → legs → fusion → fetch → rerankers → hits. Everything else is a leaf with one
verb.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LegTimeout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet import intake, transfer
from trivet.analysis import Analyzer
from trivet.backlog import Backlog, embed, embed_few
from trivet.embedders import load_embedder
from trivet.errors import EmbedderError, InputError, ModelMismatchError, NotFoundError, StoreError, TrivetError
from trivet.filters import Filter, epoch, parse_filter
from trivet.fusion import fuse
from trivet.legs.dense import Dense
from trivet.legs.lexical import Lexical
from trivet.legs.question import Leg, Question
from trivet.legs.trigram import Trigram
from trivet.passages import cut
from trivet.profile import LEGS, PROFILES, Profile, named
from trivet.rerank import build
from trivet.stores.sqlite import records
from trivet.stores.sqlite.store import Model, Shelf, SqliteStore, State
from trivet.types import (
    Added,
    Candidate,
    Degraded,
    Document,
    Embedder,
    Explanation,
    Hit,
    LegVerdict,
    Link,
    Query,
    Ranking,
    Report,
    Results,
    Stage,
    Stats,
)

if TYPE_CHECKING:
    from trivet.types import Vector

Progress = Callable[[int, int], None]

BATCH_DOCUMENTS, BATCH_CHARACTERS = 1_000, 8_000_000  # one transaction of a bulk add
EMBED_AT_ONCE = (
    16  # passages: an add this small returns when its meaning is searchable too, a larger one goes to the backlog
)
TIDY_FROM, TIDY_EVERY = 1_000, 20_000  # passages added in one call
MAX_QUERY = 10_000  # characters; a question longer than this is a document
DROPS_ONLY = ("dedup",)  # rerankers that keep the order and the scores: a longer list only adds to what they leave
DEFAULT_COLLECTION = "default"


class Engine:
    """One collection of a store. Safe to use from many threads; use as a context manager or call ``close``."""

    def __init__(self, store: SqliteStore, shelf: Shelf, embedder: Embedder | str | None, shared: _Shared) -> None:
        self._store, self._shelf, self._shared = store, shelf, shared
        self._embedder, self._why_no_embedder = self._choose_embedder(embedder)
        self._embedders = {self._embedder.id: self._embedder} if self._embedder else {}
        self._backlog = Backlog(shelf, Path(f"{store.index_folder}") / f"embed-{shelf.cid}.lock")
        shared.backlogs.append(self._backlog)
        if self._embedder is not None and shelf.state().pending and not store.database.read_only:
            self._embed_in_background()

    # --- the model ----------------------------------------------------------------------------------------------------

    def _choose_embedder(self, asked: Embedder | str | None) -> tuple[Embedder | None, str]:
        """The embedder and, where there is none, why; a model other than the collection's is refused."""
        model = self._shelf.state().model
        if asked == "none":
            return None, "opened with embedder='none'"
        if model is None:
            if asked is None and self._shelf.config.get("words_only"):
                return None, "the collection was made with embedder='none'"
            embedder = load_embedder(asked if asked is not None else "builtin")
            if embedder is None:
                return None, "no embedder"
            if not self._store.database.read_only:
                self._shelf.add_model(embedder.id, embedder.spec, embedder.dim, answers=True)
            return embedder, ""
        try:
            embedder = load_embedder(asked if asked is not None else model.spec)
        except TrivetError as error:
            if asked is not None:
                raise
            return None, str(error)  # words still answer, and every search says what is missing
        if embedder is not None and embedder.id != model.id:
            raise ModelMismatchError(
                f"embedder: collection {self.name!r} holds vectors of {model.id!r}, not of {embedder.id!r}; open it "
                "without embedder= to go on with the old model, or change it with "
                f"`trivet reembed --store {self.path} --collection {self.name} --embedder {embedder.spec}`"
            )
        return embedder, ""

    def _embedder_of(self, model: Model | None) -> Embedder | None:
        """The embedder whose vectors these are: another process may have changed the model meanwhile."""
        if model is None or self._embedder is None:
            return None
        if model.id not in self._embedders:
            try:
                found = load_embedder(model.spec)
            except TrivetError as error:
                self._why_no_embedder = f"the collection was re-embedded with {model.id!r}: {error}"
                return None
            if found is None or found.id != model.id:
                self._why_no_embedder = f"the collection was re-embedded with {model.id!r}; open it again with that"
                return None
            self._embedders[model.id] = found
        return self._embedders[model.id]

    def _embed_in_background(self) -> None:
        model = self._shelf.state().model
        embedder = self._embedder_of(model)
        if embedder is not None and model is not None and not model.spec.startswith("vectors:"):
            self._backlog.start(embedder, model)

    @property
    def name(self) -> str:
        return self._shelf.name

    @property
    def path(self) -> str:
        return str(self._store.path)

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(
        self,
        documents: str | Mapping[str, Any] | Document | Iterable[str | Mapping[str, Any] | Document],
        *,
        progress: Progress | None = None,
        **fields: Any,
    ) -> Added:
        """Store one document, many, or an iterator of them; an id that exists is replaced.

        Durable and searchable by its words when it returns. A few passages are embedded before it returns, many in
        the background: ``wait`` blocks until they are done.
        """
        model = self._shelf.state().model
        dim = model.dim if model else None
        given = (intake.prepare(*item, self._cut, dim) for item in intake.documents(documents, fields))
        if isinstance(documents, Sequence):  # known as a whole: nothing is stored unless all of it can be
            given = (item for item in list(given))
        ids: list[str] = []
        counts = records.Written(0, 0, 0)
        duplicates = untidy = 0
        for batch in _batches(given):
            latest = {item.document.id: item for item in batch}
            duplicates += len(batch) - len(latest)
            counts += self._shelf.write(list(latest.values()), model.mid if model else None)
            ids += latest
            if progress:
                progress(len(ids), len(documents) if isinstance(documents, Sequence) else 0)
            if len(counts.pids) - untidy > TIDY_EVERY:  # in portions: who searches meanwhile waits for one at most
                self._shelf.tidy_words()
                untidy = len(counts.pids)
        if len(counts.pids) - untidy > TIDY_FROM:  # a bulk load pays for its own index, not the next search
            self._shelf.tidy()
        degraded = self._embed_new(counts.pids)
        pending = self._shelf.state().pending
        return Added(tuple(ids), counts.added, counts.updated, counts.unchanged, duplicates, pending, degraded)

    def _cut(self, text: str) -> list[Any]:
        size = self._shelf.config.get("passage_size")
        return cut(text) if size is None else cut(text, size=size)

    def _embed_new(self, pids: Sequence[int]) -> tuple[Degraded, ...]:
        model = self._shelf.state().model
        embedder = self._embedder_of(model)
        if model is None or embedder is None or model.spec.startswith("vectors:"):
            return ()
        if len(pids) > EMBED_AT_ONCE:
            self._embed_in_background()
            return ()
        try:
            embed_few(self._shelf, embedder, model, pids)
        except StoreError:
            raise
        except Exception as error:  # the document is stored; its meaning follows when the embedder answers again
            self._embed_in_background()
            return (Degraded("dense", str(error) or type(error).__name__),)
        return ()

    def wait(self, progress: Progress | None = None, timeout: float | None = None) -> None:
        """Block until every passage is embedded."""
        started, total = time.monotonic(), self._shelf.state().pending
        self._backlog.error = ""  # of the last attempt; this is a new one
        self._embed_in_background()
        while (pending := self._shelf.state().pending) and self._backlog.running:
            if self._backlog.error:
                raise EmbedderError(f"{pending:,} passages are not embedded: {self._backlog.error}")
            if timeout is not None and time.monotonic() - started > timeout:
                raise EmbedderError(
                    f"{pending:,} passages are still not embedded after {timeout:g} s; they go on in the background"
                )
            if progress:
                progress(max(0, total - pending), total)
            time.sleep(0.05)
        if progress and total:
            progress(total, total)

    def get(self, id: str) -> Document | None:
        """The document, or None."""
        found = self._shelf.dids([intake.check_id(id, "id")])
        return self._shelf.fetch(list(found.values())).get(found[id]) if found else None

    def documents(self, where: Any = None) -> Iterator[Document]:
        """Every document the filter allows, in the order they were first added."""
        return self._shelf.documents(self._parse(where))

    def delete(self, ids: str | Iterable[str] | None = None, *, where: Any = None) -> int:
        """Delete by id, by ids or by filter; returns how many there were."""
        if (ids is None) == (where is None):
            raise InputError("delete: give either ids or where=, not both and not neither")
        if where is not None:
            parsed = self._parse(where)
            if parsed is None:
                raise InputError("where: the filter is empty and would delete everything; use drop() for that")
            return self._shelf.remove(self._shelf.matching(parsed))
        wanted = [ids] if isinstance(ids, str) else list(ids or ())
        return self._shelf.remove(list(self._shelf.dids([intake.check_id(id, "id") for id in wanted]).values()))

    def link(self, source: str, target: str, type: str = "see-also", weight: float = 1.0) -> Link:
        """Connect two documents that exist."""
        link = intake.check_link(Link(source, target, type, weight))
        known = self._shelf.dids([source, target])
        for side, id in (("source", source), ("target", target)):
            if id not in known:
                raise NotFoundError(f"link {side}: there is no document {id!r} in collection {self.name!r}")
        self._shelf.link([link])
        return link

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        return self._shelf.unlink(source, target, type)

    def links(self, id: str | None = None) -> list[Link]:
        """The links from or to a document, or all of them."""
        return self._shelf.links_of(id)

    # --- searching ----------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        k: int | None = None,
        where: Any = None,
        profile: str | Profile | None = None,
        *,
        exclude: Iterable[str] = (),
        vector: Any = None,
        offset: int = 0,
        at: datetime | str | float | None = None,
        **overrides: Any,
    ) -> Results:
        """The best ``k`` documents, each with its explanation.

        ``profile`` is a name or a Profile (the collection's settings otherwise); any field of it can be overridden by
        keyword for this request: ``alpha=0.3``, ``fusion="rrf"``, ``rrf_k=5``, ``weights={"dense": 2}``,
        ``min_relevance=0.4``.
        """
        started = time.perf_counter()
        state = self._shelf.state()
        chosen = self._profile(state, profile, overrides if k is None else {**overrides, "k": k})
        asked = self._ask(state, query, where, _ids(exclude), vector, at, chosen)
        answers = self._answers(asked, chosen)
        fusing = time.perf_counter()
        answers.pool = self._fuse(answers, chosen)
        fetching = time.perf_counter()
        hits, reranked = self._page(answers, _offset(offset), asked.query, chosen)
        ended = time.perf_counter()
        trace = (
            *answers.stages,
            Stage("fusion", (fetching - fusing) * 1000, chosen.fusion),
            Stage("fetch", (ended - fetching) * 1000 - reranked),
            Stage("rerank", reranked, ", ".join(step.name for step in chosen.rerankers)),
            Stage("total", (ended - started) * 1000),
        )
        degraded = (*asked.degraded, *answers.degraded)
        return Results(query, tuple(hits), str(chosen), trace, degraded, len(answers.pool))

    def _profile(self, state: State, profile: str | Profile | None, overrides: Mapping[str, Any]) -> Profile:
        if profile is None:
            chosen = self._shared.settings(state.settings)
        elif isinstance(profile, str):
            chosen = named(profile)
        elif isinstance(profile, Profile):
            chosen = profile
        else:
            raise InputError(f"profile: {profile!r} is not a name or a Profile; known: {', '.join(PROFILES)}")
        return chosen.with_changes(overrides) if overrides else chosen

    def _ask(
        self, state: State, query: str, where: Any, exclude: tuple[str, ...], vector: Any, at: Any, profile: Profile
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
        parsed = parse_filter(where)
        scope = self._shelf.scope(parsed, [intake.check_id(id, "exclude") for id in exclude], state.version)
        given: Vector | None = None
        if vector is not None:
            if state.model is None:
                raise InputError(
                    "vector: the collection has no model; open it with embedder='vectors:DIM' to bring your own"
                )
            given = intake.vector_bytes(vector, state.model.dim, "vector")
        moment = datetime.fromtimestamp(epoch(at, "at"), UTC) if at is not None else datetime.now(UTC)
        legs, missing = self._legs(state, profile, given is not None, bool(text.strip()))
        questions = {
            leg.name: Question(text, state.version, scope, given, profile.match, profile.gates.get(leg.name))
            for leg in legs
        }
        return _Asked(Query(text, parsed, moment), legs, questions, (*degraded, *missing))

    def _legs(
        self, state: State, profile: Profile, has_vector: bool, has_text: bool
    ) -> tuple[list[Leg], list[Degraded]]:
        """The legs with a weight; what should take part and cannot is degraded."""
        legs: list[Leg] = []
        degraded: list[Degraded] = []
        weights, shelf = profile.weights, self._shelf
        if weights["lexical"] > 0 and has_text:
            legs.append(Lexical(shelf.analyzer.query, shelf))
        if weights["trigram"] > 0 and has_text:
            legs.append(Trigram(shelf.analyzer.keywords, shelf))
        if weights["dense"] > 0:
            embedder = self._embedder_of(state.model)
            if state.model is None or embedder is None:
                alone = "found by words alone: " if legs else ""
                degraded.append(Degraded("dense", f"{alone}{self._why_no_embedder}"))
            elif state.model.spec.startswith("vectors:") and not has_vector:
                degraded.append(Degraded("dense", "the caller brings the vectors of this collection, and gave none"))
            else:
                legs.append(Dense(embedder, state.model, shelf))
                if state.pending:
                    told = f"{state.pending:,} of {state.passages:,} passages are not embedded yet"
                    degraded.append(
                        Degraded("dense", f"{told} ({self._backlog.error})" if self._backlog.error else told)
                    )
        return legs, degraded

    def _answers(self, asked: _Asked, profile: Profile) -> _Answers:
        """Ask the legs at the same time; one that fails or is late is left out and named."""
        rankings: list[Ranking] = []
        stages: list[Stage] = []
        degraded: list[Degraded] = []
        started = time.perf_counter()
        running: list[tuple[Leg, Future[tuple[Ranking, float]]]] = [
            (leg, self._shared.submit(leg, asked.questions[leg.name], profile.depth(leg.name, profile.k)))
            for leg in asked.legs
        ]
        for leg, future in running:
            allowed = profile.timeouts[leg.name]
            try:
                ranking, ms = future.result(max(0.0, started + allowed / 1000 - time.perf_counter()))
            except LegTimeout:
                future.cancel()
                degraded.append(Degraded(leg.name, f"no answer within {allowed:g} ms"))
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

    def _fuse(self, answers: _Answers, profile: Profile) -> list[Candidate]:
        return fuse(profile.fusion, answers.rankings, profile.weights, rrf_k=profile.rrf_k, normalize=profile.normalize)

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
        hits: list[Hit] = []
        for candidate in candidates:
            document = documents.get(int(candidate.key))
            if document is None:  # deleted since it was ranked
                continue
            passage = records.passage_of(document, spans.get(pids[candidate.key]))
            relevance = answers.relevance(candidate, profile.weights)
            hits.append(
                Hit(
                    len(hits) + 1,
                    document.id,
                    candidate.score,
                    relevance,
                    document,
                    passage,
                    candidate.score,
                    candidate.contributions,
                )
            )
        return hits

    def explain(
        self, query: str, id: str, where: Any = None, profile: str | Profile | None = None, **options: Any
    ) -> Explanation:
        """Why is this document an answer, or why is it not? Every leg's rank and score for it, even far down."""
        found = self._shelf.dids([intake.check_id(id, "id")])
        if not found:
            raise NotFoundError(f"id: there is no document {id!r} in collection {self.name!r}")
        did = found[id]
        results = self.search(query, where=where, profile=profile, **options)
        hit = next((hit for hit in results.hits if hit.id == id), None)
        state = self._shelf.state()
        vector, exclude, at = options.pop("vector", None), _ids(options.pop("exclude", ())), options.pop("at", None)
        options.pop("offset", None)
        if options.get("k", 0) is None:
            del options["k"]
        chosen = self._profile(state, profile, options)
        asked = self._ask(state, query, where, exclude, vector, at, chosen)
        answers = self._answers(asked, chosen)
        verdicts = [self._verdict(leg, asked, answers, chosen, did) for leg in asked.legs]
        return Explanation(
            query,
            id,
            hit.rank if hit else None,
            tuple(verdicts),
            str(chosen),
            hit,
            self._reason(hit, did, asked, verdicts, chosen),
        )

    def _verdict(self, leg: Leg, asked: _Asked, answers: _Answers, profile: Profile, did: int) -> LegVerdict:
        depth, weight = profile.depth(leg.name, profile.k), profile.weights[leg.name]
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
        self, hit: Hit | None, did: int, asked: _Asked, verdicts: Sequence[LegVerdict], profile: Profile
    ) -> str:
        if hit is not None:
            return f"rank {hit.rank}"
        if any(question.scope is not None and did not in question.scope for question in asked.questions.values()):
            return "left out by the filter or the exclusion"
        if not any(verdict.rank for verdict in verdicts):
            return "no leg has it among its best"
        limit = f"the best {profile.k} above relevance {profile.min_relevance:g}"
        return f"found, but not among {limit} after fusion and reranking"

    def _parse(self, where: Any) -> Filter | None:
        parsed = parse_filter(where)
        if parsed is not None:
            self._shelf.check_fields(parsed)
        return parsed

    # --- settings and care --------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Profile:
        """The profile in force, as every process sees it now."""
        return self._shared.settings(self._shelf.state().settings)

    def update_settings(self, profile: str | Profile | None = None, **changes: Any) -> Profile:
        """Change the settings at once for every process: start from a profile, or from what is in force."""
        start = named(profile) if isinstance(profile, str) else profile

        def change(current: str) -> str:
            return (start or Profile.from_json(current)).with_changes(changes).to_json()

        return Profile.from_json(self._shelf.change_settings(change))

    def stats(self) -> Stats:
        state = self._shelf.state()
        return Stats(
            path=self.path,
            collection=self.name,
            documents=state.documents,
            passages=state.passages,
            embedded=state.model.vectors if state.model else 0,
            pending=state.pending,
            links=self._shelf.count("links"),
            model=state.model.id if state.model else None,
            language=self._shelf.analyzer.language,
            bytes_store=_size(self._store.path, Path(f"{self._store.path}-wal")),
            bytes_index=_size(*self._store.index_folder.rglob("*")),
            profile=str(self._shared.settings(state.settings)),
            fields=tuple(self._shelf.fields()),
            embed_error=self._backlog.error,
        )

    def reembed(self, embedder: str | Embedder, progress: Progress | None = None) -> int:
        """Embed everything with another model; the old one answers until the last passage is done."""
        new = load_embedder(embedder)
        if new is None:
            raise InputError(
                "embedder: 'none' embeds nothing; open the collection with embedder='none' to search by words alone"
            )
        model = self._shelf.add_model(new.id, new.spec, new.dim, answers=False)
        done = embed(self._shelf, new, model, progress)
        while self._shelf.unembedded(model.mid):  # written meanwhile
            done += embed(self._shelf, new, model, progress)
        self._embedder = self._embedders[new.id] = new  # before the change: a search looks it up by the model's id
        self._shelf.add_model(new.id, new.spec, new.dim, answers=True)
        self._backlog.close()  # before the old vectors go: it would make them again
        self._shelf.forget_other_models(model.mid)
        self._backlog = Backlog(self._shelf, self._store.index_folder / f"embed-{self._shelf.cid}.lock")
        self._shared.backlogs.append(self._backlog)
        return done

    def verify(self) -> Report:
        """Is the truth sound, and do the projections agree with it?"""
        problems = self._store.problems()
        problems += self._shelf.problems()
        state = self._shelf.state()
        words = self._shelf.words()
        words.catch_up(state.version)
        checked = {"documents": state.documents, "passages": state.passages, "words": words.size}
        if words.size != state.passages:
            problems.append(f"words: {words.size:,} passages indexed, {state.passages:,} stored; run rebuild")
        if state.model is not None:
            meaning = self._shelf.meaning(state.model)
            meaning.catch_up(state.version)
            checked["vectors"] = state.model.vectors
        return Report(tuple(problems), checked)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Throw the projections away and build them again from the truth."""
        self._shelf.discard_projections()
        self._shelf.tidy(progress)

    def export(self, target: str | Path, vectors: bool = False, progress: Progress | None = None) -> int:
        """Write the collection to a JSONL file; returns the number of documents."""
        return transfer.export(self._shelf, Path(target), vectors, progress)

    def lines(self, vectors: bool = False) -> Iterator[str]:
        """The same a line at a time, for a pipe."""
        return transfer.lines(self._shelf, vectors)

    def import_(self, source: str | Path, progress: Progress | None = None) -> Added:
        """Read a file that ``export`` wrote, or plain JSONL with one document a line."""
        return transfer.import_(self, Path(source), progress)

    # --- collections --------------------------------------------------------------------------------------------------

    def collection(
        self,
        name: str,
        *,
        embedder: str | Embedder | None = None,
        language: str | None = None,
        passage_size: int | None = None,
    ) -> Engine:
        """Another collection of the same file, with its own settings and model; made if it is new."""
        return _engine(self._store, name, embedder, language, passage_size, self._shared)

    def collections(self) -> list[str]:
        return self._store.names()

    def drop(self) -> None:
        """Delete this collection with everything in it."""
        self._backlog.close()
        self._store.drop(self.name)

    def close(self) -> None:
        """Let go of the file, for all collections opened from it. Everything that was added is in it."""
        self._shared.finalizer()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<trivet {self.path} collection={self.name!r}>"


class _Shared:
    """What the engines of one file have in common: threads, and the settings they have parsed."""

    def __init__(self, store: SqliteStore) -> None:
        # one pool a leg: an endpoint that hangs must not use up the threads the words are found with
        self._pools = {leg: ThreadPoolExecutor(max_workers=8, thread_name_prefix=f"trivet-{leg}") for leg in LEGS}
        self.backlogs: list[Backlog] = []
        self._parsed: dict[str, Profile] = {}
        # at close, when the last engine is forgotten, or at exit: a thread must not outlive the interpreter's modules
        self.finalizer = weakref.finalize(self, _shut, store, self.backlogs, self._pools)

    def submit(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        try:
            return self._pools[leg.name].submit(_timed, leg, question, depth)
        except RuntimeError:  # shut down between the first look at the store and here
            raise StoreError("store: it was closed while a search began; open it again with trivet.open") from None

    def settings(self, stored: str) -> Profile:
        found = self._parsed.get(stored)
        if found is None:  # the collections of a file differ: another thread may replace the one that is kept
            found = Profile.from_json(stored)
            self._parsed = {stored: found}
        return found


def _shut(store: SqliteStore, backlogs: list[Backlog], pools: Mapping[str, ThreadPoolExecutor]) -> None:
    for backlog in backlogs:
        backlog.close()
    for pool in pools.values():
        pool.shutdown(wait=True, cancel_futures=True)
    store.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    query: Query
    legs: list[Leg]
    questions: Mapping[str, Question]
    degraded: tuple[Degraded, ...]


@dataclass(slots=True)
class _Answers:
    rankings: list[Ranking]
    stages: list[Stage]
    degraded: list[Degraded]
    pool: Sequence[Candidate] = ()

    def best_passages(self, keys: set[Any]) -> dict[Any, int]:
        """The passage to show: that of the leg in which the document stands highest."""
        best: dict[Any, tuple[int, int]] = {}
        for ranking in self.rankings:
            for at, key in enumerate(ranking.keys):
                if key in keys and (key not in best or at < best[key][0]):
                    best[key] = (at, ranking.passages[at])
        return {key: pid for key, (_, pid) in best.items()}

    def relevance(self, candidate: Candidate, weights: Mapping[str, float]) -> float:
        """The weighted mean of the legs' absolute strengths, over the legs that answered."""
        by_leg = {ranking.leg: ranking for ranking in self.rankings}
        total = sum(weights[leg] for leg in by_leg)
        found = sum(weights[item.leg] * by_leg[item.leg].strength(item.raw) for item in candidate.contributions)
        return min(1.0, found / total) if total else 0.0


def _timed(leg: Leg, question: Question, depth: int) -> tuple[Ranking, float]:
    started = time.perf_counter()
    ranking = leg.rank(question, depth)
    return ranking, (time.perf_counter() - started) * 1000


def _batches(given: Iterator[records.Prepared]) -> Iterator[list[records.Prepared]]:
    batch: list[records.Prepared] = []
    size = 0
    for item in given:
        batch.append(item)
        size += len(item.document.text)
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _numbered(hits: Iterable[Hit], offset: int) -> list[Hit]:
    return [replace(hit, rank=rank) for rank, hit in enumerate(hits, start=offset + 1)]


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"offset: {value!r} is not a whole number from 0 up")
    return value


def _ids(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _size(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


def _engine(
    store: SqliteStore,
    name: str,
    embedder: str | Embedder | None,
    language: str | None,
    passage_size: int | None,
    shared: _Shared,
) -> Engine:
    intake.check_id(name, "collection")
    if language is not None:  # checked before the collection is made with it, for good
        language = Analyzer(language).language
    if passage_size is not None:
        intake.check_passage_size(passage_size)
    config = {"language": language, "passage_size": passage_size, "words_only": True if embedder == "none" else None}
    shelf = store.shelf(name, config, PROFILES["default"].to_json())
    return Engine(store, shelf, embedder, shared)


def open(
    path: str | Path,
    collection: str = DEFAULT_COLLECTION,
    *,
    embedder: str | Embedder | None = None,
    language: str | None = None,
    passage_size: int | None = None,
    create: bool = True,
) -> Engine:
    """Open a store, made if it is new (unless ``create`` is false): one file, words and meaning at once.

    ``embedder`` is needed only for a new collection that shall not use the built-in model: ``"none"``,
    ``"folder:/models/minilm"``, ``"http://127.0.0.1:11434/v1#nomic-embed-text"``, ``"vectors:768"`` or an object.
    ``":memory:"`` is a store that is gone at close.
    """
    if not create and collection not in (names := collections_in(path)):
        where = f"there are: {', '.join(names)}" if names else "there is no such store"
        raise NotFoundError(f"collection: {str(path)!r} has no {collection!r}; {where}")
    store = SqliteStore(str(path))
    try:
        return _engine(store, collection, embedder, language, passage_size, _Shared(store))
    except BaseException:
        store.close()
        raise


def collections_in(path: str | Path) -> list[str]:
    """The names in a store, without making or changing anything; none where there is no file."""
    if not Path(path).exists():
        return []
    store = SqliteStore(str(path))
    try:
        return store.names()
    finally:
        store.close()
