"""What is asked of one collection?

Its state, its records, its filters, what its projections read, and what the legs find in them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from trivet.analysis import Analyzer
from trivet.concepts import Triple, triples_of
from trivet.errors import InputError, ModelReplacedError, NotFoundError, StoreError, TrivetError
from trivet.filters import BUILT_IN_FIELDS, And, Filter, Not, fields_of, split_field
from trivet.stores.contract import Change, Model, Prepared, State, Written
from trivet.stores.sqlite import access, chains, facets, feedback, history, records
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.types import Document, Facet, Feedback, Link, Period, Succession

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery
    from trivet.graph.block import Graph
    from trivet.graph.walk import Tie
    from trivet.stores.sqlite.graph import GraphIndex
    from trivet.stores.sqlite.meaning import VectorIndex
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.store import SqliteStore
    from trivet.stores.sqlite.tail import Found
    from trivet.stores.sqlite.words import Progress, TermIndex
    from trivet.types import Vector

MANY_BEHIND = 5_000  # passages the graph has not read: some seconds
SCOPES_KEPT = 64  # filters whose mask is remembered until the next write


class Shelf:
    """One collection. Safe to use from many threads."""

    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        self._uid = uid
        self.store, self.cid, self.name, self.config = store, cid, name, dict(config)
        self.analyzer = Analyzer(self.config.get("language", "en"))
        self._database = store.database
        self._folder = store.index_folder / f"c{cid}"
        self._lock = threading.Lock()
        self._compacting, self._settling, self._reading = (threading.Event() for _ in range(3))
        self._looked = False
        self._words: TermIndex | None = None
        self._trigrams: TermIndex | None = None
        self._graph: GraphIndex | None = None
        self._linked = (-1, False)  # at which version: is there a link that a walk may take?
        self._meanings: dict[int, VectorIndex] = {}
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()
        self._scopes_version = -1
        self._chained = (-1, False)  # at which version: is there a link that changes recall?

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    # --- state ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        with self._database.explained():
            row = (
                self._database.read()
                .execute(
                    "SELECT version, settings, documents, passages, m.mid, m.id, m.spec, m.dim, m.vectors "
                    "FROM collections c LEFT JOIN models m ON m.mid = c.mid WHERE c.cid = ?",
                    (self.cid,),
                )
                .fetchone()
            )
        if row is None:
            raise NotFoundError(f"collection: {self.name!r} was dropped")
        version, settings, documents, passages, *model = row
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model))

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction after which every projection has news."""
        with self._database.write() as connection:
            yield connection
            records.touch(connection, self.cid)

    def change_settings(self, change: Callable[[str], str], by: str = "") -> str:
        """Replace the settings by ``change(current)`` and write down who did, in one transaction."""
        with self.changing() as connection:
            current = self._settings(connection)
            settings = change(current)
            connection.execute("UPDATE collections SET settings = ? WHERE cid = ?", (settings, self.cid))
            history.record(connection, self.cid, by, settings, current, datetime.now(UTC).timestamp())
        return settings

    def _settings(self, connection: sqlite3.Connection) -> str:
        row = connection.execute("SELECT settings FROM collections WHERE cid = ?", (self.cid,)).fetchone()
        if row is None:
            raise NotFoundError(f"collection: {self.name!r} was dropped")
        return str(row[0])

    def settings_history(self, limit: int) -> list[Change]:
        self.state()  # refuses a collection that was dropped
        with self._database.explained():
            return history.read(self._database.read(), self.cid, limit)

    def settings_change(self, number: int) -> Change | None:
        with self._database.explained():
            return history.find(self._database.read(), self.cid, number)

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        """Make a model known; ``answers`` makes it the collection's own."""
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # a caller's own embedder may say anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        with self.changing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO models (cid, id, spec, dim) VALUES (?, ?, ?, ?)",
                (self.cid, identifier, spec, dim),
            )
            connection.execute("UPDATE models SET spec = ? WHERE cid = ? AND id = ?", (spec, self.cid, identifier))
            row = connection.execute(
                "SELECT mid, id, spec, dim, vectors FROM models WHERE cid = ? AND id = ?", (self.cid, identifier)
            ).fetchone()
            if answers:
                connection.execute("UPDATE collections SET mid = ? WHERE cid = ?", (row[0], self.cid))
        return Model(*row)

    def model_id(self, mid: int) -> str:
        rows = self._all("SELECT id FROM models WHERE mid = ?", (mid,))
        return str(rows[0][0]) if rows else ""

    def forget_other_models(self, mid: int) -> None:
        """Delete the vectors of every model but this one."""
        with self._lock:
            self._meanings = {known: index for known, index in self._meanings.items() if known == mid}
        with self.changing() as connection:
            connection.execute(
                "DELETE FROM vectors WHERE mid IN (SELECT mid FROM models WHERE cid = ? AND mid <> ?)", (self.cid, mid)
            )
            connection.execute("DELETE FROM models WHERE cid = ? AND mid <> ?", (self.cid, mid))
        for old in self._folder.glob("meaning-*"):
            if old.name != f"meaning-{mid}":
                shutil.rmtree(old, ignore_errors=True)

    # --- records ----------------------------------------------------------------------------------------------------

    def _look_at_projections(self) -> None:
        """Open what lies on disk before the first write: later, one that is ahead of a restored backup could not be
        told from one that is not."""
        if self._looked:
            return
        self._looked = True
        if (self._folder / "words").exists():
            self.words()
        if (self._folder / "trigrams").exists():
            self.trigrams()
        if (self._folder / "graph").exists():
            self.concepts()
        model = self.state().model
        if model is not None and (self._folder / f"meaning-{model.mid}").exists():
            self.meaning(model)

    def write(self, batch: Sequence[Prepared], mid: int | None) -> Written:
        self._look_at_projections()
        with self.changing() as connection:
            return records.write(connection, self.cid, mid, batch, datetime.now(UTC).timestamp())

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
    ) -> tuple[str, Written | None]:
        """Store it, unless a document that is ``same`` is there: that one is reinforced. In one transaction, so that
        two processes that are told the same at once store it once. (id, what was written or None)

        ``likely`` are row numbers to look at besides those of the very same text. ``named``: the id is the caller's
        own, and a document of that id that says something else is replaced.
        """
        self._look_at_projections()
        now = datetime.now(UTC).timestamp()
        with self.changing() as connection:
            own = records.find(connection, self.cid, item.document.id) if named else None
            if own is not None:
                twin = own if same(own) else None
            else:
                twin = records.twin(connection, self.cid, item, same, likely)
            if twin is None:
                return item.document.id, records.write(connection, self.cid, mid, [item], now)
            access.touch(connection, self.cid, [twin.id], now)
            records.set_importance(connection, self.cid, twin.id, importance(twin.importance))
            records.add_links(connection, self.cid, [replace(link, source=twin.id) for link in item.links or ()])
            return twin.id, None

    def amend(self, identifier: str, mid: int | None, change: Callable[[Document], Prepared]) -> Written:
        """Replace a document by what ``change`` makes of it, in one transaction: nobody's change is lost."""
        self._look_at_projections()
        with self.changing() as connection:
            known = records.find(connection, self.cid, identifier)
            if known is None:
                raise NotFoundError(f"id: there is no document {identifier!r} in collection {self.name!r}")
            return records.write(connection, self.cid, mid, [change(known)], datetime.now(UTC).timestamp())

    def remove(self, dids: Sequence[int]) -> int:
        with self.changing() as connection:
            return records.remove(connection, self.cid, dids)

    def link(self, links: Sequence[Link]) -> None:
        with self.changing() as connection:
            records.add_links(connection, self.cid, links)

    def unlink(self, source: str, target: str, kind: str | None) -> int:
        with self.changing() as connection:
            return connection.execute(
                "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = coalesce(?, type)",
                (self.cid, source, target, kind),
            ).rowcount

    def links_of(self, identifier: str | None = None) -> list[Link]:
        """Links from or to a document; every link of the collection without one."""
        sql = "SELECT source, target, type, weight FROM links WHERE cid = ?"
        values: tuple[Any, ...] = (self.cid,)
        if identifier is not None:
            sql = f"{sql} AND source = ? UNION {sql} AND target = ?"
            values = (self.cid, identifier, self.cid, identifier)
        return [Link(*row) for row in self._all(f"{sql} ORDER BY source, target, type", values)]

    @contextlib.contextmanager
    def _noting(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that is no news: projections hold nothing of feedback and accesses, so the version stays
        as it is and the next search has nothing to catch up on."""
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE cid = ?", (self.cid,)).fetchone() is None:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            yield connection

    def touch(self, ids: Sequence[str]) -> int:
        with self._noting() as connection:
            return access.touch(connection, self.cid, ids, datetime.now(UTC).timestamp())

    def judge(self, given: Feedback) -> None:
        """Only of a document that is here: a mistyped id would teach nothing, and say nothing."""
        with self._noting() as connection:
            sql = "SELECT 1 FROM documents WHERE cid = ? AND id = ?"
            if connection.execute(sql, (self.cid, given.id)).fetchone() is None:
                told = f"there is no document {given.id!r} in collection {self.name!r}"
                raise NotFoundError(f"feedback: {told}; name it by the id that search shows (hit.id)")
            feedback.record(connection, self.cid, given)

    def restore_feedback(self, given: Sequence[Feedback]) -> int:
        with self._noting() as connection:
            return feedback.restore(connection, self.cid, given)

    def forget_feedback(self, query: str | None, identifier: str | None) -> int:
        with self._noting() as connection:
            return feedback.forget(connection, self.cid, query, identifier)

    def feedbacks(self) -> list[Feedback]:
        self.state()  # refuses a collection that was dropped
        with self._database.explained():
            return feedback.read(self._database.read(), self.cid)

    def dids(self, ids: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(ids), 500):
            chunk = list(ids[start : start + 500])
            marks = ", ".join("?" * len(chunk))
            rows = self._all(f"SELECT id, did FROM documents WHERE cid = ? AND id IN ({marks})", (self.cid, *chunk))
            found.update(rows)
        return found

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        with self._database.explained():
            return records.fetch(self._database.read(), dids)

    def fetch_spans(self, pids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
        with self._database.explained():
            return records.fetch_spans(self._database.read(), pids)

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        """Every document, by row number, a page at a time so that no read transaction stays open."""
        last = 0
        condition = ""
        values: list[Any] = []
        if where is not None:
            sql, values = compile_filter(where, self.cid)
            condition = f" AND did IN ({sql})"
        sql = f"SELECT {records.COLUMNS} FROM documents WHERE +cid = ? AND did > ?{condition} ORDER BY did LIMIT 500"
        while rows := self._all(sql, (self.cid, last, *values)):
            last = rows[-1][0]
            yield from map(records.document_of, rows)

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        """(row number, document) of those behind a row number, in its order. A document keeps its number for good and
        a new one gets a higher one: whoever goes on from the last number skips nothing and sees nothing twice."""
        condition = ""
        values: list[Any] = []
        if where is not None:
            sql, values = compile_filter(where, self.cid)
            condition = f" AND did IN ({sql})"
        sql = f"SELECT {records.COLUMNS} FROM documents WHERE +cid = ? AND did > ?{condition} ORDER BY did LIMIT ?"
        return [(row[0], records.document_of(row)) for row in self._all(sql, (self.cid, after, *values, limit))]

    def _within(self, where: Filter | None) -> facets.Condition:
        if where is None:
            return "", ()
        sql, values = compile_filter(where, self.cid)
        return f" AND did IN ({sql})", values

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        """The kinds first, then every field of the metadata, ``most`` of them."""
        within = self._within(where)
        with self._database.explained():
            connection = self._database.read()
            found = [facets.kinds(connection, self.cid, within, values)]
            return found + [facets.facet(connection, self.cid, key, within, values) for key in self.fields()[:most]]

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        with self._database.explained():
            return facets.timeline(self._database.read(), self.cid, column, step, self._within(where))

    def superseded(self, ids: Sequence[str] | None, limit: int) -> list[tuple[str, str]]:
        with self._database.explained():
            return facets.superseded(self._database.read(), self.cid, ids, limit)

    def texts(self, limit: int) -> list[tuple[str, str]]:
        with self._database.explained():
            return facets.texts(self._database.read(), self.cid, limit)

    def count(self, table: str) -> int:
        return int(self._all(f"SELECT count(*) FROM {table} WHERE cid = ?", (self.cid,))[0][0])

    def _all(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._database.explained():
            return self._database.read().execute(sql, tuple(values)).fetchall()

    # --- filters ----------------------------------------------------------------------------------------------------

    def check_fields(self, where: Filter) -> None:
        """Refuse a field that no document has: a typo would otherwise answer with silence."""
        for field, must_be_known in fields_of(where):
            built_in, name = split_field(field)
            if built_in or not must_be_known or not self.count_any():
                continue
            if not self._all("SELECT 1 FROM fields WHERE cid = ? AND key = ? LIMIT 1", (self.cid, name)):
                known = [*BUILT_IN_FIELDS, *self.fields()]
                close = get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise InputError(f"where: no document has a field {field!r}{hint} (known: {', '.join(known[:40])})")

    def count_any(self) -> bool:
        return bool(self._all("SELECT 1 FROM documents WHERE cid = ? LIMIT 1", (self.cid,)))

    def fields(self) -> list[str]:
        """The metadata keys in use; a skip-scan, one look-up a key."""
        found: list[str] = []
        sql = "SELECT key FROM fields WHERE cid = ? AND key > ? ORDER BY key LIMIT 1"
        while row := self._all(sql, (self.cid, found[-1] if found else "")):
            found.append(row[0][0])
        return found

    def matching(self, where: Filter) -> list[int]:
        sql, values = compile_filter(where, self.cid)
        return [did for (did,) in self._all(sql, values)]

    def scope(self, where: Filter | None, exclude: Sequence[str], version: int) -> Scope | None:
        """The mask every leg applies; None when everything may answer."""
        if where is None and not exclude:
            return None
        from trivet.stores.sqlite.scope import Scope

        size = int(self._all("SELECT value FROM counters WHERE name = 'document'", ())[0][0])
        scope = self._scope_of(where, size, version) if where is not None else Scope.everything(size)
        return scope.without(list(self.dids(exclude).values())) if exclude else scope

    def only(self, did: int) -> Scope:
        """Just this document."""
        from trivet.stores.sqlite.scope import Scope

        return Scope.of([did], did)

    def problems(self) -> list[str]:
        """Do the counts every search relies on agree with the rows?"""
        self.state()  # refuses a collection that was dropped
        # One statement sees one moment: another process may be writing.
        row = self._all(
            "SELECT c.documents, (SELECT count(*) FROM documents d WHERE d.cid = c.cid), "
            "c.passages, (SELECT count(*) FROM passages p WHERE p.cid = c.cid), "
            "coalesce(m.vectors, 0), (SELECT count(*) FROM vectors v WHERE v.mid = m.mid), "
            "(SELECT count(*) FROM documents d WHERE d.cid = c.cid "
            "AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.did = d.did)) "
            "FROM collections c LEFT JOIN models m ON m.mid = c.mid WHERE c.cid = ?",
            (self.cid,),
        )[0]
        found: list[str] = []
        for name, kept, rows in (("documents", *row[0:2]), ("passages", *row[2:4]), ("vectors", *row[4:6])):
            if rows != kept:
                found.append(f"{name}: the count says {kept:,}, there are {rows:,}")
        if lost := row[6]:
            found.append(f"documents: {lost:,} have no passage and cannot be found")
        return found

    def _scope_of(self, where: Filter, size: int, version: int) -> Scope:

        with self._lock:
            if version != self._scopes_version:
                self._scopes.clear()
                self._scopes_version = version
            elif where in self._scopes:
                self._scopes.move_to_end(where)
                return self._scopes[where]
        self.check_fields(where)
        scope = self._mask(where, size)
        with self._lock:
            # an access is no news, so a version does not tell when a mask made of access times is out of date
            if version == self._scopes_version and not any(field == "accessed" for field, _ in fields_of(where)):
                self._scopes[where] = scope
                if len(self._scopes) > SCOPES_KEPT:
                    self._scopes.popitem(last=False)
        return scope

    def _mask(self, where: Filter, size: int) -> Scope:
        """What is not something is a mask turned over: most filters with a "not" leave out a few of very many."""
        from trivet.stores.sqlite.scope import Scope

        match where:
            case Not(part):
                return Scope.everything(size).without(self.matching(part))
            case And(parts) if any(isinstance(part, Not) for part in parts):
                rest = tuple(part for part in parts if not isinstance(part, Not))
                left_out = [did for part in parts if isinstance(part, Not) for did in self.matching(part.part)]
                return (self._mask(And(rest), size) if rest else Scope.everything(size)).without(left_out)
            case And((part,)):
                return self._mask(part, size)
        return Scope.of(self.matching(where), size)

    # --- links that change recall -----------------------------------------------------------------------------------

    def has_chains(self, version: int) -> bool:
        """Is there any link that changes recall? Looked up once a version: a search without them pays nothing."""
        known, found = self._chained
        if known != version:
            with self._database.explained():
                found = chains.any_that_count(self._database.read(), self.cid)
            self._chained = (version, found)
        return found

    def successors(self, dids: Sequence[int]) -> list[Succession]:
        with self._database.explained():
            return chains.successors(self._database.read(), self.cid, dids)

    def resolutions(self, dids: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        with self._database.explained():
            return chains.resolutions(self._database.read(), self.cid, dids)

    def first_passages(self, dids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
        with self._database.explained():
            return chains.first_passages(self._database.read(), dids)

    # --- what the projections read ----------------------------------------------------------------------------------

    # The unary plus keeps SQLite from taking the collection's index, which would read all of it: what is new stands at
    # the end of the table, by its row number.

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        spans = self._all(
            "SELECT pid, did, start, stop FROM passages WHERE +cid = ? AND pid > ? ORDER BY pid LIMIT ?",
            (self.cid, pid, limit),
        )
        return self._texts(spans)

    def passages(self, pids: Sequence[int]) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) of those that are there."""
        spans = self.fetch_spans(pids).items()
        return self._texts([(pid, did, start, stop) for pid, (did, _, start, stop) in spans])

    def passage_texts(self, pids: Sequence[int]) -> dict[int, str]:
        """pid → title and text, as the legs see them."""
        return {pid: f"{title}\n{text}" if title else text for pid, _, title, text in self.passages(pids)}

    def _texts(self, spans: Sequence[tuple[Any, ...]]) -> list[tuple[int, int, str, str]]:
        """A long document's text is read once, however many passages it has."""
        texts: dict[int, tuple[str, str]] = {}
        dids = sorted({span[1] for span in spans})
        for start in range(0, len(dids), 500):
            chunk = dids[start : start + 500]
            marks = ", ".join("?" * len(chunk))
            for did, title, text in self._all(f"SELECT did, title, text FROM documents WHERE did IN ({marks})", chunk):
                texts[did] = (title, text)
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def count_after(self, pid: int) -> int:
        return int(self._all("SELECT count(*) FROM passages WHERE +cid = ? AND pid > ?", (self.cid, pid))[0][0])

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return [
            (seq, pid)
            for seq, pid in self._all(
                "SELECT seq, pid FROM removed WHERE +cid = ? AND seq > ? ORDER BY seq", (self.cid, seq)
            )
        ]

    def newest(self) -> tuple[int, int]:
        return self._counters("passage", "removed")

    def _counters(self, one: str, other: str) -> tuple[int, int]:
        found = dict(self._all("SELECT name, value FROM counters", ()))
        return found[one], found[other]

    def newest_vector(self) -> tuple[int, int]:
        return self._counters("vector", "removed")

    def vectors_after(self, mid: int, vid: int) -> tuple[int, list[int], list[int], bytes]:
        rows = self._all(
            "SELECT v.vid, v.pid, p.did, v.data FROM vectors v JOIN passages p ON p.pid = v.pid "
            "WHERE v.vid > ? AND +v.mid = ? ORDER BY v.vid",
            (vid, mid),
        )
        # Asked after the vectors were read: a model that is still there had all of them then.
        if not self._all("SELECT 1 FROM models WHERE mid = ?", (mid,)):
            raise ModelReplacedError(f"collection: {self.name!r} was re-embedded with another model meanwhile")
        if not rows:
            return vid, [], [], b""
        return rows[-1][0], [row[1] for row in rows], [row[2] for row in rows], b"".join(row[3] for row in rows)

    # --- finding: what the legs ask ---------------------------------------------------------------------------------

    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        index = self.words()
        index.catch_up(version)
        return index.healed(lambda: index.bm25(query, match, depth, scope))

    def is_current(self, leg: str, state: State) -> bool:
        """Would this leg only have to look, with nothing to read or to write first?"""
        index: TermIndex | VectorIndex | GraphIndex | None = self._words if leg == "lexical" else self._trigrams
        if leg == "graph":
            index = self._graph
        if leg == "dense":
            index = self._meanings.get(state.model.mid) if state.model is not None else None
        return index is not None and index.is_current(state.version)

    @property
    def spelling(self) -> Shelf:
        return self

    def find_trigrams(self, terms: Sequence[str], depth: int, scope: Scope | None, version: int) -> list[Found]:
        index = self.trigrams()
        index.catch_up(version)
        return index.healed(lambda: index.likeliest([_dense(term) for term in terms], depth, scope))

    def find_near(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        index = self.meaning(model)
        index.catch_up(version)
        if index.wants_compacting and not self._compacting.is_set():
            self._compacting.set()
            self.store.start(self._compact, index)
        return index.best(vector, depth, scope)

    def _compact(self, index: VectorIndex) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                index.compact()
        finally:
            self._compacting.clear()

    def graph(self, version: int) -> Graph:
        """Who names what. Much that is new is read in the background: a search does not wait minutes for a leg."""
        index = self.concepts()
        if not index.is_current(version) and (self._reading.is_set() or index.behind > MANY_BEHIND):
            self.read_connections()
            raise StoreError(f"its connections are being read ({index.behind:,} passages to go); it answers after that")
        found = index.graph(version)
        if index.wants_settling and not self._settling.is_set():
            self._settling.set()
            self.store.start(self._settle, index)
        return found

    def read_connections(self) -> None:
        """Bring the graph up to date in the background."""
        if not self._reading.is_set():
            self._reading.set()
            self.store.start(self._read_connections)

    def _read_connections(self) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                self._connect()
        finally:
            self._reading.clear()

    def _connect(self) -> None:
        index = self.concepts()
        index.catch_up(self.state().version)
        index.settle(at_least=1_000)

    def _settle(self, index: GraphIndex) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                index.settle()
        finally:
            self._settling.clear()

    def ties(self, dids: Sequence[int], version: int) -> list[Tie]:
        from trivet.stores.sqlite import ties

        with self._database.explained():
            connection = self._database.read()
            known, linked = self._linked
            if known != version:
                linked = ties.any_links(connection, self.cid)
                self._linked = (version, linked)
            return ties.ties(connection, self.cid, dids, linked)

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        """The triples of those documents that have some."""
        wanted = "SELECT value FROM json_each(?)"
        sql = f"SELECT did, meta FROM documents WHERE did IN ({wanted}) AND instr(meta, '\"triples\"')"
        rows = self._all(sql, (json.dumps(list(dids)),))
        return {did: triples_of(json.loads(meta)) for did, meta in rows}

    # --- projections ------------------------------------------------------------------------------------------------

    def words(self) -> TermIndex:
        from trivet.stores.sqlite.words import TermIndex

        with self._lock:
            if self._words is None:
                self._words = TermIndex(
                    self._folder / "words", self, self.analyzer.line, f"{self.analyzer.id}/{self._uid}"
                )
            return self._words

    def trigrams(self) -> TermIndex:
        from trivet.stores.sqlite.words import TermIndex

        with self._lock:
            if self._trigrams is None:
                self._trigrams = TermIndex(
                    self._folder / "trigrams", self, _trigram_line, f"pg_trgm/1/{self._uid}", positions=False
                )
            return self._trigrams

    def concepts(self) -> GraphIndex:
        from trivet.stores.sqlite.graph import GraphIndex

        with self._lock:
            if self._graph is None:
                identity = f"{self.analyzer.id}/{self._uid}"
                self._graph = GraphIndex(self._folder / "graph", self, identity, self.analyzer.stop_words)
            return self._graph

    def meaning(self, model: Model) -> VectorIndex:
        from trivet.stores.sqlite.meaning import VectorIndex

        with self._lock:
            if model.mid not in self._meanings:
                source = _Vectors(self, model.mid)
                self._meanings[model.mid] = VectorIndex(
                    self._folder / f"meaning-{model.mid}", source, model.dim, f"{model.id}/{self._uid}"
                )
            return self._meanings[model.mid]

    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None:
        """Bring the projections on disk up to date now, so that no search has to wait for it."""
        self.tidy_words(progress)
        state = self.state()
        if state.model is not None and state.model.vectors:
            meaning = self.meaning(state.model)
            meaning.catch_up(state.version)
            meaning.compact(at_least=1_000)
        if graph or self._graph is not None:  # in use
            self._connect()

    def tidy_words(self, progress: Progress | None = None) -> None:
        self.words().catch_up(self.state().version, progress)

    def verify(self) -> tuple[list[str], dict[str, int]]:
        """What is wrong with the rows or the projections, and how many of each were looked at."""
        problems = self.problems()
        words = self.words()
        for _ in range(10):  # until nobody wrote in between: two moments must not be compared
            state = self.state()
            words.catch_up(state.version)
            indexed = words.size
            if self.state().version == state.version:
                break
        else:
            indexed = state.passages  # no quiet moment: there is nothing to compare
        checked = {"documents": state.documents, "passages": state.passages, "words": indexed}
        problems += self.projection_problems()
        if indexed != state.passages:
            problems.append(f"words: {indexed:,} passages indexed, {state.passages:,} stored; run rebuild")
        if state.model is not None:
            self.meaning(state.model).catch_up(state.version)
            checked["vectors"] = state.model.vectors
        return problems, checked

    def projection_problems(self) -> list[str]:
        """Damaged files of the projections that are on disk."""
        self._look_at_projections()
        indexes = (self._words, self._trigrams, self._graph, *self._meanings.values())
        return [told for index in indexes if index is not None for told in index.problems()]

    def discard_projections(self) -> None:
        """Forget and delete every projection; the next search builds them from the truth."""
        with self._lock:
            for index in (self._words, self._trigrams, self._graph, *self._meanings.values()):
                if index is not None:
                    index.discard()
            self._words = self._trigrams = self._graph = None
            self._meanings.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- embedding --------------------------------------------------------------------------------------------------

    def unembedded(self, mid: int) -> int:
        """Passages without a vector of this model."""
        sql = "SELECT c.passages - m.vectors FROM collections c JOIN models m ON m.cid = c.cid WHERE m.mid = ?"
        rows = self._all(sql, (mid,))
        return int(rows[0][0]) if rows else 0

    def next_pending(self, mid: int, after: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) of passages this model has not seen."""
        sql = (
            "SELECT pid, did, start, stop FROM passages p WHERE +p.cid = ? AND pid > ? AND NOT EXISTS "
            f"{_HAS_VECTOR} ORDER BY pid LIMIT ?"
        )
        return self._texts(self._all(sql, (self.cid, after, mid, limit)))

    def known_vectors(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        """(pid, vector) for passages whose text another passage has an embedding of: nothing is embedded twice."""
        among = "" if pids is None else "AND p.pid IN (SELECT value FROM json_each(?3)) "
        rows = self._all(
            "SELECT p.pid, (SELECT v.data FROM passages q JOIN vectors v ON v.pid = q.pid AND v.mid = ?1 "
            "WHERE q.cid = p.cid AND q.hash = p.hash LIMIT 1) AS data "
            f"FROM passages p WHERE p.cid = ?2 {among}"
            "AND NOT EXISTS (SELECT 1 FROM vectors w WHERE w.mid = ?1 AND w.pid = p.pid)",
            (mid, self.cid) if pids is None else (mid, self.cid, json.dumps(list(pids))),
        )
        return [(pid, data) for pid, data in rows if data is not None]

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self.changing() as connection:
            records.add_vectors(connection, mid, vectors)

    def passages_of(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        rows = self._all(
            "SELECT pid, did, ordinal, start, stop, hash FROM passages "
            "WHERE did IN (SELECT value FROM json_each(?)) ORDER BY did, ordinal",
            (json.dumps(list(dids)),),
        )
        return [(pid, did, ordinal, start, stop, digest) for pid, did, ordinal, start, stop, digest in rows]

    def vectors_of(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """did → hash of a passage's text → its vector."""
        rows = self._all(
            "SELECT p.did, p.hash, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid "
            "WHERE p.did IN (SELECT value FROM json_each(?))",
            (mid, json.dumps(list(dids))),
        )
        found: dict[int, dict[bytes, bytes]] = {}
        for did, digest, data in rows:
            found.setdefault(did, {})[digest] = data
        return found

    @contextlib.contextmanager
    def embedding(self) -> Iterator[bool]:
        """May this process work the backlog off? One does at a time."""
        lock = self.store.index_folder / f"embed-{self.cid}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = FileLock(lock, timeout=0).acquire()
        except Timeout:
            yield False
            return
        with held:
            yield True

    def sole_vectors(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        """did → vector, for documents of a single passage: of a longer one no vector stands for the whole."""
        found: dict[int, bytes] = {}
        for start in range(0, len(dids), 500):
            chunk = list(dids[start : start + 500])
            marks = ", ".join("?" * len(chunk))
            rows = self._all(
                "SELECT p.did, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid "
                f"WHERE p.did IN ({marks}) AND (SELECT count(*) FROM passages q WHERE q.did = p.did) = 1",
                (mid, *chunk),
            )
            found.update(rows)
        return found


def _dense(trigram: str) -> str:
    """A trigram as one word: the index splits at blanks, and no trigram of letters and digits holds an underscore."""
    return trigram.replace(" ", "_")


def _trigram_line(text: str) -> str:
    from trivet.trigrams import trigrams

    return " ".join(_dense(trigram) for trigram in dict.fromkeys(trigrams(text)))


_HAS_VECTOR = "(SELECT 1 FROM vectors v WHERE v.mid = ? AND v.pid = p.pid)"


@dataclass(frozen=True, slots=True)
class _Vectors:
    """One model's vectors of a shelf, as a projection reads them."""

    shelf: Shelf
    mid: int

    def vectors_after(self, vid: int) -> tuple[int, list[int], list[int], bytes]:
        return self.shelf.vectors_after(self.mid, vid)

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return self.shelf.removed_after(seq)

    def newest(self) -> tuple[int, int]:
        return self.shelf.newest_vector()
