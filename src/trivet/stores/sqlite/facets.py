"""Counts of documents by field value and by time. Every function works on a connection that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from trivet.stores.periods import step_for
from trivet.types import Facet, Period

Condition = tuple[str, Sequence[Any]]  # " AND did IN (…)" and its values; empty for everything

#: SQLite's format of each period. A time outside of the years 0 to 9999 has none and is not counted.
STEPS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


def kinds(connection: sqlite3.Connection, cid: int, within: Condition, values: int) -> Facet:
    """Count the documents of each kind."""
    condition, bound = within
    rows = connection.execute(
        f"SELECT kind, count(*) FROM documents WHERE cid = ?{condition} GROUP BY kind ORDER BY 2 DESC, 1", (cid, *bound)
    ).fetchall()
    return Facet("kind", sum(count for _, count in rows), len(rows), tuple(rows[:values]))


def facet(connection: sqlite3.Connection, cid: int, key: str, within: Condition, values: int) -> Facet:
    """Count the commonest values of a metadata key; a document with several values is counted for each."""
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
    """Return the step and the documents of each period that has any; ``column`` is one of the time columns."""
    condition, bound = within
    if column == "expires":
        column = "(SELECT at FROM expiries WHERE expiries.did = documents.did)"
    if step is None:
        sql = f"SELECT min({column}), max({column}) FROM documents WHERE cid = ?{condition}"
        first, last = connection.execute(sql, (cid, *bound)).fetchone()
        step = step_for(first, last)
    rows = connection.execute(
        f"SELECT strftime('{STEPS[step]}', {column}, 'unixepoch') AS period, count(*) FROM documents "
        f"WHERE cid = ? AND {column} IS NOT NULL{condition} GROUP BY period HAVING period IS NOT NULL ORDER BY period",
        (cid, *bound),
    )
    return step, [Period(*row) for row in rows]


def counts(connection: sqlite3.Connection, cid: int, mid: int | None, condition: Condition) -> tuple[int, int, int]:
    """Return how many documents, passages and vectors of the model there are."""
    within, values = condition
    (documents,) = connection.execute(
        f"SELECT count(*) FROM documents WHERE cid = ?{within}", (cid, *values)
    ).fetchone()
    passages, embedded = connection.execute(
        "SELECT count(*), count(v.vid) FROM passages LEFT JOIN vectors v ON v.mid = ? AND v.pid = passages.pid "
        f"WHERE cid = ?{within}",
        (mid, cid, *values),
    ).fetchone()
    return documents, passages, embedded


def texts(connection: sqlite3.Connection, cid: int, limit: int, within: Condition = ("", ())) -> list[tuple[str, str]]:
    """Return (id, text) of the first documents that have text."""
    condition, bound = within
    sql = f"SELECT id, text FROM documents WHERE +cid = ? AND text <> ''{condition} ORDER BY did LIMIT ?"
    return connection.execute(sql, (cid, *bound, limit)).fetchall()
