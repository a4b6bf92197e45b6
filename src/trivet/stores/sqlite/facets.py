"""What is in a collection, counted: which values do its fields have, when was it written, what stands in whose place?

For people who look around. Nothing here ranks, and every function works on a connection the caller holds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from trivet.types import SUPERSEDES, Facet, Period

Condition = tuple[str, Sequence[Any]]  # " AND did IN (…)" and its values; empty for everything

#: How a moment is cut to a period, for SQLite. What lies outside the years 0 to 9999 has no name and is not counted.
STEPS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
DAY = 86_400.0  # seconds
#: A step is fine enough when it makes at most this many periods: about what a line of a page has room for.
MOST_DAYS, MOST_MONTHS = 62, 72


def kinds(connection: sqlite3.Connection, cid: int, within: Condition, values: int) -> Facet:
    condition, bound = within
    rows = connection.execute(
        f"SELECT kind, count(*) FROM documents WHERE cid = ?{condition} GROUP BY kind ORDER BY 2 DESC, 1", (cid, *bound)
    ).fetchall()
    return Facet("kind", sum(count for _, count in rows), len(rows), tuple(rows[:values]))


def facet(connection: sqlite3.Connection, cid: int, key: str, within: Condition, values: int) -> Facet:
    """One field of the metadata: its commonest values. A document with several is counted under each."""
    condition, bound = within
    documents, distinct = connection.execute(
        f"SELECT count(DISTINCT did), count(DISTINCT value) FROM fields WHERE cid = ? AND key = ?{condition}",
        (cid, key, *bound),
    ).fetchone()
    rows = connection.execute(
        f"SELECT value, count(*) FROM fields WHERE cid = ? AND key = ?{condition} "
        "GROUP BY value ORDER BY 2 DESC, 1 LIMIT ?",
        (cid, key, *bound, values),
    ).fetchall()
    return Facet(key, documents, distinct, tuple(rows))


def timeline(
    connection: sqlite3.Connection, cid: int, column: str, step: str | None, within: Condition
) -> tuple[str, list[Period]]:
    """(the step, how many documents in each period that has any); ``column`` is from the closed list of times."""
    condition, bound = within
    if column == "expires":
        column = "(SELECT at FROM expiries WHERE expiries.did = documents.did)"
    if step is None:
        sql = f"SELECT min({column}), max({column}) FROM documents WHERE cid = ?{condition}"
        first, last = connection.execute(sql, (cid, *bound)).fetchone()
        step = _fitting((last - first) / DAY if first is not None else 0.0)
    rows = connection.execute(
        f"SELECT strftime('{STEPS[step]}', {column}, 'unixepoch') AS period, count(*) FROM documents "
        f"WHERE cid = ? AND {column} IS NOT NULL{condition} GROUP BY period HAVING period IS NOT NULL ORDER BY period",
        (cid, *bound),
    )
    return step, [Period(*row) for row in rows]


def _fitting(days: float) -> str:
    if days <= MOST_DAYS:
        return "day"
    return "month" if days / 30 <= MOST_MONTHS else "year"


def superseded(
    connection: sqlite3.Connection, cid: int, ids: Sequence[str] | None, limit: int
) -> list[tuple[str, str]]:
    """(id, id of what directly supersedes it), of these documents or of all."""
    # The unary plus: SQLite goes from the named documents to their own links, not through all links of the type.
    named = "l.type = ?" if ids is None else "+l.type = ? AND l.target IN (SELECT value FROM json_each(?))"
    values = () if ids is None else (json.dumps(list(ids)),)
    return connection.execute(
        "SELECT l.target, l.source FROM links l JOIN documents o ON o.cid = l.cid AND o.id = l.target "
        "JOIN documents n ON n.cid = l.cid AND n.id = l.source "
        f"WHERE l.cid = ? AND l.source <> l.target AND {named} ORDER BY n.created DESC, l.target LIMIT ?",
        (cid, SUPERSEDES, *values, limit),
    ).fetchall()


def texts(connection: sqlite3.Connection, cid: int, limit: int, within: Condition = ("", ())) -> list[tuple[str, str]]:
    """(id, text) of the first documents: a copy is told by what it says."""
    condition, bound = within
    sql = f"SELECT id, text FROM documents WHERE +cid = ? AND text <> ''{condition} ORDER BY did LIMIT ?"
    return connection.execute(sql, (cid, *bound, limit)).fetchall()
