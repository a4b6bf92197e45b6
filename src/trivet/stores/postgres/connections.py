"""Who names what in a collection on a server, kept ready to walk?

The graph is a projection of the passages, held by each process that walks it: the same one as of a file, read from the
server and kept in this machine's cache folder between processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.concepts import Triple, triples_of
from trivet.errors import StoreError, TrivetError
from trivet.stores.postgres import ties
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.parts import Parts
from trivet.stores.sqlite.snapshots import PrunedError

if TYPE_CHECKING:
    from trivet.analysis import Analyzer
    from trivet.graph.block import Graph
    from trivet.graph.walk import Tie
    from trivet.stores.contract import Progress
    from trivet.stores.sqlite.comparison import Differences
    from trivet.stores.sqlite.graph import GraphIndex

MANY_BEHIND = 5_000  # passages it has not read: some seconds


class Connections:
    """The graph of one collection, and what it reads."""

    def __init__(
        self,
        database: Database,
        parts: Parts,
        analyzer: Analyzer,
        start: Callable[..., None],
        note_snapshot: Callable[[], tuple[int, bool]],
    ) -> None:
        """``start`` runs something in the background; ``note_snapshot`` says that a snapshot's state was read."""
        self._database, self._parts, self._analyzer, self._start = database, parts, analyzer, start
        self._note_snapshot = note_snapshot
        self._cid = parts.root
        self._lock = threading.Lock()
        self._reading = threading.Event()
        self._index: GraphIndex | None = None
        self._linked = (-1, False)  # at which version: is there any link?

    def graph(self, version: int) -> Graph:
        """Much that is new is read in the background: a search does not wait minutes for a leg."""
        index = self._opened()
        if not index.is_current(version) and (self._reading.is_set() or index.behind > MANY_BEHIND):
            self.read()
            raise StoreError("its connections are being read; it answers after that")
        if index.is_current(version):
            return index.graph(version)
        with self._database.snapshot():  # what is read, and the state that it is noted as, are one
            self._note_snapshot()
            return index.graph(version)

    def ties(self, dids: Sequence[int], version: int) -> list[Tie]:
        known, linked = self._linked
        if known != version:
            linked = ties.any_links(self._database.all, self._cid)
            self._linked = (version, linked)
        return ties.ties(self._database.all, self._parts, dids, linked)

    @property
    def in_use(self) -> bool:
        return self._index is not None

    def read(self) -> None:
        """Bring the graph up to date in the background."""
        if not self._reading.is_set():
            self._reading.set()
            self._start(self._read)

    def _read(self) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                self.catch_up()
        finally:
            self._reading.clear()

    def catch_up(self) -> None:
        index = self._opened()
        with self._database.snapshot():  # also for the checkpoint: it must be of the state that was read
            version, newest = self._note_snapshot()
            index.catch_up(version)
            if newest:
                index.settle(at_least=1_000)

    def compare(self, report: Progress | None = None) -> Differences | None:
        """Compare the graph that this machine keeps with the passages; None where it keeps none."""
        index = self._opened()
        if index.deleted:
            from trivet.stores.sqlite.comparison import Differences

            return Differences("graph", {index.deleted[0].partition(": ")[2]: {}})
        found = index.compare(report)
        found.index = "graph"
        return found if index.held().pid else None

    def discard(self) -> None:
        self._opened().discard()

    def rewrite(self) -> None:
        """Write the graph on this machine's disk anew without removed documents, where there is one."""
        self._opened().rewrite()

    @property
    def applied(self) -> int | None:
        """The last removal that the graph on this machine's disk has applied; None where there is none."""
        return self._opened().applied

    def _opened(self) -> GraphIndex:
        from trivet.stores.sqlite.graph import GraphIndex

        with self._lock:
            if self._index is None:
                row = self._database.all("SELECT created FROM collections WHERE cid = %s", (self._cid,))
                identity = f"{self._analyzer.id}/{self._cid}/{row[0][0] if row else 0!r}"
                folder = _cache() / blake2b(self._database.address.shown.encode(), digest_size=8).hexdigest()
                stop_words = self._analyzer.stop_words
                self._index = GraphIndex(folder / f"c{self._cid}", self, identity, stop_words)
            return self._index

    # --- what the projection reads ------------------------------------------------------------------------------------

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        sql = (
            "SELECT p.pid, p.did, d.title, p.body FROM passages p JOIN documents d ON d.cid = p.cid AND d.did = p.did "
            "WHERE p.cid = %s AND p.pid > %s ORDER BY p.pid LIMIT %s"
        )
        rows = [row for part in self._parts.every for row in self._database.all(sql, (part.cid, pid, limit))]
        return [
            (pid, did, title, body[len(title) + 1 :] if title else body)
            for pid, did, title, body in sorted(rows, key=lambda row: row[0])[:limit]
        ]

    def count_after(self, pid: int) -> int:
        sql = "SELECT count(*) FROM passages WHERE cid = %s AND pid > %s"
        return sum(int(self._database.all(sql, (part.cid, pid))[0][0]) for part in self._parts.every)

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order. ``PrunedError`` where some of them are no longer kept."""
        sql = "SELECT seq, pid FROM removed WHERE cid = %s AND seq > %s ORDER BY seq"
        found = [(number, pid) for number, pid in self._database.all(sql, (self._cid, seq))]
        # asked after the rows were read: what is not pruned now was not pruned then
        if seq < self.pruned():
            raise PrunedError(f"removals after {seq} were pruned")
        return found

    def last_removed(self) -> int:
        rows = self._database.all("SELECT last_removed FROM heads WHERE cid = %s", (self._cid,))
        return int(rows[0][0]) if rows else 0

    def pruned(self) -> int:
        rows = self._database.all("SELECT coalesce(pruned, 0) FROM heads WHERE cid = %s", (self._cid,))
        return int(rows[0][0]) if rows else 0

    def newest(self) -> int:
        rows = self._database.all("SELECT last_passage FROM heads WHERE cid = %s", (self._cid,))
        return self._parts.up_to(int(rows[0][0])) if rows else 0

    def checkpoint(self, name: str) -> dict[str, Any]:
        """What the graph on this machine's disk says of the state it was made from."""
        rows = self._database.all(
            "SELECT h.version, t.token FROM heads h JOIN timeline t ON t.cid = h.cid AND t.version = h.version "
            "WHERE h.cid = %s",
            (self._cid,),
        )
        return {"version": rows[0][0], "token": bytes(rows[0][1]).hex()} if rows else {"version": -1, "token": ""}

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        sql = "SELECT token FROM timeline WHERE cid = %s AND version = %s"
        rows = self._database.all(sql, (self._cid, int(checkpoint["version"])))
        return bool(rows) and bytes(rows[0][0]).hex() == checkpoint["token"]

    def forget(self) -> None:
        """Drop what is held in memory; what is on disk is asked for its checkpoint when it is opened again."""
        with self._lock:
            self._index = None
        self._linked = (-1, False)

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        sql = "SELECT did, meta FROM documents WHERE cid = %s AND did = ANY(%s) AND strpos(meta, '\"triples\"') > 0"
        return {
            did: triples_of(json.loads(meta))
            for part, own in self._parts.by_number(dids).items()
            for did, meta in self._database.all(sql, (part.cid, own))
        }


def _cache() -> Path:
    said = os.environ.get("TRIVET_CACHE")
    home = Path(said) if said else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trivet"
    return home / "graphs"
