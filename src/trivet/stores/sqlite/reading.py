"""What does the truth say of one collection?

Its state and its records, read: for callers, for a page of hits, and for whoever counts.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from trivet.analysis import Analyzer
from trivet.errors import NotFoundError, StoreReplacedError
from trivet.filters import Filter
from trivet.stores.contract import Change, Counts, Model, State
from trivet.stores.expiring import is_alive, unexpired
from trivet.stores.sqlite import chains, expiries, facets, feedback, history, records
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.types import Document, Facet, Feedback, Link, Period, Resolutions, Successions

if TYPE_CHECKING:
    from trivet.stores.sqlite.store import SqliteStore


_STATE = (
    "SELECT c.version, t.token, c.settings, c.documents, c.passages, m.mid, m.id, m.spec, m.dim, m.vectors "
    "FROM collections c JOIN timeline t ON t.cid = c.cid AND t.version = c.version "
    "LEFT JOIN models m ON m.mid = c.mid WHERE c.cid = ?"
)


PAGE = 500  # documents read at a time where all of them are


class Reading:
    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        self._uid = f"{uid}/{store.database.generation}"  # what belongs to this collection of this life of the file
        self.store, self.cid, self.name, self.config = store, cid, name, dict(config)
        self.analyzer = Analyzer(self.config.get("language", "en"))
        self._database = store.database
        self._folder = store.index_folder / f"c{cid}"
        self._lock = threading.Lock()
        self._timeline, self._last = threading.Lock(), (-1, b"")  # the newest version seen, and its token
        self._chained = (-1, False)  # at which version: is there a link that changes recall?

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    def snapshot(self) -> AbstractContextManager[None]:
        return self._database.snapshot()

    def state(self) -> State:
        """Return the state; refuse one of another timeline than what was read of this collection before."""
        if self._database.in_snapshot:  # of a moment ago: another thread may have seen a later one
            return self._state()
        self._database.check_file()
        with self._timeline:  # one after another: a state that was read earlier must not look like one set back
            state = self._state()
            self._follow_timeline(state.version, state.token)
        return state

    def _state(self) -> State:
        row = self._all(_STATE, (self.cid,))
        if not row:
            raise NotFoundError(f"collection: {self.name!r} was dropped")
        version, token, settings, documents, passages, *model = row[0]
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model), token)

    def _follow_timeline(self, version: int, token: bytes) -> None:
        """Refuse a version that does not come after the last one that was seen: a backup was copied into the file."""
        last, seen = self._last
        if (version, token) == (last, seen):
            return
        if last >= 0:
            rows = self._all("SELECT token FROM timeline WHERE cid = ? AND version = ?", (self.cid, last))
            if version < last or (rows and rows[0][0] != seen):
                told = f"store: {str(self._database.path)!r}: another state was put in its place while it was open"
                raise StoreReplacedError(f"{told} (a restored backup?); open it again")
            if not rows:  # so far behind that nobody can tell: nothing that was kept in memory is trusted
                self._forget()
        self._last = (version, token)

    def _forget(self) -> None:
        """Drop what is remembered of earlier states."""
        self._chained = (-1, False)

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

    def model_id(self, mid: int) -> str:
        rows = self._all("SELECT id FROM models WHERE mid = ?", (mid,))
        return str(rows[0][0]) if rows else ""

    def _unexpired(self, where: Filter | None) -> Filter | None:
        """Return the filter, and not expired; the same filter where nothing has expired."""
        ((passed,),) = self._all(expiries.PASSED, (self.cid, time.time()))
        if passed is not None:
            self._notice_expired()
        return unexpired(where, passed)

    def _notice_expired(self) -> None:
        """Documents whose time has passed are still there; a shelf that can be written sweeps them."""

    def links_of(self, identifier: str | None = None, where: Filter | None = None) -> list[Link]:
        """Links from or to a document, every link without one; both of whose ends the filter allows."""
        sql = "SELECT source, target, type, weight FROM links WHERE cid = ?"
        values: tuple[Any, ...] = (self.cid,)
        if identifier is not None:
            sql = f"{sql} AND source = ? UNION {sql} AND target = ?"
            values = (self.cid, identifier, self.cid, identifier)
        with self.snapshot():
            found = [Link(*row) for row in self._all(f"{sql} ORDER BY source, target, type", values)]
            hidden = self._hidden([end for link in found for end in (link.source, link.target)], where)
        return [link for link in found if link.source not in hidden and link.target not in hidden]

    def _hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Return those of the ids that may not be seen. Without a filter, an id that is not here may."""
        wanted, allowed = list(dict.fromkeys(ids)), self._unexpired(where)
        if allowed is None:
            return set()
        with self._database.explained():
            connection = self._database.read()
            seen = records.visible(connection, self.cid, wanted, allowed)
            there = set(wanted) if where is not None else records.visible(connection, self.cid, wanted, None)
        return there - seen

    def feedbacks(self, where: Filter | None = None) -> list[Feedback]:
        self.state()  # refuses a collection that was dropped
        with self.snapshot():
            found = feedback.read(self._database.read(), self.cid)
            hidden = self._hidden([item.id for item in found], where)
        return [item for item in found if item.id not in hidden]

    def dids(self, ids: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(ids), 500):
            chunk = list(ids[start : start + 500])
            marks = ", ".join("?" * len(chunk))
            sql = f"SELECT id, did FROM documents WHERE cid = ? AND id IN ({marks}) AND did NOT IN ({expiries.GONE})"
            found.update(self._all(sql, (self.cid, *chunk, self.cid, time.time())))
        return found

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        with self._database.explained():
            found = records.fetch(self._database.read(), dids)
        return {did: document for did, document in found.items() if is_alive(document)}

    def fetch_spans(self, pids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
        with self._database.explained():
            return records.fetch_spans(self._database.read(), pids)

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        """Every document, by row number, a page at a time so that no read transaction stays open."""
        last = 0
        while found := self.page(where, last, PAGE):
            last = found[-1][0]
            yield from (document for _, document in found)

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        """(row number, document) of those behind a row number, in its order. A document keeps its number for good and
        a new one gets a higher one: whoever goes on from the last number skips nothing and sees nothing twice."""
        condition, values = self._within(where)
        sql = f"SELECT {records.COLUMNS} FROM documents WHERE +cid = ? AND did > ?{condition} ORDER BY did LIMIT ?"
        return [(row[0], records.document_of(row)) for row in self._all(sql, (self.cid, after, *values, limit))]

    def _within(self, where: Filter | None) -> facets.Condition:
        """Return the condition on ``did`` that the filter makes, and values; without what has expired."""
        where = self._unexpired(where)
        if where is None:
            return "", ()
        sql, values = compile_filter(where, self.cid)
        return f" AND did IN ({sql})", values

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        """The kinds first, then every field of the metadata that a document has, ``most`` of them."""
        with self.snapshot():
            within = self._within(where)
            connection = self._database.read()
            found = [facets.kinds(connection, self.cid, within, values)]
            for key in self.fields():
                facet = facets.facet(connection, self.cid, key, within, values)
                found += [facet] if facet.documents else []
                if len(found) > most:
                    break
            return found

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        with self._database.explained():
            return facets.timeline(self._database.read(), self.cid, column, step, self._within(where))

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        """(id, id of what directly supersedes it), both of which the filter allows."""
        with self.snapshot():
            every = self._unexpired(where) is None
            found = facets.superseded(self._database.read(), self.cid, ids, limit if every else -1)
            hidden = self._hidden([end for pair in found for end in pair], where)
        return [pair for pair in found if hidden.isdisjoint(pair)][:limit]

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        with self._database.explained():
            return facets.texts(self._database.read(), self.cid, limit, self._within(where))

    def counts(self, where: Filter | None = None) -> Counts:
        with self.snapshot():
            state = self._state()
            mid = state.model.mid if state.model else None
            where = self._unexpired(where)
            if where is None:
                ((links,),) = self._all("SELECT count(*) FROM links WHERE cid = ?", (self.cid,))
                return Counts(state.documents, state.passages, state.model.vectors if state.model else 0, links)
            condition, values = self._within(where)
            sql = f"SELECT count(*) FROM documents WHERE cid = ?{condition}"
            ((documents,),) = self._all(sql, (self.cid, *values))
            ((passages, embedded),) = self._all(
                "SELECT count(*), count(v.vid) FROM passages LEFT JOIN vectors v ON v.mid = ? AND v.pid = passages.pid "
                f"WHERE cid = ?{condition}",
                (mid, self.cid, *values),
            )
            return Counts(documents, passages, embedded, len(self.links_of(None, where)))

    def count_any(self, where: Filter | None = None) -> bool:
        """Is there any document that the filter allows?"""
        condition, values = self._within(where)
        return bool(self._all(f"SELECT 1 FROM documents WHERE cid = ?{condition} LIMIT 1", (self.cid, *values)))

    def fields(self, where: Filter | None = None) -> list[str]:
        """The metadata keys in use; a skip-scan, one look-up a key, and one more where there is a filter."""
        found: list[str] = []
        sql = "SELECT key FROM fields WHERE cid = ? AND key > ? ORDER BY key LIMIT 1"
        while row := self._all(sql, (self.cid, found[-1] if found else "")):
            found.append(row[0][0])
        where = self._unexpired(where)
        return found if where is None else [key for key in found if self.has_field(key, where)]

    def has_field(self, key: str, where: Filter | None) -> bool:
        """Has any document that the filter allows this key in its metadata?"""
        condition, values = self._within(where)
        return bool(
            self._all(f"SELECT 1 FROM fields WHERE cid = ? AND key = ?{condition} LIMIT 1", (self.cid, key, *values))
        )

    def _all(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._database.explained():
            return self._database.read().execute(sql, tuple(values)).fetchall()

    def _newest(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The same of the newest state, also within a snapshot: an index that is brought up to date never goes back."""
        with self._database.explained():
            return self._database.newest().execute(sql, tuple(values)).fetchall()

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

    # --- links that change recall -----------------------------------------------------------------------------------

    def has_chains(self, version: int) -> bool:
        """Is there any link that changes recall? Looked up once a version: a search without them pays nothing."""
        known, found = self._chained
        if known != version:
            with self._database.explained():
                found = chains.any_that_count(self._database.read(), self.cid)
            self._chained = (version, found)
        return found

    def successors(self, dids: Sequence[int]) -> Successions:
        with self._database.explained():
            return chains.successors(self._database.read(), self.cid, dids)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        with self._database.explained():
            return chains.resolutions(self._database.read(), self.cid, dids)

    def first_passages(self, dids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
        with self._database.explained():
            return chains.first_passages(self._database.read(), dids)
