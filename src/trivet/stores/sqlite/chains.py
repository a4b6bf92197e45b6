"""Which documents stand in another's place, and which resolve it?

What the spine asks of the links that change recall. Only documents that are here take part: a link may name one that is
not, yet or any more. CROSS JOIN and the unary plus tell SQLite to go from a document to its own links, never through
all links of a type. Links are read in bounded numbers, counted before it is known whether their documents are here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from trivet.memory.succession import MAX_LINKS, TOO_MANY, walk
from trivet.types import RESOLVED_BY, SUPERSEDES, Resolutions, Succession, Successions


def any_that_count(connection: sqlite3.Connection, cid: int) -> bool:
    """Is there a link at all that changes recall? One look-up in an index."""
    sql = "SELECT 1 FROM links WHERE cid = ? AND type IN (?, ?) LIMIT 1"
    return connection.execute(sql, (cid, SUPERSEDES, RESOLVED_BY)).fetchone() is not None


def successors(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> Successions:
    """Who directly supersedes whom, among these documents and everything their chains lead to.

    A recursive query would be one statement, but SQLite has no way to stop it by the links it reads: a clump in which
    300 documents each supersede the same 300 took it 240 ms.
    """

    def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
        given = {"dids": json.dumps(list(olds)), "cid": cid, "type": SUPERSEDES, "most": most}
        rows = connection.execute(
            "SELECT o.did, o.id, d.did, d.id, d.created FROM json_each(:dids) j "
            "CROSS JOIN documents o ON o.did = j.value "
            "CROSS JOIN links l ON l.cid = :cid AND l.target = o.id AND +l.type = :type "
            "LEFT JOIN documents d ON d.cid = :cid AND d.id = l.source LIMIT :most",
            given,
        ).fetchall()
        return [Succession(*row) for row in rows if row[2] is not None], len(rows)

    return walk(dids, step)


def resolutions(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> Resolutions:
    """did → (did, id) of what resolves it, by id."""
    rows = connection.execute(
        "SELECT p.did, d.did, d.id FROM json_each(:dids) j "
        "CROSS JOIN documents p ON p.did = j.value "
        "CROSS JOIN links l ON l.cid = :cid AND l.source = p.id AND +l.type = :type "
        "LEFT JOIN documents d ON d.cid = :cid AND d.id = l.target LIMIT :most",
        {"dids": json.dumps(list(dids)), "cid": cid, "type": RESOLVED_BY, "most": MAX_LINKS + 1},
    ).fetchall()
    found: dict[int, list[tuple[int, str]]] = {}
    for problem, did, identifier in sorted(rows[:MAX_LINKS], key=lambda row: row[2] or ""):
        if did is not None and did != problem:
            found.setdefault(problem, []).append((did, identifier))
    return Resolutions(found, TOO_MANY.format(kind=RESOLVED_BY) if len(rows) > MAX_LINKS else "")


def first_passages(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
    """did → (did, ordinal, start, stop) of where the document begins."""
    sql = "SELECT did, ordinal, start, stop FROM passages WHERE did IN (SELECT value FROM json_each(?)) AND ordinal = 0"
    return {row[0]: row for row in connection.execute(sql, (json.dumps(list(dids)),))}
