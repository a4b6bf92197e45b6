"""The documents that a query may see: a filter and the excluded ids, as the legs apply them.

The numbers of the documents that a filter allows are read once and kept until the next write. Where they are too many,
the filter is a condition in every statement, or documents are looked up after they were found. Either way the filter is
applied before a ranking is cut.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres.database import Select
from trivet.stores.postgres.filter_sql import Sql, compile_filter
from trivet.stores.postgres.shards import Shard, Shards

if TYPE_CHECKING:
    from trivet.filters import Filter

MAX_KEPT = 250_000  # numbers of documents kept for one filter and shard: 2 MB
MAX_LISTED = 20_000  # numbers listed in a statement, so that the server need not apply the filter


@dataclass(slots=True)
class Allowed:
    """The documents of one shard that a filter allows."""

    count: int
    dids: Any  # a sorted array; None: too many to keep
    passages: tuple[Any, Any] | None = None  # numbers of their passages, sorted, and the document of each


@dataclass(slots=True)
class Scope:
    """The documents of a collection that a query may see."""

    select: Select
    shards: Shards
    where: Filter | None = None
    left_out: frozenset[int] = frozenset()
    _allowed: dict[Shard, Allowed] = field(default_factory=dict)
    _known: dict[int, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_one(cls, select: Select, shards: Shards, did: int) -> Scope:
        """Return the scope of one document."""
        import numpy as np

        scope = cls(select, shards)
        there = shards.by_number([did])
        for shard in shards.all:
            one = np.array([did] if shard in there else [], dtype=np.int64)
            scope._allowed[shard] = Allowed(len(one), one)
        return scope

    def without(self, dids: Iterable[int]) -> Scope:
        """Return this scope without some documents; what was looked up is shared."""
        return replace(self, left_out=frozenset(dids), _known={})

    @property
    def count(self) -> int:
        """The number of documents that the filter allows; the excluded ones, which are few, are counted too."""
        if self._is_whole:
            return sys.maxsize
        return sum(self.allowed(shard).count for shard in self.shards.all)

    @property
    def is_few(self) -> bool:
        """Whether the documents are few enough to be listed in a statement."""
        return not self._is_whole and self.count <= MAX_LISTED

    @property
    def _is_whole(self) -> bool:
        return self.where is None and not self._allowed

    def allowed(self, shard: Shard) -> Allowed:
        """Return the allowed documents of a shard, looked up once; a second leg waits for the first."""
        with self._lock:
            if shard not in self._allowed:
                self._allowed[shard] = self._read(shard)
            return self._allowed[shard]

    def _read(self, shard: Shard) -> Allowed:
        import numpy as np

        condition, values = self._condition(shard)
        some = f"SELECT d.did FROM documents d WHERE d.cid = {shard.cid} AND ({condition}) LIMIT {MAX_KEPT + 1}"
        sql = f"SELECT count(*), string_agg(int8send(x.did), ''::bytea) FROM ({some}) x"
        count, raw = self.select(sql, values)[0]
        if count > MAX_KEPT:
            sql = f"SELECT count(*) FROM documents d WHERE d.cid = {shard.cid} AND ({condition})"
            return Allowed(int(self.select(sql, values)[0][0]), None)
        return Allowed(int(count), np.sort(np.frombuffer(raw or b"", dtype=">i8").astype(np.int64)))

    def _condition(self, shard: Shard) -> Sql:
        return compile_filter(self.where, shard.cid) if self.where is not None else ("true", [])

    def within(self, column: str, shard: Shard) -> Sql:
        """Return `` AND …`` for a statement whose ``column`` is the number of a document, and its values."""
        sql, values = "", []
        if not self._is_whole:
            allowed = self.allowed(shard)
            if allowed.count <= MAX_LISTED:
                sql, values = f" AND {column} = ANY(%s::bigint[])", [allowed.dids.tolist()]
            else:
                condition, bound = self._condition(shard)
                found = f"SELECT d.did FROM documents d WHERE d.cid = {shard.cid} AND ({condition})"
                sql, values = f" AND {column} IN ({found})", list(bound)
        if self.left_out:
            sql, values = f"{sql} AND {column} <> ALL(%s::bigint[])", [*values, list(self.left_out)]
        return sql, values

    def passages(self, shard: Shard) -> tuple[Any, Any]:
        """Return the passages of the allowed documents and the document of each, as arrays; only where they are few."""
        import numpy as np

        allowed = self.allowed(shard)
        if allowed.passages is None:
            rows = self.select(
                "SELECT string_agg(int8send(p.pid), ''::bytea ORDER BY p.pid), "
                "string_agg(int8send(p.did), ''::bytea ORDER BY p.pid) "
                f"FROM passages p WHERE p.cid = {shard.cid} AND p.did = ANY(%s::bigint[])",
                (allowed.dids.tolist(),),
            )
            pids, dids = (np.frombuffer(raw or b"", dtype=">i8").astype(np.int64) for raw in rows[0])
            allowed.passages = (pids, dids)
        return allowed.passages

    def expect(self, dids: Iterable[int]) -> None:
        wanted = [did for did in dict.fromkeys(dids) if did not in self._known]
        if not wanted:
            return
        if self._is_whole:
            self._known.update(dict.fromkeys(wanted, True))
            return
        for shard, own in self.shards.by_number(wanted).items():
            self._known.update(self._look_up(shard, own))

    def _look_up(self, shard: Shard, dids: list[int]) -> dict[int, bool]:
        import numpy as np

        allowed = self.allowed(shard)
        if allowed.dids is not None:
            return dict(zip(dids, np.isin(dids, allowed.dids).tolist(), strict=True))
        condition, values = self._condition(shard)
        sql = f"SELECT d.did FROM documents d WHERE d.cid = {shard.cid} AND d.did = ANY(%s::bigint[]) AND ({condition})"
        found = {did for (did,) in self.select(sql, [dids, *values])}
        return {did: did in found for did in dids}

    def __contains__(self, did: int) -> bool:
        if did in self.left_out:
            return False
        self.expect([did])
        return self._known.get(did, False)

    def rows(self, dids: Any) -> Any:
        """Return a boolean array: which of an array of document numbers may be seen."""
        import numpy as np

        self.expect(int(did) for did in dids)
        return np.fromiter((int(did) in self for did in dids), dtype=np.bool_, count=len(dids))
