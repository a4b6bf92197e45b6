"""What the graph index (``stores/indexes/graph_index.py``) reads from a PostgreSQL server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trivet.stores.indexes.snapshots import PrunedError
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.timeline import token_of
from trivet.text.concepts import Triple, triples_of


class GraphSource:
    """The passages, removals and triples of one collection."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """Return (pid, did, title, text) of passages in order of their numbers."""
        tables = self._rows.tables
        sql = (
            f"SELECT p.pid, p.did, d.title, p.body FROM {tables.passages} p "
            f"JOIN {tables.documents} d ON {tables.beside('d', 'p')} AND d.did = p.did "
            f"WHERE {tables.of('p')} AND p.pid > %s ORDER BY p.pid LIMIT %s"
        )
        rows = self._rows.all(sql, (pid, limit))
        return [(pid, did, title, body[len(title) + 1 :] if title else body) for pid, did, title, body in rows]

    def count_after(self, pid: int) -> int:
        """Count the passages after a number."""
        tables = self._rows.tables
        sql = f"SELECT count(*) FROM {tables.passages} WHERE {tables.of()} AND pid > %s"
        return int(self._rows.all(sql, (pid,))[0][0])

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) of removed passages in order; ``PrunedError`` where some are no longer logged."""
        sql = "SELECT seq, pid FROM removed WHERE cid = %s AND seq > %s ORDER BY seq"
        found = [(number, pid) for number, pid in self._rows.all(sql, (self._rows.root, seq))]
        if seq < self.pruned():  # checked after the rows were read: what is not pruned now was not pruned then
            raise PrunedError(f"removals after {seq} were pruned")
        return found

    def last_removed(self) -> int:
        """Return the number of the last removal."""
        return self._head("last_removed")

    def pruned(self) -> int:
        """Return the number of the last removal that is no longer logged."""
        return self._head("coalesce(pruned, 0)")

    def newest(self) -> int:
        """Return the highest number that a passage can have."""
        count = self._head("last_passage")
        return self._rows.tables.highest(count) if count else 0

    def checkpoint(self, name: str) -> dict[str, Any]:
        """Return what identifies the current state, for the index to keep."""
        rows = self._rows.all(
            "SELECT h.version, t.token FROM heads h JOIN timeline t ON t.cid = h.cid AND t.version = h.version "
            "WHERE h.cid = %s",
            (self._rows.root,),
        )
        return {"version": rows[0][0], "token": bytes(rows[0][1]).hex()} if rows else {"version": -1, "token": ""}

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        """Tell whether a checkpoint is in the collection's past."""
        token = token_of(self._rows.all, self._rows.root, int(checkpoint["version"]))
        return token is not None and token.hex() == checkpoint["token"]

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        """Return the triples of those documents that have some."""
        head, having = f"SELECT did, meta FROM {self._rows.tables.documents}", " AND strpos(meta, '\"triples\"') > 0"
        return {did: triples_of(json.loads(meta)) for did, meta in self._rows.by_number(head, "did", dids, having)}

    def _head(self, column: str) -> int:
        rows = self._rows.all(f"SELECT {column} FROM heads WHERE cid = %s", (self._rows.root,))
        return int(rows[0][0]) if rows else 0
