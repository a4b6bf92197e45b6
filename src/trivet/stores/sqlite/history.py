"""Who changed the settings, when, and to what?

Beside the settings themselves, for this store only: a copy of a collection starts a history of its own. Every function
here works inside a transaction the caller holds.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

from trivet.errors import StoreError
from trivet.stores.contract import Change

KEPT = 1_000  # changes of a collection; what is older goes


def record(connection: sqlite3.Connection, cid: int, by: str, settings: str, previous: str, at: float) -> None:
    sql = "SELECT coalesce(max(number), 0) + 1 FROM settings_history WHERE cid = ?"
    (number,) = connection.execute(sql, (cid,)).fetchone()
    connection.execute(
        "INSERT INTO settings_history VALUES (?, ?, ?, ?, ?, ?)", (cid, number, at, by, settings, previous)
    )
    connection.execute("DELETE FROM settings_history WHERE cid = ? AND number <= ?", (cid, number - KEPT))


def read(connection: sqlite3.Connection, cid: int, limit: int) -> list[Change]:
    """The latest first."""
    sql = "SELECT number, at, who, settings, previous FROM settings_history WHERE cid = ? ORDER BY number DESC LIMIT ?"
    return [_row(*found) for found in connection.execute(sql, (cid, limit))]


def find(connection: sqlite3.Connection, cid: int, number: int) -> Change | None:
    sql = "SELECT number, at, who, settings, previous FROM settings_history WHERE cid = ? AND number = ?"
    found = connection.execute(sql, (cid, number)).fetchone()
    return _row(*found) if found else None


def _row(number: int, at: float, by: str, settings: str, previous: str) -> Change:
    try:
        return Change(number, datetime.fromtimestamp(at, UTC), by, settings, previous)
    except (ValueError, TypeError, OverflowError) as error:  # bytes that are not the ones that were written
        told = f"the history of the settings is damaged ({error})"
        raise StoreError(f"store: {told}; run `trivet doctor`, then restore a backup or an export") from error
