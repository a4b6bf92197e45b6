"""What can a caller do with a collection?

``Engine`` is one collection of a store: write, ask, set, care. How a question is answered is ``search.py``.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from trivet import cursors, intake, transfer
from trivet.analysis import Analyzer
from trivet.errors import EmbedderError, InputError, NotAllowedError, NotFoundError, StoreError, TakenError
from trivet.filters import TIME_FIELDS, Filter, In, both, check_binding, parse_filter
from trivet.loading import Load, passages, redacted
from trivet.memory import likeness, remembering
from trivet.models import Models
from trivet.profile import PROFILES, Profile, named
from trivet.rerank import Tools
from trivet.scorers import load_scorer
from trivet.scorers.panel import Panel
from trivet.search import Search
from trivet.stores import is_server, is_there, names_in, open_store, restore_store
from trivet.stores.contract import Copying, Locking, Prepared, Shelf, Steps, Store, read_again
from trivet.stores.scoped import Scoped, allowed
from trivet.threads import Legs
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
    Remembered,
    Report,
    Restored,
    Results,
    Saved,
    Scorer,
    SettingsChange,
    Standing,
    Stats,
    Timeline,
)

Progress = Callable[[int, int], None]

DEFAULT_COLLECTION = "default"
MOST_FACETS, MOST_VALUES = 60, 1_000
MOST_STANDING, COPIES_AMONG = 1_000, 50_000  # pairs told; documents whose texts are held at once to find copies


class Engine:
    """One collection of a store. Safe to use from many threads; use as a context manager or call ``close``."""

    def __init__(self, store: Store, shelf: Shelf, models: Models, shared: _Shared) -> None:
        self._store, self._shelf, self._models, self._shared = store, shelf, models, shared
        self._search = Search(shelf, models, shared.legs, shared.tools)

    def within(self, where: Any) -> Engine:
        """Return the same collection bound to a filter: for one tenant, or one user.

        The filter is added to everything that is read. What is written must satisfy it: a field that it fixes
        (``tenant=alice``) is set where it is absent and refused where it differs. Nothing outside can be seen, counted,
        changed or deleted; what concerns the whole collection (settings, backup, verify …) is refused.
        """
        given = parse_filter(where)
        bound = both(self.bound, None if given is None else check_binding(given))
        if given is None or bound is None:
            raise InputError("where: the filter is empty; name the fields this caller is bound to")
        whole = self._shelf.whole if isinstance(self._shelf, Scoped) else self._shelf
        return Engine(self._store, cast(Shelf, Scoped(whole, bound)), self._models, self._shared)

    @property
    def bound(self) -> Filter | None:
        """The filter that this engine is bound to; None: it is not."""
        return self._shelf.within if isinstance(self._shelf, Scoped) else None

    def _check_whole(self, action: str) -> None:
        """Refuse what concerns documents that a bound caller may not see."""
        if self.bound is not None:
            raise NotAllowedError(f"{action}: this caller is bound to some of the documents; ask without that filter")

    @property
    def name(self) -> str:
        return self._shelf.name

    @property
    def path(self) -> str:
        return str(self._store.path)

    @property
    def url(self) -> str:
        """What opens its store again; of a server it may hold a password, so it is not for showing."""
        return self._store.url

    @property
    def language(self) -> str:
        """Whose words its analyser knows."""
        return self._shelf.analyzer.language

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(
        self,
        documents: str | Mapping[str, Any] | Document | Iterable[str | Mapping[str, Any] | Document],
        *,
        progress: Progress | None = None,
        redact: bool = False,
        **fields: Any,
    ) -> Added:
        """Store one document, many, or an iterator of them; an id that exists is replaced; ``redact``: without secrets.

        Durable and searchable by its words when it returns. A few passages are embedded before it returns, many in
        the background: ``wait`` blocks until they are done.
        """
        with self.loading() as load:
            added = load.add(documents, progress=progress, redact=redact, fields=fields)
            return replace(added, degraded=(*added.degraded, *load.finish()))

    def loading(self) -> Load:
        """For a load in many pieces: ``load.add`` each of them, ``load.finish`` at the end; a context manager."""
        return Load(self._shelf, self._models, lambda: bool(self.settings.weights["graph"]), self.bound)

    def remember(
        self,
        text: str,
        *,
        id: str | None = None,
        title: str = "",
        kind: str | None = None,
        meta: Mapping[str, Any] | None = None,
        importance: float | None = None,
        created: datetime | str | float | None = None,
        valid_from: datetime | str | float | None = None,
        valid_to: datetime | str | float | None = None,
        expires: datetime | timedelta | str | float | None = None,
        links: Iterable[Any] | None = (),
        redact: bool = False,
        where: Any = None,
        only_new: bool = False,
    ) -> Remembered:
        """Store a text, unless it is remembered already: then that document is reinforced, and its id returned.

        The same is: the same title and text up to case, width and white space, of the same kind, with the same
        metadata and validity, and not superseded. What says nearly the same is reported and never merged; ``where``
        says among which documents it is looked for (without it: those of the same tenant, user and project). An ``id``
        that exists is replaced, as by ``add``, or refused where it has to be ``only_new``. What is remembered again
        ``expires`` when the later of both says.
        """
        fields = {"text": text, "id": id, "title": title, "kind": kind, "meta": meta, "importance": importance}
        times = {"created": created, "valid_from": valid_from, "valid_to": valid_to, "expires": expires}
        linked = list(links) if isinstance(links, Iterable) and not isinstance(links, str | Mapping) else links
        ((document, checked, _),) = intake.documents({**fields, **times, "links": linked or None}, {}, self.bound)
        taken: Counter[str] = Counter()
        document = redacted(document, taken) if redact else document
        if where is not None:
            self._parse(where)  # refused before anything is written
        model = self._shelf.state().model

        def same(other: Document) -> bool:  # within the transaction: who comes second finds the first one's
            found = likeness.same(document, other)
            if only_new and other.id == id and not found:
                raise TakenError(f"id: {id!r} exists and says something else; leave the id out, or change that one")
            return found

        stored, written = self._shelf.remember(
            intake.prepare(document, checked, None, self._cut, None),
            model.mid if model else None,
            same,
            remembering.likely_twins(self._search, self._shelf, document),
            id is not None,
            lambda known: remembering.reinforced(known, importance),
        )
        if written is None:
            return Remembered(stored, False, True, (), tuple(taken))
        degraded = self._models.embed_new(written.pids)
        known = [link.target for link in checked or ()]
        similar, missing = remembering.similar(self._search, self._shelf, self._models, document, where, known)
        return Remembered(stored, True, False, similar, tuple(taken), tuple(dict.fromkeys((*degraded, *missing))))

    def patch(self, id: str, **fields: Any) -> Document:
        """Change some fields of a document and leave the others: text, title, kind, meta, importance, created,
        valid_from, valid_to, expires, links (all that go out from it), vector. Metadata is merged, level by level; None
        takes a key or a bound away. Two who change different fields at once both do. ``redact``: without secrets."""
        redact = fields.pop("redact", False)
        model = self._shelf.state().model

        def change(known: Document) -> Prepared:
            document, links, vector = intake.patched(known, fields)
            document = redacted(document, Counter()) if redact else document
            return intake.prepare(document, links, vector, self._cut, model.dim if model else None)

        written = self._shelf.amend(intake.check_id(id, "id"), model.mid if model else None, change)
        self._models.embed_new(written.pids)
        found = self.get(id)
        if found is None:
            raise NotFoundError(f"id: document {id!r} was deleted meanwhile")
        return found

    def touch(self, ids: str | Iterable[str]) -> int:
        """Say that documents were recalled: counts an access of each, with its time. Returns how many there were.

        An id that is not here is passed over: what was recalled a moment ago may be gone.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        checked = list(dict.fromkeys(intake.check_id(id, "id") for id in wanted))
        return self._shelf.touch(checked) if checked else 0

    def _cut(self, text: str) -> list[Any]:
        return passages(self._shelf, text)

    def wait(self, progress: Progress | None = None, timeout: float | None = None, workers: int | str = 1) -> None:
        """Block until every passage is embedded; by several processes, where ``workers`` says so, or a Ray cluster."""
        if self.bound is not None:
            self._wait_bound(progress, timeout, workers)
            return
        if workers not in (1, "1"):
            self._models.embed_with(workers, progress)
        self._models.wait(progress, timeout)

    def _wait_bound(self, progress: Progress | None, timeout: float | None, workers: int | str) -> None:
        """The same without a number: how much there is to embed is of all documents."""
        if progress is not None or workers not in (1, "1"):
            self._check_whole("wait with progress or workers")
        try:
            self._models.wait(None, timeout)
        except EmbedderError:
            told = "some passages are not embedded yet; they follow in the background"
            raise EmbedderError(f"wait: {told}") from None

    def get(self, id: str, where: Any = None) -> Document | None:
        """The document, or None where there is none that the filter allows."""
        parsed = self._parse(where)
        checked = intake.check_id(id, "id")

        def read() -> Document | None:
            with self._shelf.snapshot():
                found = self._shelf.dids([checked])
                return self._shelf.fetch(list(found.values())).get(found[checked]) if found else None

        document = read_again(read)
        return document if document is None or allowed(document, parsed) else None

    def documents(self, where: Any = None) -> Iterator[Document]:
        """Every document the filter allows, in the order they were first added."""
        return self._shelf.documents(self._parse(where))

    def page(self, where: Any = None, after: str | None = None, limit: int = 100) -> Page:
        """Up to ``limit`` documents the filter allows, in the order they were first added; ``after`` is the ``next`` of
        the page before. Whatever is written in between, none comes twice and none that stays is skipped."""
        size = intake.check_limit(limit, intake.MAX_PAGE)
        found = self._shelf.page(self._parse(where), self._row(after), size + 1)
        following = self._cursor(found[size - 1][0]) if len(found) > size else None
        return Page(tuple(document for _, document in found[:size]), following)

    def _row(self, after: str | None) -> int:
        if self.bound is None or after is None:
            return intake.check_cursor(after)
        return cursors.row(after, self._store.cursor_key(), self.name)

    def _cursor(self, row: int) -> str:
        """A row number as it is told: to a bound caller it would say how many documents there are in all."""
        return str(row) if self.bound is None else cursors.cursor(row, self._store.cursor_key(), self.name)

    def facets(self, where: Any = None, values: int = 10) -> list[Facet]:
        """The kinds and the fields of the metadata, each with its commonest values, among what the filter allows."""
        return self._shelf.facets(self._parse(where), intake.check_limit(values, MOST_VALUES), MOST_FACETS)

    def timeline(self, where: Any = None, field: str = "created", step: str | None = None) -> Timeline:
        """How many documents fall into each day, month or year; without a ``step``, the one that fits a line."""
        column = intake.check_choice(field, "field", TIME_FIELDS)
        chosen = None if step is None else intake.check_choice(step, "step", ("day", "month", "year"))
        found, periods = self._shelf.timeline(self._parse(where), column, chosen)
        return Timeline(column, found, tuple(periods))

    def standing(self, ids: Iterable[str] | None = None, where: Any = None) -> Standing:
        """Which of these documents (or of all) are superseded, and by what; and which say the same as another; among
        what the filter allows."""
        wanted = None if ids is None else [intake.check_id(id, "id") for id in ids]
        parsed = self._parse(where)
        texts = self._shelf.texts(COPIES_AMONG, parsed)
        copies = likeness.copies(texts)
        if wanted is not None:
            copies = [group for group in copies if not set(wanted).isdisjoint(group)]
        pairs = self._shelf.superseded(wanted, MOST_STANDING, parsed)
        return Standing(tuple(pairs), tuple(copies[:MOST_STANDING]), len(texts))

    def delete(self, ids: str | Iterable[str] | None = None, *, where: Any = None) -> int:
        """Delete by id, by ids or by filter; returns how many there were. Feedback stays: the id may come back."""
        chosen = self._chosen("delete", ids, where)
        return 0 if chosen is None else len(self._shelf.remove(chosen))

    def forget(self, ids: str | Iterable[str] | None = None, *, where: Any = None, compact: bool = False) -> Forgotten:
        """Delete by id, by ids or by filter with everything that was said of it: links, accesses, feedback.

        Nobody finds it any more when this returns. Its bytes may still lie in free pages and old index files until
        ``compact`` has run; ``compact=True`` does that at once, and then they are nowhere in the store's files.
        """
        if compact:
            self._check_whole("compact")
        chosen = self._chosen("forget", ids, where)
        count = 0 if chosen is None else len(self._shelf.remove(chosen, judged=True))
        return Forgotten(count, self.compact() if compact else None)

    def sweep(self) -> int:
        """Forget the documents whose time has passed (``expires``); returns how many there were.

        Nobody has seen them since, and a store sweeps by itself when it notices one: this is for a fixed time.
        """
        self._check_whole("sweep")
        return len(self._shelf.sweep())

    def compact(self, progress: Progress | None = None) -> Compacted:
        """Erase what was deleted from every file of the store, and give the space back.

        Expired documents are forgotten first. Searches go on; writers wait while the file is written anew, and that
        takes the room of two more copies for a moment.
        """
        self._check_whole("compact")
        self._check_locks()
        before = sum(self._store.sizes())
        expired = self.sweep()
        pruned = self._shelf.compact(progress)
        self._store.reclaim()
        return Compacted(before, sum(self._store.sizes()), pruned, expired)

    def _chosen(self, action: str, ids: str | Iterable[str] | None, where: Any) -> Filter | None:
        """What ids or a filter name; None where there are no ids."""
        if (ids is None) == (where is None):
            raise InputError(f"{action}: give either ids or where=, not both and not neither")
        if where is not None:
            parsed = self._parse(where)
            if parsed is None:
                raise InputError(f"where: the filter is empty and would {action} everything; use drop() for that")
            return parsed
        wanted = [ids] if isinstance(ids, str) else list(ids or ())
        named = tuple(intake.check_id(id, "id") for id in wanted)
        return In("id", named) if named else None

    def link(self, source: str, target: str, type: str = "see-also", weight: float = 1.0) -> Link:
        """Connect two documents that exist."""
        link = intake.check_link(Link(source, target, type, weight))
        self._shelf.link([link])
        return link

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        """Remove the links between two documents, of one type or of all; returns how many there were."""
        return self._shelf.unlink(intake.check_id(source, "source"), intake.check_id(target, "target"), type)

    def links(self, id: str | None = None, where: Any = None) -> list[Link]:
        """The links from or to a document, or all of them; between documents that the filter allows."""
        return self._shelf.links_of(None if id is None else intake.check_id(id, "id"), self._parse(where))

    # --- feedback -----------------------------------------------------------------------------------------------------

    def feedback(self, query: str, id: str, good: bool = True) -> Feedback:
        """Say that a document was a good answer to a question, or a bad one; said again, the later verdict counts.

        The question is kept as ``search`` reads it (its first 10,000 characters), so ``results.query`` and ``hit.id``
        are what to give.
        """
        given = intake.check_feedback(query, id, good)
        self._shelf.judge(given)
        return given

    def feedbacks(self, where: Any = None) -> list[Feedback]:
        """Everything that was said, in order of time; of documents that are gone, too, for they may come back. With a
        filter, only of what it allows."""
        return self._shelf.feedbacks(self._parse(where))

    def forget_feedback(self, query: str | None = None, id: str | None = None) -> int:
        """Take back what was said of a question, of a document, or of one for the other; without either, all of it.

        Returns how many verdicts there were.
        """
        question = None if query is None else intake.check_query(query)
        return self._shelf.forget_feedback(question, None if id is None else intake.check_id(id, "id"))

    def restore_feedback(self, items: Iterable[Feedback | Mapping[str, Any]]) -> int:
        """Take over what was said elsewhere, with its times; returns how much of it was news.

        An id that is not here is kept (it may come yet), and a verdict here that is later stays.
        """
        given = [intake.feedback(item, f"feedback {number}") for number, item in enumerate(items)]
        return self._shelf.restore_feedback(given) if given else 0

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
        as_of: datetime | str | float | None = None,
        touch: bool = False,
        **overrides: Any,
    ) -> Results:
        """The best ``k`` documents, each with its explanation.

        ``as_of`` leaves out what was not valid at that moment (``valid_from`` on, before ``valid_to``); ``touch``
        counts the hits as accessed, otherwise a search changes nothing.

        ``profile`` is a name or a Profile (the collection's settings otherwise); any field of it can be overridden by
        keyword for this request: ``alpha=0.3``, ``fusion="rrf"``, ``rrf_k=5``, ``weights={"dense": 2}``,
        ``min_relevance=0.4``.
        """
        chosen = overrides if k is None else {**overrides, "k": k}
        results = self._search.run(query, where, profile, exclude, vector, offset, at, chosen, as_of)
        if touch and results.hits:
            try:
                self._shelf.touch([hit.id for hit in results.hits])
            except StoreError as error:  # found is found
                return replace(results, degraded=(*results.degraded, Degraded("touch", str(error))))
        return results

    def explain(
        self, query: str, id: str, where: Any = None, profile: str | Profile | None = None, **options: Any
    ) -> Explanation:
        """Why is this document an answer, or why is it not? Every leg's rank and score for it, even far down."""
        return self._search.explain(query, id, where, profile, options)

    def search_over(self, shelf_of: Callable[[Shelf], Any], legs: Legs) -> Search:
        """Another spine over this collection, with a shelf and legs of the caller's: how the evaluation lab reads
        everything once and fuses it many times."""
        return Search(shelf_of(self._shelf), self._models, legs, self._shared.tools)

    def _parse(self, where: Any) -> Filter | None:
        parsed = parse_filter(where)
        if parsed is not None:
            self._shelf.check_fields(parsed)
        return parsed

    # --- settings and care --------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Profile:
        """The profile in force, as every process sees it now."""
        return self._search.settings(self._shelf.state().settings)

    def update_settings(self, profile: str | Profile | None = None, *, by: str = "", **changes: Any) -> Profile:
        """Change the settings at once for every process: start from a profile, or from what is in force.

        ``by`` says who: it stands in the history.
        """
        self._check_whole("settings")
        start = named(profile) if isinstance(profile, str) else profile

        def change(current: str) -> str:
            return (start or Profile.from_json(current)).with_changes(changes).to_json()

        return Profile.from_json(self._shelf.change_settings(change, intake.check_by(by)))

    def settings_history(self, limit: int = 50) -> list[SettingsChange]:
        """The last changes of the settings, the latest first."""
        self._check_whole("settings_history")
        rows = self._shelf.settings_history(intake.check_limit(limit, intake.MAX_PAGE))
        return [
            SettingsChange(row.number, row.at, row.by, Profile.from_json(row.settings), _readable(row.previous))
            for row in rows
        ]

    def revert_settings(self, to: int | None = None, by: str = "") -> Profile:
        """Take the last change back; or go back to the settings as change number ``to`` made them (0: as they were
        before the first). This is a change too, and can be reverted."""
        if to is not None and (isinstance(to, bool) or not isinstance(to, int) or not 0 <= to < 2**63):
            raise InputError(f"to: {to!r} is not the number of a change; settings_history() shows them")
        self._check_whole("settings")

        def change(_: str) -> str:  # within the transaction: what is read here is what is in force
            latest = self._shelf.settings_history(1)
            if to is None:
                settings = latest[0].previous if latest else None
            else:
                row = self._shelf.settings_change(to or 1)
                settings = None if row is None else row.settings if to else row.previous
            if settings is None:
                told = f"no change {to} is kept" if to is not None else "they were never changed"
                raise NotFoundError(f"settings: {told}; settings_history() shows what there is")
            return Profile.from_json(settings).to_json()

        return Profile.from_json(self._shelf.change_settings(change, intake.check_by(by)))

    def stats(self) -> Stats:
        state, counts = self._shelf.state(), self._shelf.counts()
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
            language=self._shelf.analyzer.language,
            bytes_store=bytes_store,
            bytes_index=bytes_index,
            profile=str(self._search.settings(state.settings)),
            fields=tuple(self._shelf.fields()),
            embed_error=self._models.backlog.error if self.bound is None else "",
            scorer=self._shared.panel.id if self._shared.panel else None,
        )

    def reembed(self, embedder: str | Embedder, progress: Progress | None = None) -> int:
        """Embed everything with another model; the old one answers until the last passage is done."""
        self._check_whole("reembed")
        return self._models.reembed(embedder, progress)

    def verify(self, progress: Steps | None = None) -> Report:
        """Check that the truth is sound and that the content of every index agrees with it."""
        self._check_whole("verify")
        truth = self._store.problems()
        try:
            problems, checked = self._shelf.verify(progress)
        except StoreError as error:  # a projection reads the truth, and what is damaged there is told by now
            if not truth:
                raise
            problems, checked = [str(error)], {}
        return Report((*truth, *problems), checked)

    def prepare(self, profile: str | Profile | None = None, progress: Progress | None = None) -> None:
        """Make every index that a profile (else the settings) asks for, now rather than in the background."""
        self._check_whole("prepare")
        chosen = self.settings if profile is None else named(profile) if isinstance(profile, str) else profile
        self._check_locks()
        self._shelf.tidy(progress, graph=bool(chosen.weights["graph"]))

    def rebuild(self, progress: Progress | None = None) -> None:
        """Throw the projections away and build them again from the truth."""
        self._check_whole("rebuild")
        self._check_locks()
        self._shelf.discard_projections()
        self.prepare(progress=progress)

    def _check_locks(self) -> None:
        if isinstance(self._shelf, Locking):
            self._shelf.check_locks()

    def backup(self, target: str | Path, progress: Progress | None = None) -> Saved:
        """Copy the whole store, all its collections, to a new file while others go on writing; the copy is checked.

        It is the store as it was when the call began. ``trivet.restore`` puts it back.
        """
        self._check_whole("backup")
        if not isinstance(self._store, Copying):
            raise InputError(
                "backup: this store is on a server; use the server's own backup, or `trivet copy` to a file"
            )
        return Saved(str(target), self._store.backup(Path(target), progress), tuple(self.collections()))

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
        self._check_whole("collection")
        return _engine(self._store, name, embedder, language, passage_size, self._shared)

    def collections(self) -> list[str]:
        """The names of the store's collections."""
        self._check_whole("collections")
        return self._store.names()

    def drop(self) -> None:
        """Delete this collection with everything in it."""
        self._check_whole("drop")
        self._models.close()
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
    """What the engines of one file have in common, and how it ends."""

    def __init__(self, store: Store, scorer: Scorer | str | None) -> None:
        found = load_scorer(scorer)
        self.legs = Legs()
        self.panel = Panel(found) if found is not None else None
        self.tools = Tools(self.panel)
        self.models: list[Models] = []
        # at close, when the last engine is forgotten, or at exit: a thread must not outlive the interpreter's modules
        self.finalizer = weakref.finalize(self, _shut, store, self.models, self.legs, self.panel)


