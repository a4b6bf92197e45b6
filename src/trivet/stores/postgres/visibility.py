"""Which documents a reader may see: the filter as an SQL condition, without expired documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trivet.filters import Filter
from trivet.stores.postgres import document_rows
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.filter_sql import compile_filter
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.shards import Shard

Condition = tuple[str, Sequence[Any]]  # " AND d.did IN (…)" and its values; empty for every document


class Visibility:
    """The documents of one collection that a filter allows and that have not expired."""

    def __init__(self, rows: Rows, expiry: Expiry) -> None:
        self._rows = rows
        self.unexpired = expiry.unexpired

    def condition(self, where: Filter | None, shard: Shard) -> Condition:
        """Return a condition on ``d.did`` for a statement about one shard."""
        where = self.unexpired(where)
        if where is None:
            return "", ()
        condition, values = compile_filter(where, shard.cid)
        return f" AND d.did IN (SELECT d.did FROM documents d WHERE d.cid = {shard.cid} AND ({condition}))", values

    def conditions(self, where: Filter | None) -> list[tuple[Shard, Condition]]:
        """Return the condition for every shard."""
        return [(shard, self.condition(where, shard)) for shard in self._rows.shards.all]

    def any(self, table: str, test: str, values: Sequence[Any], where: Filter | None) -> bool:
        """Tell whether a row ``d`` of a table passes the test and belongs to a document that may be seen."""
        for shard, (condition, bound) in self.conditions(where):
            sql = f"SELECT 1 FROM {table} d WHERE d.cid = %s{test}{condition} LIMIT 1"
            if self._rows.all(sql, (shard.cid, *values, *bound)):
                return True
        return False

    def has_field(self, key: str, where: Filter | None) -> bool:
        """Tell whether a document that may be seen has this metadata key."""
        return self.any("fields", " AND d.key = %s", (key,), where)

    def hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Return those of the ids that may not be seen. Without a filter, the id of a deleted document may."""
        wanted, allowed = list(dict.fromkeys(ids)), self.unexpired(where)
        if allowed is None:
            return set()
        seen = document_rows.visible(self._rows, wanted, allowed)
        there = set(wanted) if where is not None else document_rows.visible(self._rows, wanted, None)
        return there - seen
