"""The links of one collection, and the chains of links that a search follows.

Only documents that exist take part in a chain: a link may name one that does not, yet or any more. ``CROSS JOIN`` and
the unary plus tell SQLite to go from a document to its own links, never through all links of a type. The links read are
bounded, and counted before it is known whether their documents exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from trivet.filters import Filter
from trivet.graph.supersession import MAX_LINKS, TOO_MANY, walk
from trivet.stores.scoped import check_ends, ends
from trivet.stores.sqlite.document_writes import add_links
from trivet.stores.sqlite.filters import Visibility
from trivet.stores.sqlite.rows import CollectionRows, visible
from trivet.types import RESOLVED_BY, SUPERSEDES, Link, Resolutions, Succession, Successions

_FOLLOWED = "SELECT 1 FROM links WHERE cid = ? AND type IN (?, ?) LIMIT 1"
_SUCCESSORS = (
    "SELECT o.did, o.id, d.did, d.id, d.created FROM json_each(:dids) j "
    "CROSS JOIN documents o ON o.did = j.value "
    "CROSS JOIN links l ON l.cid = :cid AND l.target = o.id AND +l.type = :type "
    "LEFT JOIN documents d ON d.cid = :cid AND d.id = l.source LIMIT :most"
)
_RESOLUTIONS = (
    "SELECT p.did, d.did, d.id FROM json_each(:dids) j "
    "CROSS JOIN documents p ON p.did = j.value "
    "CROSS JOIN links l ON l.cid = :cid AND l.source = p.id AND +l.type = :type "
    "LEFT JOIN documents d ON d.cid = :cid AND d.id = l.target LIMIT :most"
)


class SqliteLinks:
    """The links between the documents of one collection."""

    def __init__(self, rows: CollectionRows, visibility: Visibility, sweep_expired: Callable[[], None]) -> None:
        self._rows, self._cid, self._all, self._visibility = rows, rows.cid, rows.all, visibility
        self._sweep_expired = sweep_expired

    def add(self, links: Sequence[Link], within: Filter | None = None) -> None:
        self._sweep_expired()
        with self._rows.changing() as connection:
            check_ends(links, visible(connection, self._cid, ends(links), within), self._rows.name)
            add_links(connection, self._cid, links)

    def remove(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self._rows.changing() as connection:
            if within is not None and len(visible(connection, self._cid, [source, target], within)) < 2:
                return 0
            return connection.execute(
                "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = coalesce(?, type)",
                (self._cid, source, target, kind),
            ).rowcount

    def of(self, id: str | None = None, where: Filter | None = None) -> list[Link]:
        sql = "SELECT source, target, type, weight FROM links WHERE cid = ?"
        values: tuple[Any, ...] = (self._cid,)
        if id is not None:
            sql = f"{sql} AND source = ? UNION {sql} AND target = ?"
            values = (self._cid, id, self._cid, id)
        with self._rows.snapshot():
            found = [Link(*row) for row in self._all(f"{sql} ORDER BY source, target, type", values)]
            hidden = self._visibility.hidden([end for link in found for end in (link.source, link.target)], where)
        return [link for link in found if link.source not in hidden and link.target not in hidden]

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        with self._rows.snapshot():
            hides_none = self._visibility.unexpired(where) is None
            found = self._superseded(ids, limit if hides_none else -1)
            hidden = self._visibility.hidden([end for pair in found for end in pair], where)
        return [pair for pair in found if hidden.isdisjoint(pair)][:limit]

    def _superseded(self, ids: Sequence[str] | None, limit: int) -> list[tuple[str, str]]:
        among = "l.type = ?" if ids is None else "+l.type = ? AND l.target IN (SELECT value FROM json_each(?))"
        values = () if ids is None else (json.dumps(list(ids)),)
        rows = self._all(
            "SELECT l.target, l.source FROM links l JOIN documents o ON o.cid = l.cid AND o.id = l.target "
            "JOIN documents n ON n.cid = l.cid AND n.id = l.source "
            f"WHERE l.cid = ? AND l.source <> l.target AND {among} ORDER BY n.created DESC, l.target LIMIT ?",
            (self._cid, SUPERSEDES, *values, limit),
        )
        return [(old, new) for old, new in rows]

    # --- links that a search follows ----------------------------------------------------------------------------------

    def any_followed(self) -> bool:
        return bool(self._all(_FOLLOWED, (self._cid, SUPERSEDES, RESOLVED_BY)))

    def successors(self, dids: Sequence[int]) -> Successions:
        # step by step: SQLite cannot stop a recursive query by the links it reads, and where 300 documents each
        # supersede the same 300 it took 240 ms
        with self._rows.explained():
            connection = self._rows.database.read()

            def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
                given = {"dids": json.dumps(list(olds)), "cid": self._cid, "type": SUPERSEDES, "most": most}
                rows = connection.execute(_SUCCESSORS, given).fetchall()
                return [Succession(*row) for row in rows if row[2] is not None], len(rows)

            return walk(dids, step)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        given = {"dids": json.dumps(list(dids)), "cid": self._cid, "type": RESOLVED_BY, "most": MAX_LINKS + 1}
        with self._rows.explained():
            rows = self._rows.database.read().execute(_RESOLUTIONS, given).fetchall()
        found: dict[int, list[tuple[int, str]]] = {}
        for problem, did, id in sorted(rows[:MAX_LINKS], key=lambda row: row[2] or ""):
            if did is not None and did != problem:
                found.setdefault(problem, []).append((did, id))
        return Resolutions(found, TOO_MANY.format(kind=RESOLVED_BY) if len(rows) > MAX_LINKS else "")
