"""The graph index of one collection: mentions of concepts, and the edges between documents.

Edges are links, neighbours in a session and shared rare metadata values (``trivet.graph.edges`` has the rules). They
are read from the records for each walk, in a few dozen look-ups.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import IndexNotReadyError, TrivetError
from trivet.graph.edges import HEAVIEST, MOST_LINKS, NEAR, RARE, SHARED_VALUE, Edge, follows, session_key, shared_values
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.contract import State
from trivet.stores.sqlite.change_feed import ChangeFeed
from trivet.stores.sqlite.opened_index import OpenedIndex
from trivet.stores.sqlite.rows import CollectionRows, marks
from trivet.text.analysis import Analyzer
from trivet.types import SUPERSEDES, Progress

if TYPE_CHECKING:
    from trivet.graph.mentions import MentionGraph
    from trivet.stores.indexes.graph_index import GraphIndex

MANY_BEHIND = 5_000  # passages that the graph has not read: some seconds
FEW_BEHIND = 32  # passages that a search reads in a few milliseconds
LOOSE = 1_000  # documents that are not in the snapshot on disk; fewer are read again by the next process
MOST_SHARING = 65_536  # values whose documents are cached, a few megabytes

_Row = tuple[int, Mapping[str, Any], float]  # document, metadata, created
#: The documents that have a value under a key, until the next write; none where it is one document or too many.
Sharing = dict[tuple[str, str], tuple[int, ...]]


class SqliteGraphIndex:
    """Mentions from an index on disk; edges from the records, because they change without any passage changing."""

    def __init__(
        self,
        rows: CollectionRows,
        feed: ChangeFeed,
        folder: Path,
        analyzer: Analyzer,
        start: Start,
    ) -> None:
        def open(folder: Path) -> GraphIndex:
            from trivet.stores.indexes.graph_index import GraphIndex

            return GraphIndex(folder, feed, f"{analyzer.id}/{rows.identity}", analyzer.stop_words)

        self._rows, self._cid = rows, rows.cid
        self.opened = OpenedIndex(folder, open)
        # both end where the store is closed: the next process does the work
        self._updating = BackgroundTask(start, lambda: self.update(rows.searches.give_way), TrivetError)
        self._settling = BackgroundTask(start, lambda index: index.settle(), TrivetError)
        self._linked: tuple[int, bool, Sharing] = (-1, False, {})  # version, any links, documents by shared value
        rows.on_reset(self._reset)

    def _reset(self) -> None:
        self.opened.reset()
        self._linked = (-1, False, {})

    def mentions(self, version: int) -> MentionGraph:
        # much that is new is read in the background: a search does not wait minutes for a leg
        index = self.opened.index or self.opened.open()
        if not index.is_current(version) and (self._updating.running or index.is_far_behind(MANY_BEHIND)):
            self.update_in_background()
            raise IndexNotReadyError("its connections are being read; it answers after that")
        found = index.graph(version)
        if index.wants_settling:
            self._settling.start(index)
        return found

    def edges(self, dids: Sequence[int], version: int, sessions: bool = True) -> list[Edge]:
        with self._rows.explained():
            connection = self._rows.database.read()
            known, linked, sharing = self._linked
            if known != version or len(sharing) > MOST_SHARING:
                sql = "SELECT 1 FROM links WHERE cid = ? AND type <> ? LIMIT 1"
                linked = connection.execute(sql, (self._cid, SUPERSEDES)).fetchone() is not None
                sharing = {}
                self._linked = (version, linked, sharing)
            found = list(self._links(connection, dids)) if linked else []
            for row in _rows(connection, dids).values():
                if sessions:
                    found += self._neighbours(connection, row)
                self._add_sharing(connection, row, sharing, found)
            return found

    def is_current(self, state: State) -> bool:
        index = self.opened.index
        return index is not None and (index.is_current(state.version) or not index.is_far_behind(FEW_BEHIND))

    def update_in_background(self) -> None:
        self._updating.start()

    def update(self, give_way: Callable[[], None] | None = None, progress: Progress | None = None) -> None:
        """Bring the index up to date, in memory and on disk."""
        index = self.opened.open()
        index.catch_up(self._rows.state().version, progress, give_way)
        index.settle(at_least=LOOSE)

    # --- edges --------------------------------------------------------------------------------------------------------

    def _links(self, connection: sqlite3.Connection, dids: Sequence[int]) -> Iterator[Edge]:
        """Yield the links in both directions, but not to superseded documents."""
        for here, there in (("source", "target"), ("target", "source")):
            sql = (
                f"SELECT o.did, l.type, l.weight FROM documents d JOIN links l ON l.cid = d.cid AND l.{here} = d.id "
                f"JOIN documents o ON o.cid = l.cid AND o.id = l.{there} "
                "WHERE d.did = ? AND d.cid = ? AND l.type <> ? LIMIT ?"
            )
            for did in dids:
                for other, kind, weight in connection.execute(sql, (did, self._cid, SUPERSEDES, MOST_LINKS)):
                    yield Edge(did, other, min(weight, HEAVIEST), kind)

    def _neighbours(self, connection: sqlite3.Connection, row: _Row) -> Iterator[Edge]:
        """Yield the documents before and after this one in its session."""
        did, meta, _ = row
        key = session_key(meta)
        if key is None:
            return
        near: list[int] = []
        for comparison, order in (("<", "DESC"), (">", "ASC")):
            sql = (
                f"SELECT did FROM fields WHERE cid = ? AND key = ? AND value = ? AND did {comparison} ? "
                f"ORDER BY did {order} LIMIT ?"
            )
            near += [other for (other,) in connection.execute(sql, (self._cid, key, meta[key], did, NEAR))]
        around = [other for other in _rows(connection, near).values() if follows(meta, other[1])] if near else []
        ordered = sorted([*around, row], key=lambda item: (item[2], item[0]))
        at = ordered.index(row)
        if at:
            yield Edge(did, ordered[at - 1][0], 1.0, f"before it in {key}")
        if at + 1 < len(ordered):
            yield Edge(did, ordered[at + 1][0], 1.0, f"after it in {key}")

    def _add_sharing(self, connection: sqlite3.Connection, row: _Row, known: Sharing, found: list[Edge]) -> None:
        """Add the documents with the same rare value: a ticket, a page, an author of three notes."""
        did, meta, _ = row
        for shared in shared_values(meta):
            others = known.get(shared)
            if others is None:
                others = known[shared] = self._having(connection, *shared)
            if others:
                weight, label = SHARED_VALUE / (len(others) - 1), " ".join(shared)
                found += [Edge(did, other, weight, label) for other in others]

    def _having(self, connection: sqlite3.Connection, key: str, value: str) -> tuple[int, ...]:
        sql = "SELECT did FROM fields WHERE cid = ? AND key = ? AND value = ? LIMIT ?"
        others = tuple([other for (other,) in connection.execute(sql, (self._cid, key, value, RARE + 1))])
        return others if 1 < len(others) <= RARE else ()


def _rows(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, _Row]:
    sql = f"SELECT did, meta, created FROM documents WHERE did IN ({marks(dids)})"
    return {did: (did, json.loads(meta), created) for did, meta, created in connection.execute(sql, list(dids))}
