"""The feedback of one collection: which documents were judged good or bad answers to which queries.

It is kept with the documents: an export has it and dropping the collection deletes it. A deleted document keeps its
feedback, because its id may come back (a file that is moved away, an import that is repeated).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from trivet.errors import NotFoundError, StoreError
from trivet.filters import Filter
from trivet.stores.sqlite.filters import Visibility
from trivet.stores.sqlite.rows import CollectionRows, visible
from trivet.types import Feedback


class SqliteFeedback:
    """The judgements of hits in one collection. No index holds them, so they keep the version."""

    def __init__(self, rows: CollectionRows, visibility: Visibility, sweep_expired: Callable[[], None]) -> None:
        self._rows, self._cid, self._visibility, self._sweep_expired = rows, rows.cid, visibility, sweep_expired

    def add(self, given: Feedback, within: Filter | None = None) -> None:
        self._sweep_expired()
        with self._rows.noting() as connection:
            if not visible(connection, self._cid, [given.id], within):
                message = f"document {given.id!r} not found in collection {self._rows.name!r}"
                raise NotFoundError(f"feedback: {message}; give the id that a search shows")
            # it replaces an earlier judgement even where the clock was set back in between
            _delete(connection, self._cid, given.query, given.id)
            _restore(connection, self._cid, [given])

    def restore(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._rows.noting() as connection:
            if within is not None:
                seen = visible(connection, self._cid, [item.id for item in given], within)
                given = [item for item in given if item.id in seen]
            return _restore(connection, self._cid, given)

    def remove(self, query: str | None, id: str | None, within: Filter | None = None) -> int:
        with self._rows.noting() as connection:
            if within is None:
                return _delete(connection, self._cid, query, id)
            sql = (
                "SELECT DISTINCT id FROM feedback WHERE cid = ? AND query = coalesce(?, query) AND id = coalesce(?, id)"
            )
            ids = [found for (found,) in connection.execute(sql, (self._cid, query, id))]
            seen = visible(connection, self._cid, ids, within)
            return sum(_delete(connection, self._cid, query, each) for each in sorted(seen))

    def read(self, where: Filter | None = None) -> list[Feedback]:
        self._rows.state()  # refuses a collection that was dropped
        with self._rows.snapshot():
            sql = "SELECT query, id, good, at FROM feedback WHERE cid = ? ORDER BY at, seq"
            found = [_feedback(*row) for row in self._rows.all(sql, (self._cid,))]
            hidden = self._visibility.hidden([item.id for item in found], where)
        return [item for item in found if item.id not in hidden]


def _restore(connection: sqlite3.Connection, cid: int, given: Sequence[Feedback]) -> int:
    """Add judgements with their times, unless a later one is there; return how many were new."""
    return connection.executemany(
        "INSERT OR REPLACE INTO feedback (cid, query, id, good, at) SELECT :cid, :query, :id, :good, :at "
        "WHERE NOT EXISTS (SELECT 1 FROM feedback WHERE cid = :cid AND query = :query AND id = :id "
        "AND (at > :at OR (at = :at AND good = :good)))",
        [
            {"cid": cid, "query": item.query, "id": item.id, "good": int(item.good), "at": item.at.timestamp()}
            for item in given
        ],
    ).rowcount


def _delete(connection: sqlite3.Connection, cid: int, query: str | None, id: str | None) -> int:
    """Delete the judgements on a query, a document, or both; all of them where neither is given."""
    given = {"cid": cid, "query": query, "id": id}
    conditions = " AND ".join(f"{column} = :{column}" for column, value in given.items() if value is not None)
    return connection.execute(f"DELETE FROM feedback WHERE {conditions}", given).rowcount


def _feedback(query: str, id: str, good: int, at: float) -> Feedback:
    try:
        time = datetime.fromtimestamp(at, UTC)
    except (ValueError, TypeError, OverflowError):  # bytes that are not the ones that were written
        time = None
    if time is None or not isinstance(query, str) or not isinstance(id, str):
        message = f"the feedback on {id!r} for {query!r} is damaged"
        raise StoreError(f"store: {message}; run `trivet doctor`, then restore a backup or an export")
    return Feedback(query, id, bool(good), time)
