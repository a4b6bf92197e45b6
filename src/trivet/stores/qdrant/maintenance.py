"""Maintenance of a collection whose vectors are in Qdrant: that of the record store, and of the points."""

from __future__ import annotations

from trivet.stores.contract import Collection
from trivet.stores.qdrant.sync import PointSync
from trivet.types import Progress, StepProgress


class QdrantMaintenance:
    """The maintenance of one collection."""

    def __init__(self, records: Collection, sync: PointSync) -> None:
        self._records, self._sync = records, sync
        stored = records.maintenance
        self.update_lexical, self.indexer = stored.update_lexical, stored.indexer
        self.check_locks, self.compact = stored.check_locks, stored.compact

    def update(self, progress: Progress | None = None, graph: bool = False, vectors: bool = True) -> None:
        self._records.maintenance.update(progress, graph, vectors=False)
        model = self._records.state().model
        if model is not None and vectors:
            self._sync.update(model, progress)

    def update_vectors(self) -> None:
        """Do nothing: points are written with the vectors."""

    def verify(self, progress: StepProgress | None = None) -> tuple[list[str], dict[str, int]]:
        problems, checked = self._records.maintenance.verify(progress)
        model = self._records.state().model
        if model is not None:
            found, checked["points"] = self._sync.verify(model)
            problems = [*problems, *found]
        return problems, checked

    def discard(self) -> None:
        self._records.maintenance.discard()
        self._sync.drop()
