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
from trivet.stores.postgres.tables import Tables

if TYPE_CHECKING:
    from trivet.filters import Filter

MAX_KEPT = 250_000  # numbers of documents kept for one filter: 2 MB
MAX_LISTED = 20_000  # numbers listed in a statement, so that the server need not apply the filter


@dataclass(slots=True)
class Allowed:
    """The documents of a collection that a filter allows."""

    count: int
    dids: Any  # a sorted array; None: too many to keep
    passages: tuple[Any, Any] | None = None  # numbers of their passages, sorted, and the document of each


@dataclass(slots=True)
class Scope:
    """The documents of a collection that a query may see."""

    select: Select
    tables: Tables
    where: Filter | None = None
    left_out: frozenset[int] = frozenset()
    _looked_up: list[Allowed] = field(default_factory=list)  # none or one, shared with ``without``
    _known: dict[int, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_one(cls, select: Select, tables: Tables, did: int) -> Scope:
        """Return the scope of one document."""
        import numpy as np

        return cls(select, tables, _looked_up=[Allowed(1, np.array([did], dtype=np.int64))])

    def without(self, dids: Iterable[int]) -> Scope:
        """Return this scope without some documents; what was looked up is shared."""
        return replace(self, left_out=frozenset(dids), _known={})

    @property
    def count(self) -> int:
        """The number of documents that the filter allows; the excluded ones, which are few, are counted too."""
        return sys.maxsize if self._is_whole else self.allowed.count

    @property
    def is_few(self) -> bool:
        """Whether the documents are few enough to be listed in a statement."""
        return not self._is_whole and self.count <= MAX_LISTED

    @property
    def _is_whole(self) -> bool:
        return self.where is None and not self._looked_up

    @property
    def allowed(self) -> Allowed:
        """The allowed documents, looked up once; a second leg waits for the first."""
        with self._lock:
            if not self._looked_up:
                self._looked_up.append(self._read())
            return self._looked_up[0]

    def _read(self) -> Allowed:
        import numpy as np

        condition, values = self._condition()
        source = f"FROM {self.tables.documents} d WHERE {self.tables.of('d')} AND ({condition})"
        some = f"SELECT d.did {source} LIMIT {MAX_KEPT + 1}"
        count, raw = self.select(f"SELECT count(*), string_agg(int8send(x.did), ''::bytea) FROM ({some}) x", values)[0]
        if count > MAX_KEPT:
            return Allowed(int(self.select(f"SELECT count(*) {source}", values)[0][0]), None)
        return Allowed(int(count), np.sort(np.frombuffer(raw or b"", dtype=">i8").astype(np.int64)))

    def _condition(self) -> Sql:
        return compile_filter(self.where, self.tables) if self.where is not None else ("true", [])

    def within(self, column: str, with_parts: bool = False) -> Sql:
        """Return `` AND …`` for a statement whose ``column`` is the number of a document, and its values.

        ``with_parts``: the statement reads ``Tables.and_parts`` too, if the documents are few.
        """
        sql = ""
        values: list[Any] = []
        if not self._is_whole:
            allowed = self.allowed
            if allowed.count <= MAX_LISTED:
                having = self.tables.of_its_part if with_parts else self.tables.having
                condition, values = having(column, allowed.dids.tolist())
                sql = f" AND {condition}"
            else:
                condition, bound = self._condition()
                same = f"{self.tables.beside('d', column.partition('.')[0])} AND d.did = {column}"
                found = f"SELECT 1 FROM {self.tables.documents} d WHERE {same} AND ({condition})"
                sql, values = f" AND EXISTS ({found})", list(bound)
        if self.left_out:
            sql, values = f"{sql} AND {column} <> ALL(%s::bigint[])", [*values, list(self.left_out)]
        return sql, values

    def passages(self) -> tuple[Any, Any]:
        """Return the passages of the allowed documents and the document of each, as arrays; only where they are few."""
        import numpy as np

        allowed = self.allowed
        if allowed.passages is None:
            rows = self.tables.select(
                self.select,
                "SELECT string_agg(int8send(p.pid), ''::bytea ORDER BY p.pid), "
                "string_agg(int8send(p.did), ''::bytea ORDER BY p.pid) "
                f"FROM {self.tables.passages} p",
                "p.did",
                allowed.dids.tolist(),
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
        self._known.update(self._look_up(wanted))

    def _look_up(self, dids: list[int]) -> dict[int, bool]:
        allowed = self.allowed
        if allowed.dids is not None:
            return dict(zip(dids, among(dids, allowed.dids).tolist(), strict=True))
        condition, values = self._condition()
        listed, numbers = self.tables.having("d.did", dids)
        sql = f"SELECT d.did FROM {self.tables.documents} d WHERE {listed} AND ({condition})"
        found = {did for (did,) in self.select(sql, [*numbers, *values])}
        return {did: did in found for did in dids}

    def __contains__(self, did: int) -> bool:
        if did in self.left_out:
            return False
        self.expect([did])
        return self._known.get(did, False)

    def rows(self, dids: Any) -> Any:
        """Return a boolean array: which of an array of document numbers may be seen."""
        import numpy as np

        if not self._is_whole and self.allowed.dids is not None:
            seen = among(dids, self.allowed.dids)
            return seen & ~np.isin(dids, list(self.left_out)) if self.left_out else seen
        self.expect(int(did) for did in dids)
        return np.fromiter((int(did) in self for did in dids), dtype=np.bool_, count=len(dids))


def among(dids: Any, listed: Any) -> Any:
    """Return a boolean array: which of some numbers are in a sorted array, which may be long."""
    import numpy as np

    if not len(listed):
        return np.zeros(len(dids), dtype=np.bool_)
    return listed[np.minimum(np.searchsorted(listed, dids), len(listed) - 1)] == dids
