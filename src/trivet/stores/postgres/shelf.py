"""What is asked of one collection on a PostgreSQL server?

What changes it, what the legs find in it, and its care; ``reading.py`` and ``embedding.py`` are the rest.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotFoundError, TrivetError
from trivet.filters import Filter, Range
from trivet.stores.contract import Change, Found, Model, Prepared, State, Written
from trivet.stores.postgres import comparison, judgements, links, postings, records, removals
from trivet.stores.postgres.collection import advance, now, of_one_state
from trivet.stores.postgres.counts import counts
from trivet.stores.postgres.embedding import Embedding
from trivet.stores.postgres.meaning import Meaning
from trivet.stores.postgres.reading import Reading, matching
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.spelling import Spelling
from trivet.stores.postgres.words import Words
from trivet.stores.scoped import allowed, check_ends, ends
from trivet.types import Document, Feedback, Link

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery
    from trivet.graph.block import Graph
    from trivet.graph.walk import Tie
    from trivet.stores.contract import Progress, Steps
    from trivet.stores.postgres.store import PostgresStore
    from trivet.types import Vector


class Shelf(Reading, Embedding):
    """One collection. Safe to use from many threads."""

    def __init__(self, store: PostgresStore, cid: int, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, name, config)
        self._sweeping = threading.Event()
        self.swept: Callable[[list[int]], None] = lambda dids: None  # told which documents a sweep has forgotten

    # --- settings and models ------------------------------------------------------------------------------------------

    def change_settings(self, change: Callable[[str], str], by: str = "") -> str:
        """Replace the settings by ``change(current)`` and write down who did, in one transaction."""
        with self._changing() as (connection, _, current):
            settings = change(current)
            connection.execute("UPDATE heads SET settings = %s WHERE cid = %s", (settings, self.cid))
            judgements.record(connection, self.cid, by, settings, current, now())
        return settings

    def settings_history(self, limit: int) -> list[Change]:
        self.state()  # refuses a collection that was dropped
        return judgements.changes(self._all, self.cid, limit)

    def settings_change(self, number: int) -> Change | None:
        found = judgements.changes(self._all, self.cid, 1, number)
        return found[0] if found else None

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        """Make a model known; ``answers`` makes it the collection's own."""
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # a caller's own embedder may say anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        if dim > 16_000:
            raise InputError(f"embedder {spec!r}: its dim is {dim:,}; pgvector keeps 16,000 at most")
        with self._changing() as (connection, _, _):
            sql = "UPDATE models SET spec = %s WHERE cid = %s AND id = %s RETURNING mid, id, spec, dim, vectors"
            row = connection.execute(sql, (spec, self.cid, identifier)).fetchone()
            if row is None:
                row = connection.execute(
                    "UPDATE heads SET last_model = last_model + 1 WHERE cid = %s RETURNING last_model", (self.cid,)
                ).fetchone()
                assert row is not None
                row = (row[0], identifier, spec, dim, 0)
                connection.execute(
                    "INSERT INTO models (cid, mid, id, spec, dim, vectors) VALUES (%s, %s, %s, %s, %s, %s)",
                    (self.cid, *row),
                )
            if answers:
                connection.execute("UPDATE heads SET mid = %s WHERE cid = %s", (row[0], self.cid))
        return Model(*row)

    def model_id(self, mid: int) -> str:
        rows = self._all("SELECT id FROM models WHERE cid = %s AND mid = %s", (self.cid, mid))
        return str(rows[0][0]) if rows else ""

    def forget_other_models(self, mid: int) -> None:
        """Delete the vectors of every model but this one."""
        with self._changing() as (connection, _, _):
            for part in self.parts.every:
                connection.execute("DELETE FROM vectors WHERE cid = %s AND mid <> %s", (part.cid, mid))
            sql = "DELETE FROM models WHERE cid = %s AND mid <> %s RETURNING mid"
            gone = connection.execute(sql, (self.cid, mid)).fetchall()
        for (old,) in gone:
            for part in self.parts.every:
                self.store.drop_index(f"meaning_{part.cid}_{old}")

    # --- records ----------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        self._forget_expired()
        with self._changing() as (connection, place, _):
            return records.write(connection, place, mid, batch, now(), within)

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        """Store it, unless a document that is ``same`` is there: that one is reinforced. (id, what was written)"""
        self._forget_expired()
        with self._changing() as (connection, place, _):
            own = records.find(connection, self.parts, item.document.id) if named else None
            if own is not None and allowed(own, within):
                twin = own if same(own) else None
            else:
                alike = lambda other: allowed(other, within) and same(other)  # noqa: E731
                twin = records.twin(connection, self.parts, item, alike, likely) if own is None else None
            if twin is None:
                return item.document.id, records.write(connection, place, mid, [item], now(), within)
            records.touch(connection, self.parts, [twin.id], now())
            sql = "UPDATE documents SET importance = %s WHERE cid = %s AND id = %s"
            connection.execute(sql, (importance(twin.importance), self.parts.of_id(twin.id).cid, twin.id))
            records.prolong(connection, self.parts, twin.id, item.document.expires)
            linked = [replace(link, source=twin.id) for link in item.links or ()]
            if within is not None:
                check_ends(linked, records.visible(connection, self.parts, ends(linked), within), self.name)
            links.add(connection, self.cid, linked)
            return twin.id, None

    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written:
        """Replace a document by what ``change`` makes of it, in one transaction: nobody's change is lost."""
        self._forget_expired()
        with self._changing() as (connection, place, _):
            known = records.find(connection, self.parts, identifier)
            if known is None or not allowed(known, within):
                raise NotFoundError(f"id: there is no document {identifier!r} in collection {self.name!r}")
            return records.write(connection, place, mid, [change(known)], now(), within)

    def remove(self, where: Filter, judged: bool = False) -> list[int]:
        self._forget_expired()
        with self._changing() as (connection, place, _):
            dids = matching(links.asking(connection), self.parts, where)
            removals.remove(connection, place, dids, judged)
        return dids

    def sweep(self) -> list[int]:
        """Forget the documents whose time has passed; return their row numbers."""
        with self._held() as (connection, place, _):
            dids = matching(links.asking(connection), self.parts, Range("expires", lte=now()))
            if dids:
                removals.remove(connection, place, dids, judged=True)
                advance(connection, self.cid)
        if dids:
            self.swept(dids)
        return dids

    def _forget_expired(self) -> None:
        """Forget what has expired first: an id that comes again is a new document, and nobody links to an old one."""
        if self._passed() is not None:
            self.sweep()

    def _notice_expired(self) -> None:
        if not self.read_only and not self._sweeping.is_set():
            self._sweeping.set()
            self.store.start(self._sweep_quietly)

    def _sweep_quietly(self) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed or busy: nobody sees them, and somebody sweeps later
                self.sweep()
        finally:
            self._sweeping.clear()

    def link(self, given: Sequence[Link], within: Filter | None = None) -> None:
        self._forget_expired()
        with self._changing() as (connection, _, _):
            check_ends(given, records.visible(connection, self.parts, ends(given), within), self.name)
            links.add(connection, self.cid, given)

    def unlink(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self._changing() as (connection, _, _):
            if within is not None and len(records.visible(connection, self.parts, [source, target], within)) < 2:
                return 0
            sql = "DELETE FROM links WHERE cid = %s AND source = %s AND target = %s AND type = coalesce(%s, type)"
            return connection.execute(sql, (self.cid, source, target, kind)).rowcount

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        self._forget_expired()
        with self._held() as (connection, _, _):
            seen = ids if within is None else list(records.visible(connection, self.parts, ids, within))
            return records.touch(connection, self.parts, seen, now())

    def judge(self, given: Feedback, within: Filter | None = None) -> None:
        """Only of a document that is here: a mistyped id would teach nothing, and say nothing."""
        self._forget_expired()
        with self._held() as (connection, _, _):
            if not records.visible(connection, self.parts, [given.id], within):
                told = f"there is no document {given.id!r} in collection {self.name!r}"
                raise NotFoundError(f"feedback: {told}; name it by the id that search shows (hit.id)")
            # what is said now replaces what was said before, even where the clock was set back in between
            judgements.forget(connection, self.cid, given.query, given.id)
            judgements.restore(connection, self.cid, [given])

    def restore_feedback(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._held() as (connection, _, _):
            if within is not None:
                seen = records.visible(connection, self.parts, [item.id for item in given], within)
                given = [item for item in given if item.id in seen]
            return judgements.restore(connection, self.cid, given)

    def forget_feedback(self, query: str | None, identifier: str | None, within: Filter | None = None) -> int:
        with self._held() as (connection, _, _):
            if within is None:
                return judgements.forget(connection, self.cid, query, identifier)
            said = judgements.read(links.asking(connection), self.cid)
            ids = {item.id for item in said if query in (None, item.query) and identifier in (None, item.id)}
            seen = records.visible(connection, self.parts, sorted(ids), within)
            return sum(judgements.forget(connection, self.cid, query, each) for each in sorted(seen))

    @of_one_state
    def feedbacks(self, where: Filter | None = None) -> list[Feedback]:
        self.state()  # refuses a collection that was dropped
        found = judgements.read(self._all, self.cid)
        hidden = self._hidden([item.id for item in found], where)
        return [item for item in found if item.id not in hidden]

    # --- finding: what the legs ask ---------------------------------------------------------------------------------

    def is_current(self, leg: str, state: State) -> bool:
        return True  # the server's indexes are part of every write

    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        bm25, passages, count, last = self._count_at(version)
        table = self._table if bm25 else None
        words = Words(self._database, self.parts, table, passages, count / max(1, passages), self.parts.up_to(last))
        return words.find(query, match, depth, scope)

    def _count_at(self, version: int) -> tuple[bool, int, int, int]:
        """What every write changes with the version, so it is read when that is news."""
        known, counted = self._counted
        if known != version:
            sql = "SELECT bm25, passages, terms, last_passage FROM heads WHERE cid = %s"
            rows = self._all(sql, (self.cid,))
            if not rows:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            counted = rows[0]
            self._counted = (version, counted)
            self._pack_soon(counted[3])
        return counted

    def _pack_soon(self, last: int) -> None:
        """Much that is not in the postings yet is taken in, in the background."""
        reached, last = self._packed, self.parts.up_to(last)
        if (
            not self.read_only
            and last - reached >= postings.PACK_FROM * len(self.parts.every) * self.parts.every[0].step
        ):
            self._packed = last
            self.store.start(self._pack, last)

    def _pack(self, last: int) -> None:
        with contextlib.suppress(TrivetError):  # closed meanwhile, or not allowed: the inverted index serves
            for part in self.parts.every:
                postings.Postings(self._database, part).pack(last)

    @property
    def spelling(self) -> Spelling:
        return Spelling(self._database, self.parts)

    def find_near(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        meaning = Meaning(self._database, self.parts, model)
        if meaning.wants_index() and model.mid not in self._indexed:
            self._indexed.add(model.mid)
            if not meaning.has_index():
                self.store.start(self._build, meaning)
        return meaning.near(vector, depth, scope)

    def _build(self, meaning: Meaning) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile, or not allowed: the exact comparison serves
                meaning.build()
        finally:
            self._indexed.discard(meaning.model.mid)

    # --- care -------------------------------------------------------------------------------------------------------

    def graph(self, version: int) -> Graph:
        return self._connections.graph(version)

    def ties(self, dids: Sequence[int], version: int) -> list[Tie]:
        return self._connections.ties(dids, version)

    def read_connections(self) -> None:
        """Bring the graph up to date in the background."""
        self._connections.read()

    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None:
        """Make what is missing among the server's indexes, so that no search has to do without."""
        self.tidy_words(progress)
        with contextlib.suppress(TrivetError):  # what is stored is stored; ``verify`` tells of an index that is missing
            self._tidy_indexes()
        if graph or self._connections.in_use:
            self._connections.catch_up()

    def _tidy_indexes(self) -> None:
        self.store.analyse()
        state = self.state()
        self._pack(self.parts.up_to(self._all("SELECT last_passage FROM heads WHERE cid = %s", (self.cid,))[0][0]))
        if state.model is not None:
            meaning = Meaning(self._database, self.parts, state.model)
            if meaning.wants_index() and not meaning.has_index():
                meaning.build()

    def compact(self, progress: Progress | None = None) -> int:
        """Count the terms anew without what was removed, write this machine's graph anew, and prune the removals."""
        self._connections.rewrite()
        self.store.recount(self)
        self._packed = 0
        self._pack(self.parts.up_to(self._all("SELECT last_passage FROM heads WHERE cid = %s", (self.cid,))[0][0]))
        applied = self._connections.applied
        with self._held() as (connection, _, _):
            sql = "UPDATE heads SET pruned = greatest(pruned, least(last_removed, %s)) WHERE cid = %s"
            connection.execute(sql, (applied, self.cid))  # greatest() and least() pass over a null
            sql = "DELETE FROM removed WHERE cid = %s AND seq <= (SELECT pruned FROM heads WHERE cid = %s)"
            return connection.execute(sql, (self.cid, self.cid)).rowcount

    def tidy_words(self, progress: Progress | None = None) -> None:
        if self._database.server.bm25 and not self.read_only and not self.parts.spread:
            self.store.add_words(self, progress)

    def verify(self, progress: Steps | None = None) -> tuple[list[str], dict[str, int]]:
        """Check that the counts agree with the rows, and the content of every index with the documents."""
        state = self.state()
        if self.parts.spread and not self.read_only:
            with self._held() as (connection, _, _):  # no statement sees all parts at one moment: writers wait
                counted = counts(links.asking(connection), self.parts)
        else:
            counted = counts(self._all, self.parts)
        found = counted.problems()
        checked = {"documents": state.documents, "passages": state.passages, "words": state.passages}
        if counted.bm25:
            sql = f"SELECT (SELECT count(*) FROM {self._table}), (SELECT passages FROM heads WHERE cid = %s)"
            indexed, passages = self._all(sql, (self.cid,))[0]
            checked["words"] = indexed
            if indexed != passages:
                found.append(f"words: {indexed:,} passages indexed, {passages:,} stored; run rebuild")
        if state.model is not None:
            checked["vectors"] = state.model.vectors
            meaning = Meaning(self._database, self.parts, state.model)
            if meaning.wants_index() and not meaning.has_index():
                found.append(f"meaning: there is no index {meaning.index(self.parts.every[0])!r}; run rebuild")
        report = partial(progress, "comparing words") if progress is not None else None
        found += self._compare(report)
        graph = self._connections.compare(partial(progress, "comparing graph") if progress is not None else None)
        if graph is not None:
            checked["graph"] = graph.compared
            found += graph.problems(self._ids_of, self.name)
        return found, checked

    def _compare(self, report: Progress | None) -> list[str]:
        with contextlib.ExitStack() as stack:
            if self._database.server.citus and not self.read_only:  # no snapshot holds for all workers: writers wait
                connection, _, _ = stack.enter_context(self._held())
                ask = links.asking(connection)
                connection.execute("SET LOCAL statement_timeout = 0")
            else:
                stack.enter_context(self.snapshot())
                self._database.ask(lambda connection: connection.execute("SET LOCAL statement_timeout = 0"))
                ask = self._all
            told = [comparison.problems(ask, part, self.cid, self.analyzer, report) for part in self.parts.every]
            found = [problem for own in told for problem in own]
            ((said,),) = ask("SELECT terms FROM heads WHERE cid = %s", (self.cid,))
            sql = "SELECT coalesce(sum(length), 0) FROM passages WHERE cid = %s"
            there = sum(int(ask(sql, (part.cid,))[0][0]) for part in self.parts.every)
        if said != there:
            found.append(f"terms: the count says {said:,}, there are {there:,}; run rebuild")
        return found

    def _ids_of(self, dids: Sequence[int]) -> dict[int, str]:
        return {did: document.id for did, document in self.fetch(dids).items()}

    def discard_projections(self) -> None:
        """Drop what ``tidy`` makes again; the rest of the server's indexes are its own to mend (REINDEX)."""
        self._connections.discard()
        self.store.drop_words(self)
        self.store.recount(self)
        self._packed = 0
        for (mid,) in self._all("SELECT mid FROM models WHERE cid = %s", (self.cid,)):
            for part in self.parts.every:
                self.store.drop_index(f"meaning_{part.cid}_{mid}")
