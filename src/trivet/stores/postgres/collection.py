"""One collection on a PostgreSQL server: it makes its parts and connects them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trivet.stores.contract import State
from trivet.stores.postgres.documents import PostgresDocuments
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.feedback import PostgresFeedback
from trivet.stores.postgres.filters import PostgresFilters
from trivet.stores.postgres.graph import PostgresGraph
from trivet.stores.postgres.lexical import PostgresLexical
from trivet.stores.postgres.links import PostgresLinks
from trivet.stores.postgres.maintenance import PostgresMaintenance
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.settings import PostgresSettings
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.timeline import Timeline
from trivet.stores.postgres.trigrams import PostgresTrigrams
from trivet.stores.postgres.vectors import PostgresVectors
from trivet.stores.postgres.visibility import Visibility
from trivet.text.analysis import Analyzer

if TYPE_CHECKING:
    from trivet.stores.postgres.store import PostgresStore


class PostgresCollection:
    """One collection. Safe to use from many threads."""

    bound = None
    imports = None

    def __init__(self, store: PostgresStore, cid: int, name: str, config: Mapping[str, Any]) -> None:
        """``cid`` is its number; ``config`` is what it was created with, and its parts where it is distributed."""
        self.store, self.name = store, name
        self.config = {key: value for key, value in config.items() if key != "parts"}
        self.analyzer = Analyzer(self.config.get("language", "en"))
        rows = self.rows = Rows(store.database, Tables(cid, tuple(config.get("parts", ()))), name, self.analyzer)
        timeline = self.timeline = Timeline(rows, self._drop_caches)
        expiry = Expiry(rows, store.start)
        visibility = Visibility(rows, expiry)
        self.links = PostgresLinks(rows, expiry, visibility)
        self.documents = PostgresDocuments(rows, timeline, expiry, visibility, self.links)
        self.feedback = PostgresFeedback(rows, expiry, visibility)
        self.settings = PostgresSettings(rows)
        self.filters = PostgresFilters(rows, visibility, self.documents)
        self.lexical = PostgresLexical(rows, store.start)
        self.trigrams = PostgresTrigrams(store.database, rows.tables)
        self.vectors = PostgresVectors(rows, store.start, store.database.locked)
        self.graph = PostgresGraph(rows, store.start, timeline.note_snapshot)
        self.maintenance = PostgresMaintenance(rows, timeline, self.documents, self.lexical, self.vectors, self.graph)

    @property
    def read_only(self) -> bool:
        return self.store.database.read_only

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        return self.rows.snapshot()

    def state(self) -> State:
        return self.timeline.state()

    def knows_version(self, version: int, token: bytes) -> bool:
        return self.timeline.knows_version(version, token)

    def searching(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # what runs in the background runs on the server

    def _drop_caches(self) -> None:
        for part in (self.documents, self.filters, self.lexical, self.graph):
            part.drop_caches()
