"""The graph of a collection on a PostgreSQL server.

Mentions are an index of the passages (``stores/indexes/graph_index.py``), held by each process that walks the graph,
read from the server, and kept in the cache folder of this machine. Edges are read from the server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from trivet.cache_folder import cache_folder
from trivet.errors import IndexNotReadyError, TrivetError
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.contract import State
from trivet.stores.postgres import edges
from trivet.stores.postgres.graph_source import GraphSource
from trivet.stores.postgres.rows import Rows
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.graph.edges import Edge
    from trivet.graph.mentions import MentionGraph
    from trivet.stores.indexes.differences import Differences
    from trivet.stores.indexes.graph_index import GraphIndex

MANY_BEHIND = 5_000  # passages to index, some seconds: more are indexed in the background


class PostgresGraph:
    """The graph of one collection."""

    def __init__(self, rows: Rows, start: Start, note_snapshot: Callable[[], tuple[int, bool]]) -> None:
        """``note_snapshot`` is that of the timeline."""
        self._rows, self._note_snapshot = rows, note_snapshot
        self._lock = threading.Lock()
        self._background = BackgroundTask(start, self.update, TrivetError)  # closed meanwhile: the next process does it
        self._index: GraphIndex | None = None
        self._linked = (-1, False)  # a version, and whether it has any link

    def drop_caches(self) -> None:
        """Drop what is in memory; the index on disk is checked by its checkpoint when it is opened again."""
        with self._lock:
            self._index = None
        self._linked = (-1, False)

    def mentions(self, version: int) -> MentionGraph:
        index = self.index()
        if not index.is_current(version) and (self._background.running or index.behind > MANY_BEHIND):
            self.update_in_background()
            raise IndexNotReadyError("the graph index is being updated in the background; it answers after that")
        if index.is_current(version):
            return index.graph(version)
        with self._rows.snapshot():  # the passages that are read and the state that is noted must be the same
            self._note_snapshot()
            return index.graph(version)

    def edges(self, dids: Sequence[int], version: int, sessions: bool = True) -> list[Edge]:
        known, linked = self._linked
        if known != version:
            linked = edges.any_links(self._rows.all, self._rows.root)
            self._linked = (version, linked)
        return edges.edges(self._rows, dids, linked, sessions)

    def is_current(self, state: State) -> bool:
        return True  # ``mentions`` never waits long for the index

    def update_in_background(self) -> None:
        self._background.start()

    # --- maintenance --------------------------------------------------------------------------------------------------

    @property
    def in_use(self) -> bool:
        """Whether this process has read the graph."""
        return self._index is not None

    def update(self) -> None:
        """Bring the index of mentions up to date."""
        index = self.index()
        with self._rows.snapshot():  # also for the checkpoint: it must be that of the state that was read
            version, newest = self._note_snapshot()
            index.catch_up(version)
            if newest:
                index.settle(at_least=1_000)

    def compare(self, report: Progress | None = None) -> Differences | None:
        """Compare the index on this machine with the passages; None where there is none."""
        index = self.index()
        if index.deleted:
            from trivet.stores.indexes.differences import Differences

            return Differences("graph", {index.deleted[0].partition(": ")[2]: {}})
        found = index.compare(report)
        found.index = "graph"
        return found if index.held().pid else None

    def index(self) -> GraphIndex:
        """Return the index of mentions, opened once."""
        from trivet.stores.indexes.graph_index import GraphIndex

        with self._lock:
            if self._index is None:
                root, analyzer = self._rows.root, self._rows.analyzer
                row = self._rows.all("SELECT created FROM collections WHERE cid = %s", (root,))
                step = self._rows.tables.step
                identity = f"{analyzer.id}/{root}/{row[0][0] if row else 0!r}" + (f"/{step}" if step > 1 else "")
                address = self._rows.database.address.shown
                folder = cache_folder() / "graphs" / blake2b(address.encode(), digest_size=8).hexdigest() / f"c{root}"
                self._index = GraphIndex(folder, GraphSource(self._rows), identity, analyzer.stop_words, step)
            return self._index
