"""Which documents does a filter allow, as a mask that every leg takes?

Masks are remembered until the next write: a conversation asks within the same one again and again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.filters import (
    BUILT_IN_FIELDS,
    And,
    Filter,
    Not,
    both,
    fields_of,
    split_field,
    unknown_field,
    without_field,
)
from trivet.stores.contract import Rechecked
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.stores.sqlite.sources import Sources

if TYPE_CHECKING:
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.store import SqliteStore

SCOPES_KEPT = 64  # filters whose mask is remembered until the next write


class Scopes(Sources):
    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, uid, name, config)
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()  # by what the filter and the caller's both allow
        self._scopes_version = -1

    def _forget(self) -> None:
        super()._forget()
        with self._lock:
            self._scopes.clear()
            self._scopes_version = -1

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        """Refuse a field that no document has: a typo would otherwise answer with silence."""
        for field, must_be_known in fields_of(where):
            built_in, name = split_field(field)
            if built_in or not must_be_known or not self.count_any(within):
                continue
            if not self.has_field(name, within):
                # only what the rest of the filter lets the caller see: a key may tell as much as a value
                known = [*BUILT_IN_FIELDS, *self.fields(both(within, without_field(where, field)))]
                raise InputError(unknown_field(field, known))

    def matching(self, where: Filter) -> list[int]:
        sql, values = compile_filter(where, self.cid)
        return [did for (did,) in self._all(sql, values)]

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Scope | Rechecked | None:
        where = self._unexpired(where)
        if where is None and not exclude:
            return None
        return Rechecked(partial(self._allowed, where), frozenset(self.dids(exclude).values()))

    def _allowed(self, where: Filter | None, dids: Sequence[int]) -> set[int]:
        """Those of these documents that the filter allows in the state that is read."""
        condition, values = self._within(where)
        sql = f"SELECT did FROM documents WHERE did IN (SELECT value FROM json_each(?)) AND cid = ?{condition}"
        return {did for (did,) in self._all(sql, (json.dumps(list(dids)), self.cid, *values))}

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        """The mask every leg applies; None when everything may answer."""
        if where is not None and within is not None:  # each time: a mask may be kept of a caller with another filter
            self.check_fields(where, within)
        asked = self._unexpired(both(within, where))
        if asked is None and not exclude:
            return None
        from trivet.stores.sqlite.scope import Scope

        size = int(self._all("SELECT value FROM counters WHERE name = 'document'", ())[0][0])
        scope = self._scope_of(asked, size, version, within is None) if asked is not None else Scope.everything(size)
        return scope.without(list(self.dids(exclude).values())) if exclude else scope

    def only(self, did: int) -> Scope:
        """Just this document."""
        from trivet.stores.sqlite.scope import Scope

        return Scope.of([did], did)

    def _scope_of(self, where: Filter, size: int, version: int, check: bool) -> Scope:
        with self._lock:
            if version != self._scopes_version:
                self._scopes.clear()
                self._scopes_version = version
            elif where in self._scopes:
                self._scopes.move_to_end(where)
                return self._scopes[where]
        if check:
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
