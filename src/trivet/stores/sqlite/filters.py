"""Filters of one collection: which documents may be read, and the mask that every index applies."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from trivet.filters import (
    And,
    Filter,
    Not,
    both,
    fields_of,
)
from trivet.stores.contract import Rechecked
from trivet.stores.expiry import unexpired
from trivet.stores.field_check import check_fields
from trivet.stores.sqlite.facets import Condition
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.stores.sqlite.rows import EXPIRED, LAST_EXPIRED, CollectionRows, chunks, marks, visible

if TYPE_CHECKING:
    from trivet.stores.sqlite.scope import Scope

SCOPES_KEPT = 64  # filters whose mask is cached until the next write


class Visibility:
    """The documents that readers see: those that a filter allows and that have not expired."""

    def __init__(self, rows: CollectionRows) -> None:
        self._rows, self._cid, self._all = rows, rows.cid, rows.all
        self.on_expired: Callable[[], None] = lambda: None  # called when a reader meets an expired document

    def last_expired(self) -> float | None:
        """Return the last expiry that has passed; None where none has."""
        ((passed,),) = self._all(LAST_EXPIRED, (self._cid, time.time()))
        return None if passed is None else float(passed)

    def unexpired(self, where: Filter | None) -> Filter | None:
        """Return the filter, and not expired; the same filter where nothing has expired."""
        passed = self.last_expired()
        if passed is None:
            return where
        self.on_expired()
        return unexpired(where, passed)

    def condition(self, where: Filter | None) -> Condition:
        """Return the filter as a condition on ``did``, with its values; without what has expired."""
        where = self.unexpired(where)
        if where is None:
            return "", ()
        sql, values = compile_filter(where, self._cid)
        return f" AND did IN ({sql})", values

    def hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Return those of the ids that may not be seen. Without a filter, an id that does not exist may."""
        listed, allowed = list(dict.fromkeys(ids)), self.unexpired(where)
        if allowed is None:
            return set()
        with self._rows.explained():
            connection = self._rows.database.read()
            seen = visible(connection, self._cid, listed, allowed)
            known = set(listed) if where is not None else visible(connection, self._cid, listed, None)
        return known - seen

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Map the ids that exist to the numbers of their documents."""
        found: dict[str, int] = {}
        for chunk in chunks(ids):
            among = f"id IN ({marks(chunk)}) AND did NOT IN ({EXPIRED})"
            sql = f"SELECT id, did FROM documents WHERE cid = ? AND {among}"
            found.update(self._all(sql, (self._cid, *chunk, self._cid, time.time())))
        return found

    def any_document(self, where: Filter | None) -> bool:
        """Tell whether there is any document that the filter allows."""
        condition, values = self.condition(where)
        return bool(self._all(f"SELECT 1 FROM documents WHERE cid = ?{condition} LIMIT 1", (self._cid, *values)))

    def fields(self, where: Filter | None = None) -> list[str]:
        """Return the metadata keys in use: one look-up for each key, and another one where there is a filter."""
        found: list[str] = []
        sql = "SELECT key FROM fields WHERE cid = ? AND key > ? ORDER BY key LIMIT 1"
        while row := self._all(sql, (self._cid, found[-1] if found else "")):
            found.append(row[0][0])
        where = self.unexpired(where)
        return found if where is None else [key for key in found if self.has_field(key, where)]

    def has_field(self, key: str, where: Filter | None) -> bool:
        """Tell whether any document that the filter allows has this metadata key."""
        condition, values = self.condition(where)
        sql = f"SELECT 1 FROM fields WHERE cid = ? AND key = ?{condition} LIMIT 1"
        return bool(self._all(sql, (self._cid, key, *values)))


class SqliteFilters:
    """Filters as masks over document numbers, cached until the next write: a conversation repeats its filter."""

    def __init__(self, rows: CollectionRows, visibility: Visibility) -> None:
        self._cid, self._all, self._visibility = rows.cid, rows.all, visibility
        self._lock = threading.Lock()
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()  # by the caller's filter and the query's together
        self._version = -1
        rows.on_reset(self._reset)

    def _reset(self) -> None:
        with self._lock:
            self._scopes.clear()
            self._version = -1

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        """Refuse a field that no document has: with a misspelt name, a search would find nothing and not say why."""
        seen = self._visibility
        check_fields(where, within, seen.has_field, seen.any_document, seen.fields)

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        """Return the mask that every leg applies; None when every document may be seen."""
        if where is not None and within is not None:  # each time: the mask may be cached from another caller
            self.check_fields(where, within)
        together = self._visibility.unexpired(where if within is None else both(within, where))
        if together is None and not exclude:
            return None
        from trivet.stores.sqlite.scope import Scope

        scope = Scope.everything(self._size()) if together is None else self._cached(together, version, within is None)
        return scope.without(list(self._visibility.numbers(exclude).values())) if exclude else scope

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Rechecked | None:
        """Return the same scope looked up document by document in the current snapshot: rankings may be older."""
        where = self._visibility.unexpired(where)
        if where is None and not exclude:
            return None
        return Rechecked(partial(self._allowed, where), frozenset(self._visibility.numbers(exclude).values()))

    def only(self, did: int) -> Scope:
        """Return the scope of one document."""
        from trivet.stores.sqlite.scope import Scope

        return Scope.of([did], did)

    def matching(self, where: Filter) -> list[int]:
        """Return the numbers of the documents that the filter allows."""
        sql, values = compile_filter(where, self._cid)
        return [did for (did,) in self._all(sql, values)]

    def _allowed(self, where: Filter | None, dids: Sequence[int]) -> set[int]:
        """Return those of these documents that the filter allows in the state that is read."""
        condition, values = self._visibility.condition(where)
        sql = f"SELECT did FROM documents WHERE did IN (SELECT value FROM json_each(?)) AND cid = ?{condition}"
        return {did for (did,) in self._all(sql, (json.dumps(list(dids)), self._cid, *values))}

    def _size(self) -> int:
        """Return the number of the last document."""
        return int(self._all("SELECT value FROM counters WHERE name = 'document'", ())[0][0])

    def _cached(self, where: Filter, version: int, check: bool) -> Scope:
        with self._lock:
            if version != self._version:
                self._scopes.clear()
                self._version = version
            elif where in self._scopes:
                self._scopes.move_to_end(where)
                return self._scopes[where]
        if check:
            self.check_fields(where)
        scope = self._mask(where, self._size())
        with self._lock:
            # an access keeps the version, so a version does not tell when a mask of access times is out of date
            if version == self._version and not any(field == "accessed" for field, _ in fields_of(where)):
                self._scopes[where] = scope
                if len(self._scopes) > SCOPES_KEPT:
                    self._scopes.popitem(last=False)
        return scope

    def _mask(self, where: Filter, size: int) -> Scope:
        """Return the mask of a filter; a ``not`` is a mask turned over, because it mostly excludes a few of many."""
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
