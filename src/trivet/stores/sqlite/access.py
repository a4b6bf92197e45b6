"""When was a document recalled, and how often?

The time stands with the document (filters and the composite reranker read it), the count in a table of its own. No
projection reads either, so neither is news to one. Every function here works inside a transaction the caller holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence


def touch(connection: sqlite3.Connection, cid: int, ids: Sequence[str], at: float) -> int:
    """Count one access of each; an id that is not here is passed over. Returns how many were."""
    # A clock that was set back, or a slower process, must not make the last access an earlier one.
    known = connection.executemany(
        "UPDATE documents SET accessed = max(coalesce(accessed, :at), :at) WHERE cid = :cid AND id = :id",
        [{"at": at, "cid": cid, "id": id} for id in ids],
    ).rowcount
    connection.executemany(
        "INSERT INTO access SELECT did, cid, 1 FROM documents WHERE cid = ? AND id = ? "
        "ON CONFLICT (did) DO UPDATE SET count = count + 1",
        [(cid, id) for id in ids],
    )
    return known


def at_least(connection: sqlite3.Connection, counts: Sequence[tuple[int, int, int]]) -> None:
    """(did, cid, count) that came with documents: a count never goes down."""
    connection.executemany(
        "INSERT INTO access VALUES (?, ?, ?) ON CONFLICT (did) DO UPDATE SET count = max(count, excluded.count)", counts
    )


def forget(connection: sqlite3.Connection, dids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM access WHERE did = ?", [(did,) for did in dids])
