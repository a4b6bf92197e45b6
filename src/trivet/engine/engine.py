"""``Engine``: everything that a caller can do with one collection of a store."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack, cast

from trivet.engine import cursors, transfer, validation
from trivet.engine.ingest import Load, passages, redacted
from trivet.engine.languages import Languages
from trivet.engine.leg_threads import LegThreads
from trivet.engine.models import CollectionModels
from trivet.engine.pipeline import Pipeline
from trivet.engine.request import SearchRequest
from trivet.errors import EmbedderError, InputError, NotAllowedError, NotFoundError, StoreError, TakenError
from trivet.filters import TIME_FIELDS, Filter, In, both, check_binding, parse_filter
from trivet.models.scorers import load_scorer
from trivet.models.scorers.cached import CachedScorer
from trivet.models.scorers.reader import ReaderScorer
from trivet.profile import PROFILES, Overrides, Profile, named, with_reader
from trivet.rerank import Tools
from trivet.stores.contract import Collection, Prepared, Store, read_again
from trivet.stores.scoped import Scoped, allowed
from trivet.text.analysis import Analyzer
from trivet.types import (
    Added,
    Compacted,
    Degraded,
    Document,
    Embedder,
    Explanation,
    Facet,
    Feedback,
    Forgotten,
    Link,
    Page,
    Progress,
    Redundancy,
    Remembered,
    Report,
    Results,
    Saved,
    Scorer,
    SettingsChange,
    Stats,
    StepProgress,
    Table,
    Timeline,
)

if TYPE_CHECKING:
    from trivet.types import Vector


MOST_FACETS, MOST_VALUES = 60, 1_000  # metadata keys, and values of one
MOST_REDUNDANT = 1_000  # pairs and groups that are returned
COMPARED = 50_000  # documents whose texts are held in memory at once to find copies


class Engine:
    """One collection of a store. Thread-safe. Use it as a context manager or call ``close``."""

    def __init__(self, store: Store, collection: Collection, models: CollectionModels, shared: Shared) -> None:
        self._store, self._collection, self._models, self._shared = store, collection, models, shared
        self._pipeline = Pipeline(collection, models, shared.legs, shared.tools)
        self._languages = Languages(collection)

    def within(self, where: Any) -> Engine:
        """Return the same collection bound to a filter, for one tenant or one user.

        The filter is added to everything that is read. What is written must satisfy it: a field that it fixes
        (``tenant=alice``) is set where it is absent and refused where it differs. Nothing else can be seen, counted,
        changed or deleted, and calls on the whole collection (settings, backup, verify …) are refused.
        """
        given = parse_filter(where)
        bound = both(self.bound, None if given is None else check_binding(given))
        if given is None or bound is None:
            raise InputError("where: the filter is empty; name the fields this caller is bound to")
        scoped = cast(Collection, Scoped(self._models.collection, bound))
        return Engine(self._store, scoped, self._models, self._shared)

    @property
    def bound(self) -> Filter | None:
        """The filter that this engine is bound to, or None."""
        return self._collection.bound

    def _check_whole(self, action: str) -> None:
        """Refuse a call that concerns documents which a bound caller may not see."""
        if self.bound is not None:
            raise NotAllowedError(f"{action}: the caller is bound to a filter; use an engine or a key that is not")

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def path(self) -> str:
        """The path or address of the store, without a password."""
        return str(self._store.path)

    @property
    def url(self) -> str:
        """The address that opens the store again; do not show it, a server's may hold a password."""
        return self._store.url

    @property
    def language(self) -> str:
        """The language of its analyser."""
        return self._collection.analyzer.language

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(
        self,
        /,
        documents: str | Mapping[str, Any] | Document | Iterable[str | Mapping[str, Any] | Document] | Table,
        *,
        progress: Progress | None = None,
        redact: bool = False,
        **fields: Any,
    ) -> Added:
        """Add one document, many, or an iterator of them; a document whose id exists is replaced.

        When it returns, the documents are durable and found by their words. A few passages are embedded before it
        returns, many in the background; ``wait`` blocks until they are done.

        Args:
            documents: A text, a mapping, a ``Document``, an iterable of these, or a table of pandas, polars or pyarrow:
                columns with the name of a field are that field, all others metadata.
            progress: Called with the number of documents done and the total (0 if unknown).
            redact: Remove secrets such as keys and passwords first.
            **fields: Fields of a single document: ``id``, ``title``, ``kind``, ``meta``, ``links`` …
        """
        with self.loading() as load:
            added = load.add(documents, progress=progress, redact=redact, fields=fields)
            return replace(added, degraded=(*added.degraded, *load.finish()))

    def loading(self) -> Load:
        """Return a context manager for a load in pieces: ``load.add`` each one, ``load.finish`` at the end."""
        return Load(self._collection, self._models, lambda: bool(self.settings.weights["graph"]), self.bound)

    def remember(
        self,
        text: str,
        *,
        id: str | None = None,
        title: str = "",
        kind: str | None = None,
        meta: Mapping[str, Any] | None = None,
        importance: float | None = None,
        created: date | str | float | None = None,
        valid_from: date | str | float | None = None,
        valid_to: date | str | float | None = None,
        expires: date | timedelta | str | float | None = None,
        links: Iterable[Any] | None = (),
        redact: bool = False,
        where: Any = None,
        only_new: bool = False,
    ) -> Remembered:
        """Add a text, or reinforce the document that already says the same; return its id and similar documents.

        Two documents say the same if title and text are equal up to case, width and white space, with the same kind,
        metadata and validity, and neither is superseded. Near-duplicates are reported and never merged.

        Args:
            text: The text. The other fields are those of a document.
            id: An id of your own; a document of that id that says something else is replaced.
            expires: A time or a duration; a document that is reinforced keeps the later one.
            redact: Remove secrets first.
            where: Where to look for similar documents; by default those of the same tenant, user and project.
            only_new: Refuse an ``id`` that exists with another text instead of replacing it.
        """
        from trivet.memory import duplicates, remember  # their patterns take a tenth of a cold search to compile

        fields = {"text": text, "id": id, "title": title, "kind": kind, "meta": meta, "importance": importance}
        times = {"created": created, "valid_from": valid_from, "valid_to": valid_to, "expires": expires}
        linked = list(links) if isinstance(links, Iterable) and not isinstance(links, str | Mapping) else links
        ((document, checked, _),) = validation.documents({**fields, **times, "links": linked or None}, {}, self.bound)
        taken: Counter[str] = Counter()
        document = redacted(document, taken) if redact else document
        if where is not None:
            self._parse(where)  # checks it before anything is written
        model = self._collection.state().model

        def same(
            other: Document,
        ) -> bool:  # called within the transaction: the second of two callers finds the document of the first
            found = duplicates.same(document, other)
            if only_new and other.id == id and not found:
                raise TakenError(f"id: {id!r} exists and says something else; leave the id out, or change that one")
            return found

        stored, written = self._collection.documents.remember(
            validation.prepare(document, checked, None, self._cut, None),
            model.mid if model else None,
            same,
            remember.likely_duplicates(self._pipeline, self._collection, document),
            id is not None,
            lambda known: remember.reinforced(known, importance),
        )
        if written is None:
            return Remembered(stored, False, True, (), tuple(taken))
        degraded = self._models.embed_new(written.pids)
        known = [link.target for link in checked or ()]
        similar, missing = remember.similar(self._pipeline, self._collection, self._models, document, where, known)
        return Remembered(stored, True, False, similar, tuple(taken), tuple(dict.fromkeys((*degraded, *missing))))

    def patch(self, /, id: str, **fields: Any) -> Document:
        """Change some fields of a document and return it.

        Metadata is merged level by level, and None removes a key or a time. ``links`` replaces all links that go out
        from the document. Concurrent changes of different fields are both kept.

        Args:
            id: The document.
            **fields: text, title, kind, meta, importance, created, valid_from, valid_to, expires, links, vector;
                ``redact=True`` removes secrets.
        """
        redact = fields.pop("redact", False)
        model = self._collection.state().model

        def change(known: Document) -> Prepared:
            document, links, vector = validation.patched(known, fields)
            document = redacted(document, Counter()) if redact else document
            return validation.prepare(document, links, vector, self._cut, model.dim if model else None)

        written = self._collection.documents.amend(validation.check_id(id, "id"), model.mid if model else None, change)
        self._models.embed_new(written.pids)
        found = self.get(id)
        if found is None:
            raise NotFoundError(f"id: document {id!r} was deleted meanwhile")
        return found

    def touch(self, ids: str | Iterable[str]) -> int:
        """Count an access of each document, with its time; return how many there were.

        An id that does not exist is skipped: the document may have been deleted since it was found.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        checked = list(dict.fromkeys(validation.check_id(id, "id") for id in wanted))
        return self._collection.documents.touch(checked) if checked else 0

    def _cut(self, text: str) -> list[Any]:
        return passages(self._collection, text)

    def wait(self, progress: Progress | None = None, timeout: float | None = None, workers: int | str = 1) -> None:
        """Block until every passage is embedded; ``workers`` is a number of processes, or ``"ray"``."""
        if self.bound is not None:
            self._wait_bound(progress, timeout, workers)
            return
        if workers not in (1, "1"):
            self._models.embed_with(workers, progress)
        self._models.wait(progress, timeout)

    def _wait_bound(self, progress: Progress | None, timeout: float | None, workers: int | str) -> None:
        """Wait without showing numbers, which would be of all documents."""
        if progress is not None or workers not in (1, "1"):
            self._check_whole("wait with progress or workers")
        try:
            self._models.wait(None, timeout)
        except EmbedderError:
            raise EmbedderError("wait: some passages are not embedded yet; they follow in the background") from None

    def get(self, id: str, where: Any = None) -> Document | None:
        """Return a document by id; None if there is none that the filter allows."""
        parsed = self._parse(where)
        checked = validation.check_id(id, "id")

        def read() -> Document | None:
            with self._collection.snapshot():
                found = self._collection.documents.numbers([checked])
                return self._collection.documents.fetch(list(found.values())).get(found[checked]) if found else None

        document = read_again(read)
        return document if document is None or allowed(document, parsed) else None

    def documents(self, where: Any = None) -> Iterator[Document]:
        """Iterate over the documents that the filter allows, in the order in which they were first added."""
        return self._collection.documents.scan(self._parse(where))

    def page(self, where: Any = None, after: str | None = None, limit: int = 100) -> Page:
        """Return up to ``limit`` documents, in the order in which they were first added.

        ``after`` is the ``next`` of the page before. Whatever is written in between, no document comes twice and none
        that stays is skipped.
        """
        size = validation.check_limit(limit, validation.MAX_PAGE)
        found = self._collection.documents.page(self._parse(where), self._row(after), size + 1)
        following = self._cursor(found[size - 1][0]) if len(found) > size else None
        return Page(tuple(document for _, document in found[:size]), following)

    def _row(self, after: str | None) -> int:
        if self.bound is None or after is None:
            return validation.check_cursor(after)
        return cursors.row(after, self._store.cursor_key(), self.name)

    def _cursor(self, row: int) -> str:
        """Return a document number as a cursor; masked for a bound caller, as it shows how many documents there are."""
        return str(row) if self.bound is None else cursors.cursor(row, self._store.cursor_key(), self.name)

    def facets(self, where: Any = None, values: int = 10) -> list[Facet]:
        """Count the commonest values of the kind and of each metadata key, among what the filter allows."""
        return self._collection.documents.facets(
            self._parse(where), validation.check_limit(values, MOST_VALUES, "values"), MOST_FACETS
        )

    def timeline(self, where: Any = None, field: str = "created", step: str | None = None) -> Timeline:
        """Count documents by day, month or year of a time field; ``step`` is chosen if None."""
        column = validation.check_choice(field, "field", TIME_FIELDS)
        chosen = None if step is None else validation.check_choice(step, "step", ("day", "month", "year"))
        found, periods = self._collection.documents.timeline(self._parse(where), column, chosen)
        return Timeline(column, found, tuple(periods))

    def redundant(self, ids: Iterable[str] | None = None, where: Any = None) -> Redundancy:
        """Find superseded documents, with their successors, and groups of copies, among these ids or all documents."""
        from trivet.memory import duplicates

        wanted = None if ids is None else [validation.check_id(id, "id") for id in ids]
        parsed = self._parse(where)
        texts = self._collection.documents.texts(COMPARED, parsed)
        copies = duplicates.copies(texts)
        if wanted is not None:
            copies = [group for group in copies if not set(wanted).isdisjoint(group)]
        pairs = self._collection.links.superseded(wanted, MOST_REDUNDANT, parsed)
        return Redundancy(tuple(pairs), tuple(copies[:MOST_REDUNDANT]), len(texts))

    def standing(self, ids: Iterable[str] | None = None, where: Any = None) -> Redundancy:
        """Deprecated: use ``redundant``."""
        warnings.warn("Engine.standing is now Engine.redundant", DeprecationWarning, stacklevel=2)
        return self.redundant(ids, where)

    def delete(self, ids: str | Iterable[str] | None = None, *, where: Any = None) -> int:
        """Delete documents by id, ids or filter; return how many. Feedback stays, as the id may come back."""
        chosen = self._chosen("delete", ids, where)
        return 0 if chosen is None else len(self._collection.documents.remove(chosen))

    def forget(self, ids: str | Iterable[str] | None = None, *, where: Any = None, compact: bool = False) -> Forgotten:
        """Erase documents by id, ids or filter, with their links, accesses and feedback.

        They are not found any more when this returns. Their bytes may still be in free pages and old index files until
        ``compact`` has run; ``compact=True`` does that at once, and then they are in no file of the store.
        """
        if compact:
            self._check_whole("compact")
        chosen = self._chosen("forget", ids, where)
        count = 0 if chosen is None else len(self._collection.documents.remove(chosen, feedback=True))
        return Forgotten(count, self.compact() if compact else None)

    def sweep(self) -> int:
        """Erase expired documents now; return how many there were.

        They are hidden as soon as they expire, and a store erases them when it notices one; this is for a schedule.
        """
        self._check_whole("sweep")
        return len(self._collection.documents.sweep())

    def compact(self, progress: Progress | None = None) -> Compacted:
        """Erase deleted documents from every file of the store and give the space back.

        Expired documents are erased first. Vectors that an older trivet stored with 32 bits a number get 16. Searches
        go on; writers wait while the file is rewritten, which needs the space of two more copies for a moment.
        """
        self._check_whole("compact")
        self._collection.maintenance.check_locks()
        before = sum(self._store.sizes())
        expired = self.sweep()
        pruned = self._collection.maintenance.compact(progress)
        self._store.reclaim()
        return Compacted(before, sum(self._store.sizes()), pruned, expired)

    def _chosen(self, action: str, ids: str | Iterable[str] | None, where: Any) -> Filter | None:
        """Return ids or a filter as a filter; None for an empty list of ids."""
        if (ids is None) == (where is None):
            raise InputError(f"{action}: give either ids or a filter (where), and not both")
        if where is not None:
            parsed = self._parse(where)
            if parsed is None:
                raise InputError(
                    f"where: the filter is empty and would {action} everything; drop the collection to do that"
                )
            return parsed
        wanted = [ids] if isinstance(ids, str) else list(ids or ())
        named = tuple(validation.check_id(id, "id") for id in wanted)
        return In("id", named) if named else None

    def link(self, source: str, target: str, type: str = "see-also", weight: float = 1.0) -> Link:
        """Link two documents that exist; a ``supersedes`` link makes searches show the source instead of the target."""
        link = validation.check_link(Link(source, target, type, weight))
        self._collection.links.add([link])
        return link

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        """Remove the links from one document to another, of one type or of all; return how many there were."""
        return self._collection.links.remove(
            validation.check_id(source, "source"), validation.check_id(target, "target"), type
        )

    def links(self, id: str | None = None, where: Any = None) -> list[Link]:
        """Return the links from and to a document, or all links, between documents that the filter allows."""
        return self._collection.links.of(None if id is None else validation.check_id(id, "id"), self._parse(where))

    # --- feedback -----------------------------------------------------------------------------------------------------

    def feedback(self, query: str, id: str, good: bool = True) -> Feedback:
        """Record that a document was a good or a bad answer to a query; a later judgement replaces an earlier one.

        Give ``results.query`` and ``hit.id``.
        """
        given = validation.check_feedback(query, id, good)
        self._collection.feedback.add(given)
        return given

    def feedbacks(self, where: Any = None) -> list[Feedback]:
        """Return all feedback in order of time, also on documents that were deleted, since they may come back.

        With a filter, only the feedback on documents that it allows.
        """
        return self._collection.feedback.read(self._parse(where))

    def forget_feedback(self, query: str | None = None, id: str | None = None) -> int:
        """Delete the feedback on a query, on a document, or both; without either, all of it. Return how much it was."""
        checked = None if query is None else validation.check_query(query)
        return self._collection.feedback.remove(checked, None if id is None else validation.check_id(id, "id"))

    def restore_feedback(self, items: Iterable[Feedback | Mapping[str, Any]]) -> int:
        """Add feedback from elsewhere with its times; return how much of it was new.

        Feedback on an id that does not exist is kept, and a later judgement that is here already stays.
        """
        given = [validation.feedback(item, f"feedback {number}") for number, item in enumerate(items)]
        return self._collection.feedback.restore(given) if given else 0

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
        at: date | str | float | None = None,
        as_of: date | str | float | None = None,
        touch: bool = False,
        **overrides: Unpack[Overrides],
    ) -> Results:
        """Return the best ``k`` documents for a query, each with its explanation.

        Args:
            query: The query.
            k: How many hits; by default as many as the profile says.
            where: A filter: a mapping, text such as ``"kind=note, year>=2024"``, or a ``Filter``.
            profile: A name or a ``Profile``; by default the settings of the collection.
            exclude: Ids to leave out.
            vector: The vector of the query, if you have it.
            offset: Hits to skip, for the next page.
            at: The time of the query, for "last week" and for recency; by default now.
            as_of: Leave out what was not valid at that time (``valid_from`` to ``valid_to``).
            touch: Count the hits as accessed; otherwise a search changes nothing.
            **overrides: Fields of the profile for this search: ``alpha=0.3``, ``fusion="rrf"``, ``rrf_k=5``,
                ``weights={"dense": 2}``, ``min_relevance=0.4``; ``queries=[…]`` are other wordings of the query.
        """
        request = _request(query, k, where, profile, exclude, vector, offset, at, as_of, overrides)
        results = self._pipeline.search(request)
        if touch and results.hits:
            try:
                self._collection.documents.touch([hit.id for hit in results.hits])
            except StoreError as error:  # the hits are valid all the same
                return replace(results, degraded=(*results.degraded, Degraded("touch", str(error))))
        return results

    def explain(
        self, /, query: str, id: str, where: Any = None, profile: str | Profile | None = None, **options: Any
    ) -> Explanation:
        """Explain the rank of one document, or why it is no hit: every leg's rank and score for it, even far down.

        Takes the same options as ``search``.
        """
        names = ("k", "exclude", "vector", "offset", "at", "as_of")
        given: dict[str, Any] = {"exclude": ()} | {name: options.pop(name) for name in names if name in options}
        request = _request(query, given.pop("k", None), where, profile, overrides=options, **given)
        return self._pipeline.explain(request, id)

    def pipeline_over(self, view: Callable[[Collection], Any], threads: LegThreads) -> Pipeline:
        """Return a pipeline over ``view(collection)``: the evaluation lab caches what the legs and the store return."""
        return Pipeline(view(self._collection), self._models, threads, self._shared.tools)

    def _parse(self, where: Any) -> Filter | None:
        parsed = parse_filter(where)
        if parsed is not None:
            self._collection.filters.check_fields(parsed)
        return parsed

    def embed(self, texts: Iterable[str], *, queries: bool = False) -> Vector:
        """Return one vector for each text by the model of the collection: as of passages, or as of queries."""
        return self._models.vectors(list(texts), queries)

    # --- settings and care --------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Profile:
        """The settings of the collection, as every process sees them now."""
        return self._pipeline.settings(self._collection.state().settings)

    @property
    def careful(self) -> Profile:
        """The settings with the built-in reader, for callers that can wait: the profile ``careful``.

        A collection whose settings are another profile than the default keeps them.
        """
        return with_reader(self.settings)

    def update_settings(self, /, profile: str | Profile | None = None, *, by: str = "", **changes: Any) -> Profile:
        """Change the settings for every process, starting from a profile or from the current settings.

        ``by`` names who changes them, for the history.
        """
        self._check_whole("settings")
        start = named(profile) if isinstance(profile, str) else profile

        def change(current: str) -> str:
            return (start or Profile.from_json(current)).with_changes(changes).to_json()

        return Profile.from_json(self._collection.settings.change(change, validation.check_by(by)))

    def settings_history(self, limit: int = 50) -> list[SettingsChange]:
        """Return the last changes of the settings, the latest first."""
        self._check_whole("settings_history")
        rows = self._collection.settings.history(validation.check_limit(limit, validation.MAX_PAGE))
        return [
            SettingsChange(row.number, row.at, row.by, Profile.from_json(row.settings), _readable(row.previous))
            for row in rows
        ]

    def revert_settings(self, to: int | None = None, by: str = "") -> Profile:
        """Undo the last change of the settings, or go back to change number ``to`` (0: before the first change).

        This is a change too and can be undone.
        """
        if to is not None and (isinstance(to, bool) or not isinstance(to, int) or not 0 <= to < 2**63):
            raise InputError(f"to: {to!r} is not the number of a change; the history of the settings shows them")
        self._check_whole("settings")

        def change(_: str) -> str:  # within the transaction, so that the history is current
            latest = self._collection.settings.history(1)
            if to is None:
                settings = latest[0].previous if latest else None
            else:
                row = self._collection.settings.find(to or 1)
                settings = None if row is None else row.settings if to else row.previous
            if settings is None:
                reason = f"change {to} is not kept" if to is not None else "they were never changed"
                raise NotFoundError(f"settings: {reason}; the history of the settings shows what there is")
            return Profile.from_json(settings).to_json()

        return Profile.from_json(self._collection.settings.change(change, validation.check_by(by)))

    def stats(self) -> Stats:
        """Return counts, sizes, the model and the settings; of what a bound caller may see."""
        state, counts = self._collection.state(), self._collection.documents.counts()
        bytes_store, bytes_index = self._store.sizes() if self.bound is None else (0, 0)
        return Stats(
            path=self.path,
            collection=self.name,
            documents=counts.documents,
            passages=counts.passages,
            embedded=counts.embedded,
            pending=counts.passages - counts.embedded if state.model else 0,
            links=counts.links,
            model=state.model.id if state.model else None,
            language=self._collection.analyzer.language,
            bytes_store=bytes_store,
            bytes_index=bytes_index,
            profile=str(self._pipeline.settings(state.settings)),
            fields=tuple(self._collection.documents.fields()),
            embed_error=self._models.backlog.error if self.bound is None else "",
            scorer=self._shared.scorer.id if self._shared.scorer else None,
            advice=self._languages.advice(state.model),
        )

    def space(self) -> dict[str, int]:
        """Return what the bytes of the store are for, the largest part first; it reads the whole file."""
        self._check_whole("space")
        return dict(sorted(self._store.space().items(), key=lambda part: -part[1]))

    def reembed(self, embedder: str | Embedder, progress: Progress | None = None) -> int:
        """Embed every passage with another model; the old one is used until the last passage is done."""
        self._check_whole("reembed")
        return self._models.reembed(embedder, progress)

    def verify(self, progress: StepProgress | None = None) -> Report:
        """Check the records, and compare every index with them."""
        self._check_whole("verify")
        damaged = self._store.problems()
        try:
            problems, checked = self._collection.maintenance.verify(progress)
        except StoreError as error:  # an index reads the records, whose damage is known already
            if not damaged:
                raise
            problems, checked = [str(error)], {}
        return Report((*damaged, *problems), checked)

    def prepare(self, profile: str | Profile | None = None, progress: Progress | None = None) -> None:
        """Bring every index that a profile (or the settings) uses up to date now."""
        self._check_whole("prepare")
        chosen = self.settings if profile is None else named(profile) if isinstance(profile, str) else profile
        self._collection.maintenance.check_locks()
        self._collection.maintenance.update(progress, graph=bool(chosen.weights["graph"]))

    def rebuild(self, progress: Progress | None = None) -> None:
        """Delete the indexes and build them again from the records."""
        self._check_whole("rebuild")
        self._collection.maintenance.check_locks()
        self._collection.maintenance.discard()
        self.prepare(progress=progress)

    def backup(self, target: str | Path, progress: Progress | None = None) -> Saved:
        """Copy the whole store with all collections to a new file while others go on writing, and check the copy.

        It is the store as it was when the call began; ``trivet.restore`` puts it back.
        """
        self._check_whole("backup")
        return Saved(str(target), self._store.backup(Path(target), progress), tuple(self.collections()))

    def export(self, target: str | Path, vectors: bool = False, progress: Progress | None = None) -> int:
        """Write the collection to a JSONL file; return the number of documents."""
        return transfer.export(self._collection, Path(target), vectors, progress)

    def lines(self, vectors: bool = False) -> Iterator[str]:
        """Return the lines of an export, for a pipe."""
        return transfer.lines(self._collection, vectors)

    def import_(self, source: str | Path, progress: Progress | None = None) -> Added:
        """Add the documents of a file that ``export`` wrote, or of JSONL with one document a line."""
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
        """Open another collection of the same store, with its own settings and model; create it if it is new."""
        self._check_whole("collection")
        return open_collection(self._store, name, embedder, language, passage_size, self._shared)

    def collections(self) -> list[str]:
        """Return the names of the store's collections."""
        self._check_whole("collections")
        return self._store.names()

    def drop(self) -> None:
        """Delete this collection with everything in it."""
        self._check_whole("drop")
        self._models.close()
        self._store.drop(self.name)

    def close(self) -> None:
        """Close the store and all its collections. Everything that was added is in it."""
        self._shared.finalizer()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<trivet {self.path} collection={self.name!r}>"


