"""Judgements of hits of a collection on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from trivet.errors import NotFoundError
from trivet.filters import Filter
from trivet.stores.postgres import document_rows
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.link_rows import digest
from trivet.stores.postgres.rows import Rows, in_one_snapshot
from trivet.stores.postgres.transaction import Transaction
from trivet.stores.postgres.visibility import Visibility
from trivet.types import Feedback


class PostgresFeedback:
    """The feedback of one collection."""

    def __init__(self, rows: Rows, expiry: Expiry, visibility: Visibility) -> None:
        self._rows, self._expiry, self._visibility = rows, expiry, visibility

    def add(self, given: Feedback, within: Filter | None = None) -> None:
        self._expiry.sweep_before_write()
        with self._rows.locked() as transaction:
            if not document_rows.visible(transaction, [given.id], within):
                raise NotFoundError(
                    f"feedback: document {given.id!r} not found in collection {self._rows.name!r}; "
                    "give the id that a search shows"
                )
            _remove(transaction, given.query, given.id)  # it replaces an earlier one, also where a clock was set back
            _restore(transaction, [given])

    def restore(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._rows.locked() as transaction:
            if within is not None:
                seen = document_rows.visible(transaction, [item.id for item in given], within)
                given = [item for item in given if item.id in seen]
            return _restore(transaction, given)

    def remove(self, query: str | None, id: str | None, within: Filter | None = None) -> int:
        with self._rows.locked() as transaction:
            if within is None:
                return _remove(transaction, query, id)
            found = _read(transaction.all, transaction.root)
            ids = {item.id for item in found if query in (None, item.query) and id in (None, item.id)}
            seen = document_rows.visible(transaction, sorted(ids), within)
            return sum(_remove(transaction, query, each) for each in sorted(seen))

    @in_one_snapshot
    def read(self, where: Filter | None = None) -> list[Feedback]:
        self._rows.head("cid")  # refuses a collection that was dropped
        found = _read(self._rows.all, self._rows.root)
        hidden = self._visibility.hidden([item.id for item in found], where)
        return [item for item in found if item.id not in hidden]


def _restore(transaction: Transaction, given: Sequence[Feedback]) -> int:
    """Store judgements with their times, where there is no later one; return how many were new."""
    new = 0
    for item in given:
        number = transaction.take("feedback", 1)
        new += transaction.execute(
            "INSERT INTO feedback AS f (cid, mark, seq, query, id, good, at) VALUES (%s, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (cid, mark) DO UPDATE SET seq = excluded.seq, good = excluded.good, at = excluded.at "
            "WHERE f.at < excluded.at OR (f.at = excluded.at AND f.good <> excluded.good)",
            (
                transaction.root,
                digest(item.query, item.id),
                number,
                item.query,
                item.id,
                item.good,
                item.at.timestamp(),
            ),
        ).rowcount
    return new


def _remove(transaction: Transaction, query: str | None, id: str | None) -> int:
    """Delete the judgements on a query, on a document, on both, or all; return how many there were."""
    named = {"cid": transaction.root, "query": query, "id": id}
    given = {column: value for column, value in named.items() if value is not None}
    conditions = " AND ".join(f"{column} = %s" for column in given)
    return transaction.execute(f"DELETE FROM feedback WHERE {conditions}", list(given.values())).rowcount


def _read(select: Select, root: int) -> list[Feedback]:
    rows = select("SELECT query, id, good, at FROM feedback WHERE cid = %s ORDER BY at, seq", (root,))
    return [Feedback(query, id, good, datetime.fromtimestamp(at, UTC)) for query, id, good, at in rows]
