"""Which documents may this question see?

A filter and the excluded ids as a condition that stands in every leg's own statement, so that the server applies it
before the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trivet.stores.postgres.filter_sql import Sql

All = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


@dataclass(slots=True)
class Scope:
    every: All
    cid: int
    allowed: Sql | None = None  # a condition on a row d of documents
    left_out: tuple[int, ...] = ()
    _known: dict[int, bool] = field(default_factory=dict)
    _count: int | None = None

    def join(self, column: str) -> Sql:
        """`` JOIN documents d …`` for a statement whose ``column`` holds a document's number: the server is free to
        begin with the few that are allowed, or with the few that were found."""
        tests: list[str] = [f"d.cid = {self.cid} AND d.did = {column}"]
        values: list[Any] = []
        if self.allowed is not None:
            tests.append(f"({self.allowed[0]})")
            values += self.allowed[1]
        if self.left_out:
            tests.append("d.did <> ALL(%s)")
            values.append(list(self.left_out))
        return f" JOIN documents d ON {' AND '.join(tests)}", values

    @property
    def count(self) -> int:
        """How many documents the filter allows; looked up once. The excluded ones are few and are not taken off."""
        if self._count is None:
            condition, values = self.allowed if self.allowed is not None else ("true", [])
            sql = f"SELECT count(*) FROM documents d WHERE d.cid = {self.cid} AND ({condition})"
            self._count = int(self.every(sql, values)[0][0])
        return self._count

    def expect(self, dids: Iterable[int]) -> None:
        wanted = [did for did in dids if did not in self._known]
        if wanted:
            join, values = self.join("asked.did")
            sql = f"SELECT asked.did FROM unnest(%s::bigint[]) AS asked(did){join}"
            found = {did for (did,) in self.every(sql, [wanted, *values])}
            self._known.update({did: did in found for did in wanted})

    def __contains__(self, did: int) -> bool:
        self.expect([did])
        return self._known[did]

    def rows(self, dids: Any) -> Any:
        """For each of these numbers (an array): may it be seen?"""
        import numpy as np

        self.expect(int(did) for did in dids)
        return np.fromiter((self._known[int(did)] for did in dids), dtype=np.bool_, count=len(dids))

    def without(self, dids: Iterable[int]) -> Scope:
        return replace(self, left_out=tuple(dids), _known={})
