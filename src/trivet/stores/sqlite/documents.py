"""The documents of one collection: written, deleted, read and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from trivet.errors import NotFoundError, TrivetError
from trivet.filters import Filter
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.contract import Counts, Prepared, Span, Written
from trivet.stores.expiry import is_alive
from trivet.stores.scoped import allowed, check_ends, ends
from trivet.stores.sqlite import document_writes, facets
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.stores.sqlite.filters import Visibility
from trivet.stores.sqlite.imports import SqliteImportLog
from trivet.stores.sqlite.rows import (
    COLUMNS,
    EXPIRED,
    CollectionRows,
    document_of,
    fetch,
    fetch_spans,
    find,
    first_spans,
    visible,
)
from trivet.stores.sqlite.sessions import SqliteSessions
from trivet.types import Document, Facet, Period

PAGE = 500  # documents that ``scan`` reads at a time


class SqliteDocuments:
    """The documents and passages of one collection."""

    def __init__(
        self,
        rows: CollectionRows,
        visibility: Visibility,
        imports: SqliteImportLog,
        before_write: Callable[[], None],
        removed: Callable[[int], None],
        start: Start,
    ) -> None:
        """``before_write`` opens the indexes on disk; ``removed`` is told how many documents were removed."""
        self._rows, self._cid, self._all, self._visibility = rows, rows.cid, rows.all, visibility
        self._read, self._explained = rows.database.read, rows.explained
        self._imports, self._before_write, self._removed = imports, before_write, removed
        self.numbers, self.fields = visibility.numbers, visibility.fields
        self.adjacent = SqliteSessions(rows).adjacent
        self.swept: Callable[[list[int]], None] = lambda dids: None
        if not rows.database.read_only:  # where the store is closed or busy, a later sweep does it
            visibility.on_expired = BackgroundTask(start, lambda: self.sweep(), TrivetError).start

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        self._prepare()
        with self._rows.write() as connection:
            written = document_writes.write(connection, self._cid, mid, batch, _now(), within)
            if written.added or written.updated:  # else no index has anything to read
                self._rows.raise_version(connection)
        self._removed(written.updated)
        return written

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
        # one transaction: two processes that add the same at once store it once
        self._prepare()
        cid, now = self._cid, _now()
        with self._rows.changing() as connection:
            known = find(connection, cid, item.document.id) if named else None
            if known is not None and allowed(known, within):
                duplicate = known if same(known) else None
            elif known is not None:
                duplicate = None
            else:
                duplicate = document_writes.find_duplicate(
                    connection, cid, item, lambda other: allowed(other, within) and same(other), likely
                )
            if duplicate is None:
                return item.document.id, document_writes.write(connection, cid, mid, [item], now, within)
            document_writes.count_access(connection, cid, [duplicate.id], now)
            document_writes.set_importance(connection, cid, duplicate.id, importance(duplicate.importance))
            document_writes.prolong(connection, cid, duplicate.id, item.document.expires)
            links = [replace(link, source=duplicate.id) for link in item.links or ()]
            if within is not None:  # else a link may lead to a document that is added later
                check_ends(links, visible(connection, cid, ends(links), within), self._rows.name)
            document_writes.add_links(connection, cid, links)
            return duplicate.id, None

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        self._prepare()
        with self._rows.changing() as connection:
            known = find(connection, self._cid, id)
            if known is None or not allowed(known, within):
                raise NotFoundError(f"id: document {id!r} not found in collection {self._rows.name!r}")
            return document_writes.write(connection, self._cid, mid, [change(known)], _now(), within)

    def _prepare(self) -> None:
        self._before_write()
        self.sweep_expired()

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        self.sweep_expired()
        with self._rows.changing() as connection:
            sql, values = compile_filter(where, self._cid)
            dids = [did for (did,) in connection.execute(sql, values)]
            document_writes.remove(connection, self._cid, dids, feedback)
        if feedback:
            self._imports.clear()  # it holds ids
        self._removed(len(dids))
        return dids

    def sweep(self) -> list[int]:
        with self._rows.write() as connection:
            dids = [did for (did,) in connection.execute(EXPIRED, (self._cid, time.time()))]
            if dids:
                document_writes.remove(connection, self._cid, dids, feedback=True)
                self._rows.raise_version(connection)
        if dids:
            self._imports.clear()
            self.swept(dids)
            self._removed(len(dids))
        return dids

    def sweep_expired(self) -> None:
        """Sweep if anything has expired: an id that comes again is a new document, and no link leads to the old one."""
        if self._visibility.last_expired() is not None:
            self.sweep()

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        self.sweep_expired()
        with self._rows.noting() as connection:
            seen = ids if within is None else list(visible(connection, self._cid, ids, within))
            return document_writes.count_access(connection, self._cid, seen, _now())

    # --- reading ------------------------------------------------------------------------------------------------------

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        with self._explained():
            found = fetch(self._read(), dids)
        return {did: document for did, document in found.items() if document.expires is None or is_alive(document)}

    def spans(self, pids: Sequence[int]) -> dict[int, Span]:
        with self._explained():
            return fetch_spans(self._read(), pids)

    def first_spans(self, dids: Sequence[int]) -> dict[int, Span]:
        with self._explained():
            return first_spans(self._read(), dids)

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        sql = "SELECT pid, did, hash FROM passages WHERE pid IN (SELECT value FROM json_each(?)) AND +cid = ?"
        return {pid: (did, digest) for pid, did, digest in self._all(sql, (json.dumps(list(pids)), self._cid))}

    def passages(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        rows = self._all(
            "SELECT pid, did, ordinal, start, stop, hash FROM passages "
            "WHERE did IN (SELECT value FROM json_each(?)) ORDER BY did, ordinal",
            (json.dumps(list(dids)),),
        )
        return [(pid, did, ordinal, start, stop, digest) for pid, did, ordinal, start, stop, digest in rows]

    def scan(self, where: Filter | None = None) -> Iterator[Document]:
        # page by page, so that no read transaction stays open
        last = 0
        while found := self.page(where, last, PAGE):
            last = found[-1][0]
            yield from (document for _, document in found)

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        # a document keeps its number and a new one gets a higher one: the next page skips and repeats nothing
        condition, values = self._visibility.condition(where)
        sql = f"SELECT {COLUMNS} FROM documents WHERE +cid = ? AND did > ?{condition} ORDER BY did LIMIT ?"
        rows = self._all(sql, (self._cid, after, *values, limit))
        return [(row[0], document_of(row)) for row in rows]

    def order_of(self, did: int) -> int:
        return did

    # --- counting -----------------------------------------------------------------------------------------------------

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        with self._explained():
            return facets.texts(self._read(), self._cid, limit, self._visibility.condition(where))

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        with self._rows.snapshot():
            condition = self._visibility.condition(where)
            connection = self._read()
            found = [facets.kinds(connection, self._cid, condition, values)]
            for key in self.fields():
                facet = facets.facet(connection, self._cid, key, condition, values)
                found += [facet] if facet.documents else []
                if len(found) > most:
                    break
            return found

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        with self._explained():
            return facets.timeline(self._read(), self._cid, column, step, self._visibility.condition(where))

    def counts(self, where: Filter | None = None) -> Counts:
        with self._rows.snapshot():
            state = self._rows.snapshot_state()
            where = self._visibility.unexpired(where)
            if where is None:
                ((links,),) = self._all("SELECT count(*) FROM links WHERE cid = ?", (self._cid,))
                return Counts(state.documents, state.passages, state.model.vectors if state.model else 0, links)
            condition, values = self._visibility.condition(where)
            mid = state.model.mid if state.model else None
            return Counts(*facets.counts(self._read(), self._cid, mid, (condition, values)), self._links(where))

    def _links(self, where: Filter) -> int:
        """Count the links both of whose ends the filter allows."""
        ends = self._all("SELECT source, target FROM links WHERE cid = ?", (self._cid,))
        hidden = self._visibility.hidden([id for link in ends for id in link], where)
        return sum(source not in hidden and target not in hidden for source, target in ends)


def _now() -> float:
    return datetime.now(UTC).timestamp()
