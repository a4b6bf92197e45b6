"""Which documents may this question see?

A filter and the excluded ids. What a filter allows is looked up once and remembered until the next write, as numbers,
unless they are too many: then it is a condition in every statement, or whoever found something asks whether it may be
seen. Either way the filter is applied before the cut.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres.filter_sql import Sql, compile_filter
from trivet.stores.postgres.parts import Part, Parts

if TYPE_CHECKING:
    from trivet.filters import Filter

All = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

MOST_KEPT = 250_000  # numbers of documents remembered for one filter and part: 2 MB
MOST_NAMED = 20_000  # of these; as many are named in a statement one by one, which spares the server the filter


@dataclass(slots=True)
class Allowed:
    """What a filter allows of one part."""

    count: int
    dids: Any  # an array, in order; None: too many to remember
    passages: tuple[Any, Any] | None = None  # numbers of their passages, in order, and each one's document


@dataclass(slots=True)
class Scope:
    every: All
    parts: Parts
    where: Filter | None = None
    left_out: frozenset[int] = frozenset()
    _allowed: dict[Part, Allowed] = field(default_factory=dict)
    _known: dict[int, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def just(cls, every: All, parts: Parts, did: int) -> Scope:
        """This document alone."""
        import numpy as np

        scope = cls(every, parts)
        there = parts.by_number([did])
        for part in parts.every:
            one = np.array([did] if part in there else [], dtype=np.int64)
            scope._allowed[part] = Allowed(len(one), one)
        return scope

    def without(self, dids: Iterable[int]) -> Scope:
        """The same, and not these; what was looked up is shared."""
        return replace(self, left_out=frozenset(dids), _known={})

    @property
    def count(self) -> int:
        """How many documents the filter allows. The excluded ones are few and are not taken off."""
        if self._is_whole:
            return sys.maxsize
        return sum(self.allowed(part).count for part in self.parts.every)

    @property
    def is_few(self) -> bool:
        """Are they few enough to be named one by one?"""
        return not self._is_whole and self.count <= MOST_NAMED

    @property
    def _is_whole(self) -> bool:
        return self.where is None and not self._allowed

    def allowed(self, part: Part) -> Allowed:
        """Looked up once, by the leg that asks first; the other waits for it."""
        with self._lock:
            if part not in self._allowed:
                self._allowed[part] = self._look(part)
            return self._allowed[part]

    def _look(self, part: Part) -> Allowed:
        import numpy as np

        condition, values = self._condition(part)
        some = f"SELECT d.did FROM documents d WHERE d.cid = {part.cid} AND ({condition}) LIMIT {MOST_KEPT + 1}"
        sql = f"SELECT count(*), string_agg(int8send(x.did), ''::bytea) FROM ({some}) x"
        count, raw = self.every(sql, values)[0]
        if count > MOST_KEPT:
            sql = f"SELECT count(*) FROM documents d WHERE d.cid = {part.cid} AND ({condition})"
            return Allowed(int(self.every(sql, values)[0][0]), None)
        return Allowed(int(count), np.sort(np.frombuffer(raw or b"", dtype=">i8").astype(np.int64)))

    def _condition(self, part: Part) -> Sql:
        return compile_filter(self.where, part.cid) if self.where is not None else ("true", [])

    def within(self, column: str, part: Part) -> Sql:
        """`` AND …`` for a statement whose ``column`` holds a document's number."""
        sql, values = "", []
        if not self._is_whole:
            allowed = self.allowed(part)
            if allowed.count <= MOST_NAMED:
                sql, values = f" AND {column} = ANY(%s::bigint[])", [allowed.dids.tolist()]
            else:
                condition, bound = self._condition(part)
                found = f"SELECT d.did FROM documents d WHERE d.cid = {part.cid} AND ({condition})"
                sql, values = f" AND {column} IN ({found})", list(bound)
        if self.left_out:
            sql, values = f"{sql} AND {column} <> ALL(%s::bigint[])", [*values, list(self.left_out)]
        return sql, values

    def passages(self, part: Part) -> tuple[Any, Any]:
        """Of the documents it allows, where these are few: (numbers of passages, the document of each), as arrays."""
        import numpy as np

        allowed = self.allowed(part)
        if allowed.passages is None:
            rows = self.every(
                "SELECT string_agg(int8send(p.pid), ''::bytea ORDER BY p.pid), "
                "string_agg(int8send(p.did), ''::bytea ORDER BY p.pid) "
                f"FROM passages p WHERE p.cid = {part.cid} AND p.did = ANY(%s::bigint[])",
                (allowed.dids.tolist(),),
            )
            pids, dids = (np.frombuffer(raw or b"", dtype=">i8").astype(np.int64) for raw in rows[0])
            allowed.passages = (pids, dids)
        return allowed.passages

    # --- one by one ---------------------------------------------------------------------------------------------------

    def expect(self, dids: Iterable[int]) -> None:
        wanted = [did for did in dict.fromkeys(dids) if did not in self._known]
        if not wanted:
            return
        if self._is_whole:
            self._known.update(dict.fromkeys(wanted, True))
            return
        for part, own in self.parts.by_number(wanted).items():
            self._known.update(self._judged(part, own))

    def _judged(self, part: Part, dids: list[int]) -> dict[int, bool]:
        import numpy as np

        allowed = self.allowed(part)
        if allowed.dids is not None:
            return dict(zip(dids, np.isin(dids, allowed.dids).tolist(), strict=True))
        condition, values = self._condition(part)
        sql = f"SELECT d.did FROM documents d WHERE d.cid = {part.cid} AND d.did = ANY(%s::bigint[]) AND ({condition})"
        found = {did for (did,) in self.every(sql, [dids, *values])}
        return {did: did in found for did in dids}

    def __contains__(self, did: int) -> bool:
        if did in self.left_out:
            return False
        self.expect([did])
        return self._known.get(did, False)

    def rows(self, dids: Any) -> Any:
        """For each of these numbers (an array): may it be seen?"""
        import numpy as np

        self.expect(int(did) for did in dids)
        return np.fromiter((int(did) in self for did in dids), dtype=np.bool_, count=len(dids))
