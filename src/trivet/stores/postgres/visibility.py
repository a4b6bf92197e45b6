"""Which documents a reader may see: the filter as an SQL condition, without expired documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trivet.filters import Filter
from trivet.stores.postgres import document_rows
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.filter_sql import compile_filter
from trivet.stores.postgres.rows import Rows

Condition = tuple[str, Sequence[Any]]  # " AND d.did IN (…)" and its values; empty for every document


class Visibility:
    """The documents of one collection that a filter allows and that have not expired."""

    def __init__(self, rows: Rows, expiry: Expiry) -> None:
        self._rows = rows
        self.unexpired, self.first_expiry = expiry.unexpired, expiry.first

    def condition(self, where: Filter | None) -> Condition:
        """Return a condition on a row ``d`` of any table by document."""
        where, tables = self.unexpired(where), self._rows.tables
        if where is None:
            return "", ()
        condition, values = compile_filter(where, tables, row="x")
        same = f"{tables.beside('x', 'd')} AND x.did = d.did"
        return f" AND EXISTS (SELECT 1 FROM {tables.documents} x WHERE {same} AND ({condition}))", values

    def any(self, table: str, test: str, values: Sequence[Any], where: Filter | None) -> bool:
        """Tell whether a row ``d`` of a table passes the test and belongs to a document that may be seen."""
        condition, bound = self.condition(where)
        sql = f"SELECT 1 FROM {table} d WHERE {self._rows.tables.of('d')}{test}{condition} LIMIT 1"
        return bool(self._rows.all(sql, (*values, *bound)))

    def has_field(self, key: str, where: Filter | None) -> bool:
        """Tell whether a document that may be seen has this metadata key."""
        return self.any(self._rows.tables.fields, " AND d.key = %s", (key,), where)

    def hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Return those of the ids that may not be seen. Without a filter, the id of a deleted document may."""
        wanted, allowed = list(dict.fromkeys(ids)), self.unexpired(where)
        if allowed is None:
            return set()
        seen = document_rows.visible(self._rows, wanted, allowed)
        there = set(wanted) if where is not None else document_rows.visible(self._rows, wanted, None)
        return there - seen
