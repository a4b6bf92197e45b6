"""Which documents are there, which does a filter allow, and which are connected?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from trivet.errors import InputError
from trivet.filters import BUILT_IN_FIELDS, Filter, both, fields_of, split_field, unknown_field, without_field
from trivet.stores.contract import Counts, Rechecked, Span
from trivet.stores.expiring import is_alive, unexpired
from trivet.stores.postgres import facets, links, records
from trivet.stores.postgres.collection import Collection, of_one_state
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.filter_sql import compile_filter
from trivet.stores.postgres.parts import Part, Parts
from trivet.stores.postgres.scope import Scope
from trivet.stores.scoped import ends
from trivet.types import Document, Facet, Link, Period, Resolutions, Successions

SCOPES_KEPT = 64  # filters whose count is remembered until the next write
BATCH = 500  # documents read at a time


class Reading(Collection):
    """What is read of a collection."""

    def dids(self, ids: Sequence[str]) -> dict[str, int]:
        sql = "SELECT id, did FROM documents WHERE cid = %s AND id = ANY(%s) AND (expires IS NULL OR expires > %s)"
        now = time.time()
        return dict(row for part, own in self.parts.by_id(ids).items() for row in self._all(sql, (part.cid, own, now)))

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        sql = f"SELECT {records.COLUMNS} FROM documents WHERE cid = %s AND did = ANY(%s)"
        found = {row[0]: records.document_of(row) for row in self._by_number(sql, dids)}
        return {did: document for did, document in found.items() if is_alive(document)}

    def fetch_spans(self, pids: Sequence[int]) -> dict[int, Span]:
        sql = "SELECT pid, did, ordinal, start, stop FROM passages WHERE cid = %s AND pid = ANY(%s)"
        return records.spans(self._by_number(sql, pids))

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        sql = "SELECT pid, did, hash FROM passages WHERE cid = %s AND pid = ANY(%s)"
        return {pid: (did, bytes(digest)) for pid, did, digest in self._by_number(sql, pids)}

    def first_passages(self, dids: Sequence[int]) -> dict[int, Span]:
        sql = "SELECT did, did, ordinal, start, stop FROM passages WHERE cid = %s AND did = ANY(%s) AND ordinal = 0"
        return records.spans(self._by_number(sql, dids))

    def _by_number(self, sql: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """What the statement, told a part and some numbers, finds of documents or passages with these."""
        return [row for part, own in self.parts.by_number(numbers).items() for row in self._all(sql, (part.cid, own))]

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        last = 0
        while rows := self.page(where, last, BATCH):
            last = rows[-1][0]
            yield from (document for _, document in rows)

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        """(row number, document) of those behind a row number, in its order."""
        rows: list[tuple[Any, ...]] = []
        for part in self.parts.every:
            condition, values = self._within(where, part)
            sql = f"SELECT {records.COLUMNS} FROM documents d WHERE d.cid = %s AND d.did > %s{condition}"
            rows += self._all(f"{sql} ORDER BY d.did LIMIT %s", (part.cid, after, *values, limit))
        return [(row[0], records.document_of(row)) for row in sorted(rows, key=lambda row: row[0])[:limit]]

    def _passed(self) -> float | None:
        """Return the last expiry that has passed of a document that is still here; None where there is none."""
        sql, now = "SELECT max(expires) FROM documents WHERE cid = %s AND expires <= %s", time.time()
        found = [self._all(sql, (part.cid, now))[0][0] for part in self.parts.every]
        return max((moment for moment in found if moment is not None), default=None)

    def _unexpired(self, where: Filter | None) -> Filter | None:
        """Return the filter, and not expired; the same filter where nothing has expired."""
        passed = self._passed()
        if passed is not None:
            self._notice_expired()
        return unexpired(where, passed)

    def _notice_expired(self) -> None:
        """Documents whose time has passed are still there; a shelf that can be written sweeps them."""

    def _within(self, where: Filter | None, part: Part) -> facets.Condition:
        """Return the condition on ``d.did`` that the filter makes, and values; without what has expired."""
        where = self._unexpired(where)
        if where is None:
            return "", ()
        condition, values = compile_filter(where, part.cid)
        allowed = f"SELECT d.did FROM documents d WHERE d.cid = {part.cid} AND ({condition})"
        return f" AND d.did IN ({allowed})", values

    @of_one_state
    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        """The kinds first, then every field of the metadata, ``most`` of them."""
        within = [(part.cid, self._within(where, part)) for part in self.parts.every]
        found = [facets.kinds(self._all, within, values)]
        return found + [facets.facet(self._all, key, within, values) for key in self.fields(where)[:most]]

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        within = [(part.cid, self._within(where, part)) for part in self.parts.every]
        return facets.timeline(self._all, column, step, within)

    @of_one_state
    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        """(id, id of what directly supersedes it), both of which the filter allows."""
        every = self._unexpired(where) is None
        found = links.superseded(self._all, self.parts, ids, limit if every else None)
        hidden = self._hidden([end for pair in found for end in pair], where)
        return [pair for pair in found if hidden.isdisjoint(pair)][:limit]

    def _hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Return those of the ids that may not be seen. Without a filter, an id that is not here may."""
        wanted, allowed = list(dict.fromkeys(ids)), self._unexpired(where)
        if allowed is None:
            return set()

        def ask(connection: Connection) -> set[str]:
            seen = records.visible(connection, self.parts, wanted, allowed)
            there = set(wanted) if where is not None else records.visible(connection, self.parts, wanted, None)
            return there - seen

        return self._database.ask(ask)

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        rows: list[tuple[Any, ...]] = []
        for part in self.parts.every:
            condition, values = self._within(where, part)
            sql = f"SELECT d.did, d.id, d.text FROM documents d WHERE d.cid = %s AND d.text <> ''{condition}"
            rows += self._all(f"{sql} ORDER BY d.did LIMIT %s", (part.cid, *values, limit))
        return [(id, text) for _, id, text in sorted(rows)[:limit]]

    @of_one_state
    def counts(self, where: Filter | None = None) -> Counts:
        state, where = self._state(), self._unexpired(where)
        linked = len(self.links_of(None, where)) if where is not None else self._count("links")
        if where is None:
            return Counts(state.documents, state.passages, state.model.vectors if state.model else 0, linked)
        mid, sums = state.model.mid if state.model else None, [0, 0, 0]
        for part in self.parts.every:
            condition, values = self._within(where, part)
            sql = f"SELECT count(*) FROM {{}} WHERE d.cid = %s{condition}"
            embedded = "vectors d" if mid is None else f"(SELECT * FROM vectors WHERE mid = {int(mid)}) d"
            for at, table in enumerate(("documents d", "passages d", embedded)):
                sums[at] += int(self._all(sql.format(table), (part.cid, *values))[0][0])
        return Counts(sums[0], sums[1], sums[2] if mid is not None else 0, linked)

    @of_one_state
    def links_of(self, identifier: str | None = None, where: Filter | None = None) -> list[Link]:
        found = links.of(self._all, self.cid, identifier)
        hidden = self._hidden(ends(found), where)
        return [link for link in found if link.source not in hidden and link.target not in hidden]

    def _count(self, table: str) -> int:
        sql = f"SELECT count(*) FROM {table} WHERE cid = %s"
        return sum(int(self._all(sql, (cid,))[0][0]) for cid in {self.cid, *self.parts.cids})

    # --- filters ----------------------------------------------------------------------------------------------------

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        """Refuse a field that no document has: a typo would otherwise answer with silence."""
        for field, must_be_known in fields_of(where):
            built_in, name = split_field(field)
            if built_in or not must_be_known or self.has_field(name, within):
                continue
            if not self._count_any(within):
                return
            # only what the rest of the filter lets the caller see: a key may tell as much as a value
            known = [*BUILT_IN_FIELDS, *self.fields(both(within, without_field(where, field)))]
            raise InputError(unknown_field(field, known))

    def _count_any(self, where: Filter | None) -> bool:
        """Is there any document that the filter allows?"""
        for part in self.parts.every:
            condition, values = self._within(where, part)
            if self._all(f"SELECT 1 FROM documents d WHERE d.cid = %s{condition} LIMIT 1", (part.cid, *values)):
                return True
        return False

    def has_field(self, key: str, where: Filter | None) -> bool:
        """Has any document that the filter allows this key in its metadata?"""
        for part in self.parts.every:
            condition, values = self._within(where, part)
            sql = f"SELECT 1 FROM fields d WHERE d.cid = %s AND d.key = %s{condition} LIMIT 1"
            if self._all(sql, (part.cid, key, *values)):
                return True
        return False

    def fields(self, where: Filter | None = None) -> list[str]:
        """The metadata keys in use; a skip-scan, one look-up a key, and one more where there is a filter."""
        found: set[str] = set()
        sql = "SELECT key FROM fields WHERE cid = %s AND key > %s ORDER BY key LIMIT 1"
        for part in self.parts.every:
            last = ""
            while row := self._all(sql, (part.cid, last)):
                last = row[0][0]
                found.add(last)
        where = self._unexpired(where)
        return [key for key in sorted(found) if where is None or self.has_field(key, where)]

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Rechecked | None:
        where = self._unexpired(where)
        if where is None and not exclude:
            return None
        return Rechecked(partial(self._allowed, where), frozenset(self.dids(exclude).values()))

    def _allowed(self, where: Filter | None, dids: Sequence[int]) -> set[int]:
        """Those of these documents that the filter allows in the state that is read."""
        found: set[int] = set()
        for part, own in self.parts.by_number(dids).items():
            condition, values = self._within(where, part)
            sql = f"SELECT d.did FROM documents d WHERE d.cid = %s AND d.did = ANY(%s::bigint[]){condition}"
            found |= {did for (did,) in self._all(sql, (part.cid, own, *values))}
        return found

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        """The condition every leg applies; None when everything may answer."""
        if where is not None and within is not None:  # each time: what is kept may be of a caller with another filter
            self.check_fields(where, within)
        asked = self._unexpired(both(within, where))
        if asked is None and not exclude:
            return None
        scope = self._scope_of(asked, version, within is None) if asked is not None else Scope(self._all, self.parts)
        return scope.without(self.dids(exclude).values()) if exclude else scope

    def only(self, did: int) -> Scope:
        """Just this document."""
        return Scope.just(self._all, self.parts, did)

    def _scope_of(self, where: Filter, version: int, check: bool) -> Scope:
        with self._lock:
            if version != self._scopes_version:
                self._scopes.clear()
                self._scopes_version = version
            elif where in self._scopes:
                self._scopes.move_to_end(where)
                return self._scopes[where]
        if check:
            self.check_fields(where)
        scope = Scope(self._database.planned, self.parts, where)
        with self._lock:
            # an access is no news, so a version does not tell when what is known of access times is out of date
            if version == self._scopes_version and not any(field == "accessed" for field, _ in fields_of(where)):
                self._scopes[where] = scope
                if len(self._scopes) > SCOPES_KEPT:
                    self._scopes.popitem(last=False)
        return scope

    # --- links that change recall -----------------------------------------------------------------------------------

    def has_chains(self, version: int) -> bool:
        known, found = self._chained
        if known != version:
            found = links.any_that_count(self._all, self.cid)
            self._chained = (version, found)
        return found

    def successors(self, dids: Sequence[int]) -> Successions:
        return links.successors(self._all, self.parts, dids)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        return links.resolutions(self._all, self.parts, dids)


def matching(every: links.All, parts: Parts, where: Filter) -> list[int]:
    """The row numbers of the documents that a filter allows."""
    found: list[int] = []
    for part in parts.every:
        condition, values = compile_filter(where, part.cid)
        sql = f"SELECT d.did FROM documents d WHERE d.cid = %s AND ({condition})"
        found += [did for (did,) in every(sql, (part.cid, *values))]
    return found
