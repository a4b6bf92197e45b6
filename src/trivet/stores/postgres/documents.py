"""The documents of a collection on a PostgreSQL server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trivet.errors import NotFoundError
from trivet.filters import Filter
from trivet.stores.contract import Counts, Prepared, Span, Written
from trivet.stores.expiry import is_alive
from trivet.stores.postgres import document_rows, facets, link_rows, removals
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.filter_sql import matching
from trivet.stores.postgres.links import PostgresLinks
from trivet.stores.postgres.rows import Rows, in_one_snapshot
from trivet.stores.postgres.sessions import PostgresSessions
from trivet.stores.postgres.timeline import Timeline
from trivet.stores.postgres.visibility import Visibility
from trivet.stores.scoped import allowed, check_ends, ends
from trivet.types import Document, Facet, Period

BATCH = 500  # documents read at a time


class PostgresDocuments:
    """The documents of one collection and their passages."""

    def __init__(
        self, rows: Rows, timeline: Timeline, expiry: Expiry, visibility: Visibility, links: PostgresLinks
    ) -> None:
        self._rows, self._timeline, self._expiry, self._visibility = rows, timeline, expiry, visibility
        self._links = links
        self.sweep = expiry.sweep
        sessions = PostgresSessions(rows)
        self.adjacent, self.drop_caches = sessions.adjacent, sessions.drop_caches

    @property
    def swept(self) -> Callable[[list[int]], None]:
        """Called with the numbers of the documents that a sweep has removed."""
        return self._expiry.swept

    @swept.setter
    def swept(self, call: Callable[[list[int]], None]) -> None:
        self._expiry.swept = call

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        self._expiry.sweep_before_write()
        with self._rows.changing() as transaction:
            return document_rows.write(transaction, mid, batch, within)

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
        self._expiry.sweep_before_write()
        with self._rows.changing() as transaction:
            known = document_rows.find(transaction, item.document.id) if named else None
            if known is not None and allowed(known, within):
                duplicate = known if same(known) else None
            elif known is not None:
                duplicate = None
            else:
                duplicate = document_rows.find_duplicate(
                    transaction, item, lambda other: allowed(other, within) and same(other), likely
                )
            if duplicate is None:
                return item.document.id, document_rows.write(transaction, mid, [item], within)
            document_rows.reinforce(transaction, duplicate, importance(duplicate.importance), item.document.expires)
            moved = [replace(link, source=duplicate.id) for link in item.links or ()]
            if within is not None:
                check_ends(moved, document_rows.visible(transaction, ends(moved), within), self._rows.name)
            link_rows.add(transaction, moved)
            return duplicate.id, None

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        self._expiry.sweep_before_write()
        with self._rows.changing() as transaction:
            known = document_rows.find(transaction, id)
            if known is None or not allowed(known, within):
                raise NotFoundError(f"id: document {id!r} not found in collection {self._rows.name!r}")
            return document_rows.write(transaction, mid, [change(known)], within)

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        self._expiry.sweep_before_write()
        with self._rows.changing() as transaction:
            dids = matching(transaction.all, transaction.tables, where)
            removals.remove(transaction, dids, feedback)
        return dids

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        self._expiry.sweep_before_write()
        with self._rows.locked() as transaction:
            seen = ids if within is None else list(document_rows.visible(transaction, ids, within))
            return document_rows.touch(transaction, seen)

    # --- reading by number --------------------------------------------------------------------------------------------

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        alive = f" AND (expires IS NULL OR expires > {time.time()!r})"
        return dict(self._rows.by_id(f"SELECT id, did FROM {self._rows.tables.documents}", "id", ids, alive))

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        rows = self._rows.by_number(f"SELECT {document_rows.COLUMNS} FROM {self._rows.tables.documents}", "did", dids)
        found = {row[0]: document_rows.document_of(row) for row in rows}
        return {did: document for did, document in found.items() if is_alive(document)}

    def spans(self, pids: Sequence[int]) -> dict[int, Span]:
        rows = self._passages("pid, did, ordinal, start, stop", "pid", pids)
        return {pid: (did, ordinal, start, stop) for pid, did, ordinal, start, stop in rows}

    def first_spans(self, dids: Sequence[int]) -> dict[int, Span]:
        rows = self._passages("did, ordinal, start, stop", "did", dids, " AND ordinal = 0")
        return {did: (did, ordinal, start, stop) for did, ordinal, start, stop in rows}

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        return {pid: (did, bytes(digest)) for pid, did, digest in self._passages("pid, did, hash", "pid", pids)}

    def passages(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        rows = self._passages("pid, did, ordinal, start, stop, hash", "did", dids)
        return [(*row[:5], bytes(row[5])) for row in sorted(rows, key=lambda row: (row[1], row[2]))]

    def _passages(self, columns: str, column: str, numbers: Sequence[int], tail: str = "") -> list[tuple[Any, ...]]:
        return self._rows.by_number(f"SELECT {columns} FROM {self._rows.tables.passages}", column, numbers, tail)

    def order_of(self, did: int) -> int:
        return did // self._rows.tables.step

    # --- reading what a filter allows ---------------------------------------------------------------------------------

    def scan(self, where: Filter | None = None) -> Iterator[Document]:
        last = 0
        while rows := self.page(where, last, BATCH):
            last = rows[-1][0]
            yield from (document for _, document in rows)

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        rows = self._first(document_rows.COLUMNS, "d.did > %s", (after,), where, limit)
        return [(row[0], document_rows.document_of(row)) for row in rows]

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return [(id, text) for _, id, text in self._first("d.did, d.id, d.text", "d.text <> ''", (), where, limit)]

    def _first(
        self, columns: str, test: str, values: Sequence[Any], where: Filter | None, limit: int
    ) -> list[tuple[Any, ...]]:
        """Read the first documents, by number, that pass a test and that the filter allows."""
        tables, (condition, bound) = self._rows.tables, self._visibility.condition(where)
        sql = f"SELECT {columns} FROM {tables.documents} d WHERE {tables.of('d')} AND {test}{condition}"
        return self._rows.all(f"{sql} ORDER BY d.did LIMIT %s", (*values, *bound, limit))

    @in_one_snapshot
    def counts(self, where: Filter | None = None) -> Counts:
        state, where, tables = self._timeline.read(), self._visibility.unexpired(where), self._rows.tables
        if where is None:
            ((linked,),) = self._rows.all(f"SELECT count(*) FROM links WHERE cid = {tables.root}")
            return Counts(state.documents, state.passages, state.model.vectors if state.model else 0, int(linked))
        condition, values = self._visibility.condition(where)
        counted = [(tables.documents, ""), (tables.passages, "")]
        if state.model:
            counted.append((tables.vectors, f" AND d.mid = {int(state.model.mid)}"))
        sums = [
            int(self._rows.all(f"SELECT count(*) FROM {table} d WHERE {tables.of('d')}{test}{condition}", values)[0][0])
            for table, test in counted
        ]
        return Counts(sums[0], sums[1], sums[2] if state.model else 0, len(self._links.of(None, where)))

    def fields(self, where: Filter | None = None) -> list[str]:
        """Return the metadata keys that the filter allows, by one look-up for each key in use."""
        found: list[str] = []
        tables, last = self._rows.tables, ""
        sql = f"SELECT key FROM {tables.fields} WHERE {tables.of()} AND key > %s ORDER BY key LIMIT 1"
        while row := self._rows.all(sql, (last,)):
            last = row[0][0]
            found.append(last)
        where = self._visibility.unexpired(where)
        return [key for key in found if where is None or self._visibility.has_field(key, where)]

    @in_one_snapshot
    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        condition, tables = self._visibility.condition(where), self._rows.tables
        found = [facets.kinds(self._rows.all, tables, condition, values)]
        keys = self.fields(where)[:most]
        return found + [facets.facet(self._rows.all, key, tables, condition, values) for key in keys]

    @in_one_snapshot
    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        condition = self._visibility.condition(where)
        return facets.timeline(self._rows.all, column, step, self._rows.tables, condition)
