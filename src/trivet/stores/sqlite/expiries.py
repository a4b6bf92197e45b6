"""The moments at which documents expire.

An expired document is not seen by any reader from its moment on; ``sweep`` forgets it some time later. Every function
here works inside a transaction the caller holds, or reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

PASSED = "SELECT max(at) FROM expiries WHERE cid = ? AND at <= ?"
GONE = "SELECT did FROM expiries WHERE cid = ? AND at <= ?"


def of(connection: sqlite3.Connection, did: int) -> float | None:
    """Return when the document expires; None: never."""
    row = connection.execute("SELECT at FROM expiries WHERE did = ?", (did,)).fetchone()
    return None if row is None else float(row[0])


def add(connection: sqlite3.Connection, cid: int, rows: Iterable[tuple[int, datetime | None]]) -> None:
    """Set the moments of documents that have none yet; None sets nothing."""
    given = [(did, cid, at.timestamp()) for did, at in rows if at is not None]
    if given:
        connection.executemany("INSERT OR REPLACE INTO expiries VALUES (?, ?, ?)", given)


def replace(connection: sqlite3.Connection, cid: int, did: int, at: datetime | None) -> None:
    """Set when a document expires; None: never."""
    if at is None:
        remove(connection, [did])
    else:
        add(connection, cid, [(did, at)])


def prolong(connection: sqlite3.Connection, cid: int, identifier: str, at: datetime | None) -> None:
    """Let a document that is told again live as long as the longer of both says."""
    row = connection.execute(
        "SELECT d.did, e.at FROM documents d JOIN expiries e ON e.did = d.did WHERE d.cid = ? AND d.id = ?",
        (cid, identifier),
    ).fetchone()
    if row is not None and (at is None or at.timestamp() > row[1]):
        replace(connection, cid, row[0], at)


def remove(connection: sqlite3.Connection, dids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM expiries WHERE did = ?", [(did,) for did in dids])


def expired(connection: sqlite3.Connection, cid: int, now: float) -> list[int]:
    """Return the row numbers of the documents whose time has passed."""
    return [did for (did,) in connection.execute(GONE, (cid, now))]
