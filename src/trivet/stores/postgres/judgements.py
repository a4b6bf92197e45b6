"""Which documents were judged good or bad answers, and who changed the settings?

Both are part of the truth and neither is news to a search. Every function here works inside a transaction that holds
the lock of its collection's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from trivet.stores.contract import Change
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.links import All, mark
from trivet.types import Feedback

KEPT = 1_000  # changes of a collection's settings; what is older goes


def restore(connection: Connection, cid: int, given: Sequence[Feedback]) -> int:
    """What was said elsewhere, at its own time: a verdict that is later stays. Returns how many were news."""
    news = 0
    for item in given:
        row = connection.execute(
            "UPDATE heads SET last_feedback = last_feedback + 1 WHERE cid = %s RETURNING last_feedback", (cid,)
        ).fetchone()
        assert row is not None, "the caller holds the lock on this row"
        news += connection.execute(
            "INSERT INTO feedback AS f (cid, mark, seq, query, id, good, at) VALUES (%s, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (cid, mark) DO UPDATE SET seq = excluded.seq, good = excluded.good, at = excluded.at "
            "WHERE f.at < excluded.at OR (f.at = excluded.at AND f.good <> excluded.good)",
            (cid, mark(item.query, item.id), row[0], item.query, item.id, item.good, item.at.timestamp()),
        ).rowcount
    return news


def forget(connection: Connection, cid: int, query: str | None, identifier: str | None) -> int:
    """Of one question, of one document, of one for the other, or all of it."""
    named: dict[str, Any] = {"cid": cid, "query": query, "id": identifier}
    given = {column: value for column, value in named.items() if value is not None}
    conditions = " AND ".join(f"{column} = %({column})s" for column in given)
    return connection.execute(f"DELETE FROM feedback WHERE {conditions}", given).rowcount


def forget_of(connection: Connection, cid: int, ids: Sequence[str]) -> None:
    """Everything that was said of these documents."""
    connection.execute("DELETE FROM feedback WHERE cid = %s AND id = ANY(%s)", (cid, list(ids)))


def read(every: All, cid: int) -> list[Feedback]:
    """All of it, in the order it was said."""
    rows = every("SELECT query, id, good, at FROM feedback WHERE cid = %s ORDER BY at, seq", (cid,))
    return [Feedback(query, identifier, good, datetime.fromtimestamp(at, UTC)) for query, identifier, good, at in rows]


def record(connection: Connection, cid: int, by: str, settings: str, previous: str, at: float) -> None:
    """Write a change of the settings down."""
    sql = "SELECT coalesce(max(number), 0) + 1 FROM settings_history WHERE cid = %s"
    row = connection.execute(sql, (cid,)).fetchone()
    number = int(row[0]) if row else 1
    connection.execute(
        "INSERT INTO settings_history (cid, number, at, who, settings, previous) VALUES (%s, %s, %s, %s, %s, %s)",
        (cid, number, at, by, settings, previous),
    )
    connection.execute("DELETE FROM settings_history WHERE cid = %s AND number <= %s", (cid, number - KEPT))


def changes(every: All, cid: int, limit: int, number: int | None = None) -> list[Change]:
    """The latest first; or the one with that number."""
    one = "" if number is None else " AND number = %s"
    rows = every(
        f"SELECT number, at, who, settings, previous FROM settings_history WHERE cid = %s{one} "
        "ORDER BY number DESC LIMIT %s",
        (cid, *(() if number is None else (number,)), limit),
    )
    return [Change(row[0], datetime.fromtimestamp(row[1], UTC), *row[2:]) for row in rows]