def _shut(store: Store, models: list[Models], legs: Legs, panel: Panel | None) -> None:
    for each in models:
        each.close()
    legs.close()
    if panel is not None:
        panel.close()
    store.close()


def _readable(settings: str) -> Profile | None:
    try:
        return Profile.from_json(settings)
    except InputError:
        return None


def _engine(
    store: Store,
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
    models = Models(shelf, embedder)
    shared.models.append(models)
    return Engine(store, shelf, models, shared)


def open(
    path: str | Path,
    collection: str = DEFAULT_COLLECTION,
    *,
    embedder: str | Embedder | None = None,
    language: str | None = None,
    passage_size: int | None = None,
    create: bool = True,
    scorer: str | Scorer | None = None,
) -> Engine:
    """Open a store, made if it is new (unless ``create`` is false): one file, words and meaning at once.

    ``embedder`` is needed only for a new collection that shall not use the built-in model: ``"none"``,
    ``"folder:/models/minilm"``, ``"http://127.0.0.1:11434/v1#nomic-embed-text"``, ``"vectors:768"`` or an object.
    ``":memory:"`` is a store that is gone at close. ``scorer`` is asked by the reranker ``cross_encoder``, in every
    collection opened from here: ``"folder:/models/reranker"``, ``"http://127.0.0.1:8080/rerank"`` or an object.
    """
    if not create and collection not in (names := collections_in(path)):
        where = f"there are: {', '.join(names)}" if names else "there is no such store"
        raise NotFoundError(f"collection: {str(path)!r} has no {collection!r}; {where}")
    store = open_store(path)
    try:
        return _engine(store, collection, embedder, language, passage_size, _Shared(store, scorer))
    except BaseException:
        store.close()
        raise


def restore(backup: str | Path, path: str | Path, progress: Progress | None = None) -> Restored:
    """Make the store at ``path`` the one that ``backup`` is a copy of; made if it is new, replaced as a whole if not.

    The backup is checked first. A store that anybody has open is refused, with the processes that do: what they wrote
    after it would be lost without a word.
    """
    size, replaced = restore_store(backup, path, progress)
    names = tuple(collections_in(path))
    documents = 0
    for name in names:
        with open(path, name, embedder="none") as engine:
            documents += engine.stats().documents
    return Restored(str(path), size, names, documents, replaced)


def collections_in(path: str | Path) -> list[str]:
    """The names in a store, without making or changing anything; none where there is no file."""
    return names_in(path)


def is_store(path: str | Path) -> bool:
    """Is there a store at this path or address? A server that cannot be reached is an error."""
    return is_there(path)


def on_server(path: str | Path) -> bool:
    """Does the address name a server rather than a file?"""
    return is_server(path)
