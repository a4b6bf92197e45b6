"""Filters of a collection whose vectors are in Qdrant.

A scope has two forms: that of the record store, which decides, and what of the filter Qdrant can apply (``tags.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from trivet.filters import Filter, both
from trivet.stores.contract import Filters, Found, LegScope, LexicalIndex, TrigramIndex
from trivet.stores.qdrant import tags
from trivet.text.analysis import ParsedQuery


@dataclass(frozen=True, slots=True)
class QdrantScope:
    """The scope of the record store, and the filter for Qdrant, which may allow more."""

    records: LegScope
    where: models.Filter | None

    def __contains__(self, did: int) -> bool:
        return did in self.records

    def expect(self, dids: Iterable[int]) -> None:
        self.records.expect(dids)

    def rows(self, dids: Any) -> Any:
        return self.records.rows(dids)


class QdrantFilters:
    """The filters of one collection."""

    def __init__(self, records: Filters) -> None:
        self._records = records
        self.check_fields, self.recheck = records.check_fields, records.recheck

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> QdrantScope | None:
        scope, allowed = self._records.scope(where, exclude, version, within), both(within, where)
        if scope is None:
            return None
        return QdrantScope(scope, tags.compile_filter(allowed)[0] if allowed is not None else None)

    def only(self, did: int) -> QdrantScope:
        return QdrantScope(self._records.only(did), tags.only(did))


class RecordLexical:
    """The lexical index of the record store, for scopes of this store."""

    def __init__(self, records: LexicalIndex) -> None:
        self._records = records
        self.positions, self.is_current = records.positions, records.is_current

    def search(
        self, query: ParsedQuery, match: str, depth: int, scope: QdrantScope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        return self._records.search(query, match, depth, scope.records if scope is not None else None, version)


class RecordTrigrams:
    """The trigram index of the record store, for scopes of this store."""

    def __init__(self, records: TrigramIndex) -> None:
        self._records = records
        self.is_current = records.is_current

    def search(
        self, keywords: str, threshold: float, depth: int, scope: QdrantScope | None, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        return self._records.search(keywords, threshold, depth, scope.records if scope is not None else None, version)