def _request(
    query: str,
    k: int | None,
    where: Any,
    profile: str | Profile | None,
    exclude: Any,
    vector: Any = None,
    offset: int = 0,
    at: Any = None,
    as_of: Any = None,
    overrides: Mapping[str, Any] = MappingProxyType({}),
) -> SearchRequest:
    """Make a request of the arguments of ``search``; an iterator is read once here, since a search may start again."""
    changes = dict(overrides) if k is None else {**overrides, "k": k}
    queries = changes.pop("queries", None)
    exclude, queries = (tuple(item) if isinstance(item, Iterator) else item for item in (exclude, queries))
    return SearchRequest(query, where, profile, exclude, vector, offset, at, as_of, queries, changes)


class Shared:
    """What the engines of one store share, and how it is closed."""

    def __init__(self, store: Store, scorer: Scorer | str | None) -> None:
        found = load_scorer(scorer)
        self.legs = LegThreads()
        self.scorer = CachedScorer(found) if found is not None else None
        self.reader = CachedScorer(ReaderScorer())
        self.tools = Tools(self.scorer, self.reader)
        self.models: list[CollectionModels] = []
        # runs at close, when the last engine is collected, or at exit: threads must end before the interpreter does
        self.finalizer = weakref.finalize(self, _shut, store, self.models, self.legs, self.scorer, self.reader)


def _shut(store: Store, models: list[CollectionModels], legs: LegThreads, *scorers: CachedScorer | None) -> None:
    for each in models:
        each.close()
    legs.close()
    for scorer in scorers:
        if scorer is not None:
            scorer.close()
    store.close()


def _readable(settings: str) -> Profile | None:
    try:
        return Profile.from_json(settings)
    except InputError:
        return None


def open_collection(
    store: Store,
    name: str,
    embedder: str | Embedder | None,
    language: str | None,
    passage_size: int | None,
    shared: Shared,
    background: bool = True,
) -> Engine:
    validation.check_id(name, "collection")
    if language is not None:  # checked first: a collection keeps its language
        language = Analyzer(language).language
    if passage_size is not None:
        validation.check_passage_size(passage_size)
    config = {"language": language, "passage_size": passage_size, "words_only": True if embedder == "none" else None}
    collection = store.collection(name, config, PROFILES["default"].to_json())
    models = CollectionModels(collection, embedder, background)
    shared.models.append(models)
    return Engine(store, collection, models, shared)
