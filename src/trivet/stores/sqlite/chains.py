"""Which documents stand in another's place, and which resolve it?

What the spine asks of the links that change recall. Only documents that are here take part: a link may name one that is
not, yet or any more. CROSS JOIN and the unary plus tell SQLite to go from a document to its own links, never through
all links of a type.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from trivet.types import RESOLVED_BY, SUPERSEDES, Succession


def any_that_count(connection: sqlite3.Connection, cid: int) -> bool:
    """Is there a link at all that changes recall? One look-up in an index."""
    sql = "SELECT 1 FROM links WHERE cid = ? AND type IN (?, ?) LIMIT 1"
    return connection.execute(sql, (cid, SUPERSEDES, RESOLVED_BY)).fetchone() is not None


def successors(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> list[Succession]:
    """Who directly supersedes whom, among these documents and everything their chains lead to."""
    rows = connection.execute(
        "WITH RECURSIVE chain(did, id) AS ("
        "  SELECT did, id FROM documents WHERE did IN (SELECT value FROM json_each(:dids))"
        "  UNION"
        "  SELECT d.did, d.id FROM chain c"
        "  CROSS JOIN links l ON l.cid = :cid AND l.target = c.id AND +l.type = :type"
        "  CROSS JOIN documents d ON d.cid = :cid AND d.id = l.source"
        ") "
        "SELECT c.did, c.id, d.did, d.id, d.created FROM chain c "
        "CROSS JOIN links l ON l.cid = :cid AND l.target = c.id AND +l.type = :type "
        "CROSS JOIN documents d ON d.cid = :cid AND d.id = l.source",
        {"dids": json.dumps(list(dids)), "cid": cid, "type": SUPERSEDES},
    )
    return [Succession(*row) for row in rows]


def resolutions(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
    """did → (did, id) of what resolves it, by id."""
    rows = connection.execute(
        "SELECT p.did, d.did, d.id FROM documents p "
        "CROSS JOIN links l ON l.cid = :cid AND l.source = p.id AND +l.type = :type "
        "CROSS JOIN documents d ON d.cid = :cid AND d.id = l.target "
        "WHERE p.did IN (SELECT value FROM json_each(:dids)) AND d.did <> p.did ORDER BY d.id",
        {"dids": json.dumps(list(dids)), "cid": cid, "type": RESOLVED_BY},
    )
    found: dict[int, list[tuple[int, str]]] = {}
    for problem, did, identifier in rows:
        found.setdefault(problem, []).append((did, identifier))
    return found


def first_passages(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
    """did → (did, ordinal, start, stop) of where the document begins."""
    sql = "SELECT did, ordinal, start, stop FROM passages WHERE did IN (SELECT value FROM json_each(?)) AND ordinal = 0"
    return {row[0]: row for row in connection.execute(sql, (json.dumps(list(dids)),))}
