"""Filters in the form that the indexes of a PostgreSQL server apply."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from trivet.filters import Filter, both, fields_of
from trivet.stores.contract import Rechecked
from trivet.stores.field_check import check_fields
from trivet.stores.postgres.documents import PostgresDocuments
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.visibility import Visibility

MAX_SCOPES = 64  # filters whose scope is cached until the next write


class PostgresFilters:
    """The filters of one collection."""

    def __init__(self, rows: Rows, visibility: Visibility, documents: PostgresDocuments) -> None:
        self._rows, self._visibility, self._documents = rows, visibility, documents
        self._lock = threading.Lock()
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()
        self._scopes_version = -1
        self._expiring = (-1, 0.0)  # a version, and the first expiry in it

    def drop_caches(self) -> None:
        with self._lock:
            self._scopes.clear()
            self._scopes_version = -1
        self._expiring = (-1, 0.0)

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        visibility = self._visibility
        any_document = partial(visibility.any, self._rows.tables.documents, "", ())
        check_fields(where, within, visibility.has_field, any_document, self._documents.fields)

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Rechecked | None:
        where = self._visibility.unexpired(where)
        if where is None and not exclude:
            return None
        return Rechecked(partial(self._allowed, where), frozenset(self._documents.numbers(exclude).values()))

    def _allowed(self, where: Filter | None, dids: Sequence[int]) -> set[int]:
        """Return those of the documents that the filter allows in the current snapshot."""
        tables, (condition, values) = self._rows.tables, self._visibility.condition(where)
        among, numbers = tables.having("d.did", dids)
        sql = f"SELECT d.did FROM {tables.documents} d WHERE {among}{condition}"
        return {did for (did,) in self._rows.all(sql, (*numbers, *values))}

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        if where is not None and within is not None:  # each time: a cached scope may be that of another caller
            self.check_fields(where, within)
        allowed = both(within, where)
        if self._first_expiry(version) <= time.time():
            allowed = self._visibility.unexpired(allowed)
        if allowed is None and not exclude:
            return None
        if allowed is None:
            scope = Scope(self._rows.all, self._rows.tables)
        else:
            scope = self._cached(allowed, version, check=within is None)
        return scope.without(self._documents.numbers(exclude).values()) if exclude else scope

    def _first_expiry(self, version: int) -> float:
        """Return when the first document expires, read once for each version."""
        known, first = self._expiring
        if known != version:
            first = self._visibility.first_expiry()
            self._expiring = (version, first)
        return first

    def only(self, did: int) -> Scope:
        return Scope.of_one(self._rows.all, self._rows.tables, did)

    def _cached(self, where: Filter, version: int, check: bool) -> Scope:
        with self._lock:
            if version != self._scopes_version:
                self._scopes.clear()
                self._scopes_version = version
            elif where in self._scopes:
                self._scopes.move_to_end(where)
                return self._scopes[where]
        if check:
            self.check_fields(where)
        scope = Scope(self._rows.database.planned, self._rows.tables, where)
        with self._lock:
            # an access leaves the version as it is, so a scope by access time cannot be cached by version
            if version == self._scopes_version and not any(field == "accessed" for field, _ in fields_of(where)):
                self._scopes[where] = scope
                if len(self._scopes) > MAX_SCOPES:
                    self._scopes.popitem(last=False)
        return scope
