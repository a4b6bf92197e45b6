"""One collection of a SQLite store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trivet.concurrency.admission import SEARCHES
from trivet.stores.sqlite.change_feed import ChangeFeed
from trivet.stores.sqlite.documents import SqliteDocuments
from trivet.stores.sqlite.feedback import SqliteFeedback
from trivet.stores.sqlite.filters import SqliteFilters, Visibility
from trivet.stores.sqlite.graph import SqliteGraphIndex
from trivet.stores.sqlite.imports import SqliteImportLog
from trivet.stores.sqlite.lexical import SqliteLexicalIndex
from trivet.stores.sqlite.links import SqliteLinks
from trivet.stores.sqlite.maintenance import SqliteMaintenance
from trivet.stores.sqlite.rows import CollectionRows
from trivet.stores.sqlite.settings import SqliteSettings
from trivet.stores.sqlite.trigrams import SqliteTrigramIndex
from trivet.stores.sqlite.vectors import SqliteVectorIndex
from trivet.text.analysis import Analyzer

if TYPE_CHECKING:
    from trivet.stores.sqlite.store import SqliteStore


class SqliteCollection:
    """The parts of one collection, and what they share. Safe to use from many threads."""

    bound = None  # this is the whole collection

    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        self.store, self.name, self.config = store, name, dict(config)
        self.read_only = store.database.read_only
        self.analyzer = Analyzer(self.config.get("language", "en"))
        rows = self.rows = CollectionRows(store.database, cid, uid, name)
        feed = self.feed = ChangeFeed(rows)
        self.snapshot, self.state, self.knows_version = rows.snapshot, rows.state, rows.knows_version

        folder = store.index_folder / f"c{cid}"
        embedding_lock = store.index_folder / f"embed-{cid}.lock"
        self.imports = SqliteImportLog(rows, folder / "imports")
        self.lexical = SqliteLexicalIndex(rows, feed, folder / "words", self.analyzer)
        self.trigrams = SqliteTrigramIndex(rows, feed, folder / "trigrams")
        self.vectors = SqliteVectorIndex(rows, feed, self.imports, folder, embedding_lock, store.start)
        self.graph = SqliteGraphIndex(rows, feed, folder / "graph", self.analyzer, store.start)
        self.maintenance = SqliteMaintenance(
            rows,
            self.lexical,
            self.trigrams,
            self.vectors,
            self.graph,
            self.imports,
            feed.ids_of,
            folder,
            store.start,
        )
        visibility = Visibility(rows)
        self.filters = SqliteFilters(rows, visibility)
        self.documents = SqliteDocuments(
            rows, visibility, self.imports, self.maintenance.open_stored, self.maintenance.note_removed, store.start
        )
        self.links = SqliteLinks(rows, visibility, self.documents.sweep_expired)
        self.feedback = SqliteFeedback(rows, visibility, self.documents.sweep_expired)
        self.settings = SqliteSettings(rows)

    @contextlib.contextmanager
    def searching(self) -> Iterator[None]:
        with self.rows.searches.counted(), SEARCHES.taken(), self.rows.database.lent():
            yield
