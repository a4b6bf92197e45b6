"""One collection whose vectors are in Qdrant and everything else in a record store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from trivet.stores.contract import (
    Collection,
    FeedbackLog,
    GraphIndex,
    ImportLog,
    Links,
    SettingsLog,
    State,
)
from trivet.stores.qdrant.documents import QdrantDocuments
from trivet.stores.qdrant.filters import QdrantFilters, RecordLexical, RecordTrigrams
from trivet.stores.qdrant.maintenance import QdrantMaintenance
from trivet.stores.qdrant.sync import PointSync
from trivet.stores.qdrant.vectors import QdrantVectors
from trivet.text.analysis import Analyzer

if TYPE_CHECKING:
    from trivet.stores.qdrant.store import QdrantStore

NAME_KEY = "qdrant"  # the key of the record store's config that has the collection's name in Qdrant


class QdrantCollection:
    """One collection. Safe to use from many threads."""

    bound = None

    def __init__(self, store: QdrantStore, records: Collection, sync: PointSync) -> None:
        """``records`` is the collection in the record store, ``sync`` writes its points."""
        self.store, self._records, self.sync = store, records, sync
        self.documents = QdrantDocuments(records.documents, sync)
        self.filters = QdrantFilters(records.filters)
        self.lexical = RecordLexical(records.lexical)
        self.trigrams = RecordTrigrams(records.trigrams)
        self.vectors = QdrantVectors(records, sync)
        self.maintenance = QdrantMaintenance(records, sync)
        self.links: Links = records.links
        self.feedback: FeedbackLog = records.feedback
        self.settings: SettingsLog = records.settings
        self.graph: GraphIndex | None = records.graph
        self.imports: ImportLog | None = records.imports

    @property
    def name(self) -> str:
        return self._records.name

    @property
    def config(self) -> Mapping[str, Any]:
        return {key: value for key, value in self._records.config.items() if key != NAME_KEY}

    @property
    def analyzer(self) -> Analyzer:
        return self._records.analyzer

    @property
    def read_only(self) -> bool:
        return self._records.read_only

    def snapshot(self) -> AbstractContextManager[None]:
        return self._records.snapshot()

    def state(self) -> State:
        return self._records.state()

    def knows_version(self, version: int, token: bytes) -> bool:
        return self._records.knows_version(version, token)

    def searching(self) -> AbstractContextManager[None]:
        return self._records.searching()
