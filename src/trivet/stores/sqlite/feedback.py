"""Which documents were judged good or bad answers, and to which questions?

Part of the truth, beside the documents: an export carries it and ``drop`` deletes it. A document that is deleted keeps
what was said of it, because its id may come back (a file that is moved away, an import that is done again); who learns
from feedback passes over the ids that are gone. Every function here works inside a transaction the caller holds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from trivet.errors import StoreError
from trivet.types import Feedback


def record(connection: sqlite3.Connection, cid: int, given: Feedback) -> None:
    """What is said now replaces what was said before, even where the clock was set back in between."""
    forget(connection, cid, given.query, given.id)
    restore(connection, cid, [given])


def restore(connection: sqlite3.Connection, cid: int, given: Sequence[Feedback]) -> int:
    """What was said elsewhere, at its own time: a verdict that is later stays. Returns how many were news."""
    return connection.executemany(
        "INSERT OR REPLACE INTO feedback (cid, query, id, good, at) SELECT :cid, :query, :id, :good, :at "
        "WHERE NOT EXISTS (SELECT 1 FROM feedback WHERE cid = :cid AND query = :query AND id = :id "
        "AND (at > :at OR (at = :at AND good = :good)))",
        [
            {"cid": cid, "query": item.query, "id": item.id, "good": int(item.good), "at": item.at.timestamp()}
            for item in given
        ],
    ).rowcount


def forget(connection: sqlite3.Connection, cid: int, query: str | None, identifier: str | None) -> int:
    """Of one question, of one document, of one for the other, or all of it."""
    named = {"cid": cid, "query": query, "id": identifier}
    conditions = " AND ".join(f"{column} = :{column}" for column, value in named.items() if value is not None)
    return connection.execute(f"DELETE FROM feedback WHERE {conditions}", named).rowcount


def forget_of(connection: sqlite3.Connection, cid: int, ids: Sequence[str]) -> None:
    """Everything that was said of these documents."""
    sql = "DELETE FROM feedback WHERE cid = ? AND id IN (SELECT value FROM json_each(?))"
    connection.execute(sql, (cid, json.dumps(list(ids))))


def judged(connection: sqlite3.Connection, cid: int, query: str | None, identifier: str | None) -> list[str]:
    """The ids that were judged: for one question, or this one id, or all."""
    sql = "SELECT DISTINCT id FROM feedback WHERE cid = ? AND query = coalesce(?, query) AND id = coalesce(?, id)"
    return [id for (id,) in connection.execute(sql, (cid, query, identifier))]


def read(connection: sqlite3.Connection, cid: int) -> list[Feedback]:
    """All of it, in the order it was said."""
    rows = connection.execute("SELECT query, id, good, at FROM feedback WHERE cid = ? ORDER BY at, seq", (cid,))
    return [_feedback(*row) for row in rows]


def _feedback(query: str, identifier: str, good: int, at: float) -> Feedback:
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, TypeError, OverflowError):  # bytes that are not the ones that were written
        moment = None
    if moment is None or not isinstance(query, str) or not isinstance(identifier, str):
        told = f"the feedback on {identifier!r} for {query!r} is damaged"
        raise StoreError(f"store: {told}; run `trivet doctor`, then restore a backup or an export")
    return Feedback(query, identifier, bool(good), moment)
