"""The documents of a collection whose vectors are in Qdrant: the record store has them, and points follow changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivet.filters import Filter
from trivet.stores.contract import Documents, Prepared, Written
from trivet.stores.qdrant.sync import PointSync
from trivet.types import Document


class QdrantDocuments:
    """The documents of one collection."""

    def __init__(self, records: Documents, sync: PointSync) -> None:
        self._records, self._sync = records, sync
        self.swept: Callable[[list[int]], None] = lambda dids: None
        records.swept = self._remove_swept
        self.sweep, self.touch = records.sweep, records.touch
        self.numbers, self.fetch, self.order_of = records.numbers, records.fetch, records.order_of
        self.spans, self.first_spans, self.hashes = records.spans, records.first_spans, records.hashes
        self.passages, self.scan, self.page = records.passages, records.scan, records.page
        self.texts, self.counts, self.fields = records.texts, records.counts, records.fields
        self.facets, self.timeline, self.adjacent = records.facets, records.timeline, records.adjacent

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        written = self._records.write(batch, mid, within)
        if written.updated or any(item.vector is not None for item in batch):
            self._sync.refresh([item.document.id for item in batch])
        return written

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        id, written = self._records.remember(item, mid, same, likely, named, importance, within)
        if written is not None and written.updated:
            self._sync.refresh([id])
        return id, written

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        written = self._records.amend(id, mid, change, within)
        self._sync.refresh([id])
        return written

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        dids = self._records.remove(where, feedback)
        self._sync.remove(dids)
        return dids

    def _remove_swept(self, dids: list[int]) -> None:
        self._sync.remove(dids)
        self.swept(dids)
