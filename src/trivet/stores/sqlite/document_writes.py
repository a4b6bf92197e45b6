"""Documents written to their rows, and deleted from them.

Every function works inside a transaction that the caller holds. Documents are prepared (validated, cut into passages,
hashed) before the transaction starts, so that other writers wait only for SQLite.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from trivet.filters import Filter, flatten
from trivet.stores.contract import Prepared, Written
from trivet.stores.scoped import check_within
from trivet.stores.sqlite.half_precision import ROUNDING, floats, rounded
from trivet.stores.sqlite.rows import COLUMNS, chunks, document_of, marks, time_of, visible
from trivet.text.concepts import triples_of
from trivet.types import SUPERSEDES, Document, Link

ROUNDED = 1e-6  # difference of two components of the same unit vector, after it was normalised again
_UPDATED = 9  # index of the column ``updated`` in ``documents``
_INSERT = f"INSERT INTO documents VALUES ({marks(range(14))})"


def take(connection: sqlite3.Connection, counter: str, amount: int) -> int:
    """Reserve ``amount`` row numbers; return the first of them."""
    (value,) = connection.execute(
        "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value", (amount, counter)
    ).fetchone()
    return int(value) - amount + 1


def write(
    connection: sqlite3.Connection,
    cid: int,
    mid: int | None,
    batch: Sequence[Prepared],
    now: float,
    within: Filter | None = None,
) -> Written:
    """Insert or replace documents by id; ``within``: replace, and link to, only what the filter allows."""
    known = _known(connection, cid, [item.document.id for item in batch])
    if within is not None:
        check_within(batch, known, partial(visible, connection, cid), within)
    new = [item for item in batch if item.document.id not in known]
    changed = [(item, known[item.document.id]) for item in batch if item.document.id in known]
    if within is not None:  # the id may have been another caller's: the feedback on it is not for this one
        delete_feedback(connection, cid, [item.document.id for item in new])
    pids = _insert(connection, cid, mid, new, now)
    unchanged = 0
    moved: list[tuple[int, Prepared]] = []
    embedded: dict[int, dict[tuple[int, bytes], bytes]] = {}
    for item, old in changed:
        did = int(old["did"])
        row = _row(did, cid, item, item.document.created or time_of(old["created"]), now, old["accessed"])
        moves = item.vector is not None and not _has_vector(connection, mid, did, item.vector)
        if not _update(connection, cid, item, row, old, moves, within):
            unchanged += 1
        elif old["hash"] != item.hash or moves or _has_new_triples(old["meta"], item):
            embedded[did] = _vectors_of(connection, cid, did) if item.vector is None else {}
            _remove_passages(connection, cid, [did])
            moved.append((did, item))
    pids += _add_passages(connection, cid, mid, moved)
    _keep_vectors(connection, embedded)
    add_links(connection, cid, [link for item in batch for link in item.links or ()])
    connection.execute("UPDATE collections SET documents = documents + ? WHERE cid = ?", (len(new), cid))
    return Written(len(new), len(changed) - unchanged, unchanged, tuple(pids))


def _insert(
    connection: sqlite3.Connection, cid: int, mid: int | None, new: Sequence[Prepared], now: float
) -> list[int]:
    """Insert documents whose ids are not taken; return the numbers of their passages."""
    first = take(connection, "document", len(new)) if new else 0
    rows = [(first + index, item) for index, item in enumerate(new)]
    connection.executemany(_INSERT, [_row(did, cid, item, item.document.created, now) for did, item in rows])
    pids = _add_passages(connection, cid, mid, rows)
    _add_fields(connection, cid, rows)
    raise_accesses(connection, [(did, cid, item.document.accesses) for did, item in rows if item.document.accesses])
    _add_expiries(connection, cid, [(did, item.document.expires) for did, item in rows])
    return pids


def _update(
    connection: sqlite3.Connection,
    cid: int,
    item: Prepared,
    row: tuple[Any, ...],
    old: sqlite3.Row,
    moves: bool,
    within: Filter | None,
) -> bool:
    """Replace the row of a document, its links, expiry and fields; False where nothing differs.

    ``moves``: its vector differs.
    """
    did = int(old["did"])
    if item.document.accesses:
        raise_accesses(connection, [(did, cid, item.document.accesses)])
    outgoing = _outgoing(connection, cid, item.document.id, within) if item.links is not None else set()
    relinked = item.links is not None and outgoing != set(item.links)
    expires = item.document.expires
    expiry_differs = _expiry_of(connection, did) != (expires.timestamp() if expires else None)
    if _same(row, old) and not moves and not relinked and not expiry_differs:
        return False
    if expiry_differs:
        _set_expiry(connection, cid, did, expires)
    if relinked:
        connection.executemany(
            "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = ?",
            [(cid, link.source, link.target, link.type) for link in outgoing],
        )
    connection.execute("DELETE FROM documents WHERE did = ?", (did,))
    connection.execute(_INSERT, row)
    if old["meta"] != item.meta:
        _remove_fields(connection, cid, did, json.loads(old["meta"]))
        _add_fields(connection, cid, [(did, item)])
    return True


def _has_new_triples(old: str, item: Prepared) -> bool:
    """Tell whether the triples differ: an index reads them with the passages, and is told of new passages only."""
    if '"triples"' not in old and '"triples"' not in item.meta:
        return False
    return triples_of(json.loads(old)) != triples_of(item.document.meta)


def _known(connection: sqlite3.Connection, cid: int, ids: Sequence[str]) -> dict[str, sqlite3.Row]:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    found: dict[str, sqlite3.Row] = {}
    for chunk in chunks(ids):
        for row in cursor.execute(f"SELECT * FROM documents WHERE cid = ? AND id IN ({marks(chunk)})", (cid, *chunk)):
            found[row["id"]] = row
    return found


def _row(
    did: int, cid: int, item: Prepared, created: datetime | None, now: float, accessed: float | None = None
) -> tuple[Any, ...]:
    document = item.document
    return (
        did,
        cid,
        document.id,
        document.title,
        document.text,
        document.kind,
        item.meta,
        document.importance,
        created.timestamp() if created else now,
        document.updated.timestamp() if document.updated else now,
        document.accessed.timestamp() if document.accessed else accessed,  # a document that is written again keeps it
        document.valid_from.timestamp() if document.valid_from else None,
        document.valid_to.timestamp() if document.valid_to else None,
        item.hash,
    )


def _same(row: tuple[Any, ...], old: sqlite3.Row) -> bool:
    """Tell whether nothing but the time of writing differs."""
    known = tuple(old)
    return row[:_UPDATED] == known[:_UPDATED] and row[_UPDATED + 1 :] == known[_UPDATED + 1 :]


def _add_passages(
    connection: sqlite3.Connection, cid: int, mid: int | None, rows: Sequence[tuple[int, Prepared]]
) -> list[int]:
    count = sum(len(item.passages) for _, item in rows)
    if not count:
        return []
    pid = take(connection, "passage", count)
    passages, vectors = [], []
    for did, item in rows:
        for ordinal, start, stop, digest in item.passages:
            passages.append((pid, cid, did, ordinal, start, stop, digest))
            if item.vector is not None:
                vectors.append((pid, item.vector))
            pid += 1
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", passages)
    connection.execute("UPDATE collections SET passages = passages + ? WHERE cid = ?", (count, cid))
    if vectors and mid is not None:
        _add_first_vectors(connection, mid, vectors)
    return [row[0] for row in passages]


def _has_vector(connection: sqlite3.Connection, mid: int | None, did: int, vector: bytes) -> bool:
    """Tell whether the document has this vector already, up to rounding and to that of another normalisation."""
    sql = "SELECT v.data FROM passages p LEFT JOIN vectors v ON v.mid = ? AND v.pid = p.pid WHERE p.did = ? LIMIT 2"
    known = connection.execute(sql, (mid, did)).fetchall()
    if len(known) != 1 or known[0][0] is None or len(known[0][0]) not in (len(vector), len(vector) // 2):
        return False
    import numpy as np

    now = np.frombuffer(vector, dtype="<f4")
    was = np.frombuffer(floats(known[0][0], len(now)), dtype="<f4")
    return bool((np.abs(was - now) <= ROUNDED + ROUNDING * np.abs(was)).all())


def _vectors_of(connection: sqlite3.Connection, cid: int, did: int) -> dict[tuple[int, bytes], bytes]:
    """Map (model, hash of the text) to the vector, for the passages of a document."""
    models = connection.execute("SELECT mid, dim FROM models WHERE cid = ?", (cid,)).fetchall()
    sql = "SELECT p.hash, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid WHERE p.did = ?"
    return {
        (mid, digest): floats(data, dim) for mid, dim in models for digest, data in connection.execute(sql, (mid, did))
    }


def _keep_vectors(connection: sqlite3.Connection, embedded: Mapping[int, Mapping[tuple[int, bytes], bytes]]) -> None:
    """Give the passages of a rewritten document the vectors that the same texts had before."""
    for did, vectors in embedded.items():
        found = connection.execute("SELECT pid, hash FROM passages WHERE did = ?", (did,)).fetchall() if vectors else []
        for mid in {mid for mid, _ in vectors}:
            kept = [(pid, vectors[mid, digest]) for pid, digest in found if (mid, digest) in vectors]
            if kept:
                add_vectors(connection, mid, kept)


def _add_first_vectors(connection: sqlite3.Connection, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Add vectors of passages of this transaction: none has one yet, and all exist."""
    if connection.execute("SELECT 1 FROM models WHERE mid = ?", (mid,)).fetchone() is None:
        return
    first = take(connection, "vector", len(vectors))
    numbered = [(first + index, pid, rounded(data)) for index, (pid, data) in enumerate(vectors)]
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?, ?, ?)", [(vid, mid, pid, data) for vid, pid, data in numbered]
    )
    connection.executemany("INSERT INTO seals VALUES (?, ?)", [(vid, zlib.crc32(data)) for vid, _, data in numbered])
    connection.execute("UPDATE models SET vectors = vectors + ? WHERE mid = ?", (len(vectors), mid))


def add_vectors(connection: sqlite3.Connection, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Add (pid, float32 bytes); skip a passage that has one already, or that was deleted meanwhile, also its model."""
    first = take(connection, "vector", len(vectors))
    vectors = [(pid, rounded(data)) for pid, data in vectors]
    stored = connection.executemany(
        "INSERT OR IGNORE INTO vectors "
        "SELECT ?, m.mid, p.pid, ? FROM passages p, models m WHERE p.pid = ? AND m.mid = ?",
        [(first + index, data, pid, mid) for index, (pid, data) in enumerate(vectors)],
    ).rowcount
    connection.executemany(
        "INSERT INTO seals SELECT vid, ? FROM vectors WHERE vid = ?",  # one that was skipped has none
        [(zlib.crc32(data), first + index) for index, (_, data) in enumerate(vectors)],
    )
    connection.execute("UPDATE models SET vectors = vectors + ? WHERE mid = ?", (stored, mid))


def _add_fields(connection: sqlite3.Connection, cid: int, rows: Iterable[tuple[int, Prepared]]) -> None:
    given = [(cid, key, value, did) for did, item in rows for key, value in flatten(item.document.meta)]
    # roughly in the order of the table, so that neighbours are written together; as text: a value may be a number
    given.sort(key=lambda row: (row[1], str(row[2])))
    connection.executemany("INSERT OR IGNORE INTO fields VALUES (?, ?, ?, ?)", given)


def _remove_fields(connection: sqlite3.Connection, cid: int, did: int, meta: Mapping[str, Any]) -> None:
    connection.executemany(
        "DELETE FROM fields WHERE cid = ? AND key = ? AND value = ? AND did = ?",
        [(cid, key, value, did) for key, value in flatten(meta)],
    )


def _remove_passages(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> None:
    gone: list[int] = []
    for chunk in chunks(dids):
        gone += [pid for (pid,) in connection.execute(f"SELECT pid FROM passages WHERE did IN ({marks(chunk)})", chunk)]
    if not gone:
        return
    first = take(connection, "removed", len(gone))
    connection.executemany(
        "INSERT INTO removed VALUES (?, ?, ?)", [(first + index, cid, pid) for index, pid in enumerate(gone)]
    )
    mids = [mid for (mid,) in connection.execute("SELECT mid FROM models WHERE cid = ?", (cid,))]
    for mid in mids:
        sql = "DELETE FROM vectors WHERE mid = ? AND pid = ?"
        dropped = connection.executemany(sql, [(mid, pid) for pid in gone]).rowcount
        connection.execute("UPDATE models SET vectors = vectors - ? WHERE mid = ?", (dropped, mid))
    connection.executemany("DELETE FROM passages WHERE pid = ?", [(pid,) for pid in gone])
    connection.execute("UPDATE collections SET passages = passages - ? WHERE cid = ?", (len(gone), cid))


def remove(connection: sqlite3.Connection, cid: int, dids: Sequence[int], feedback: bool = False) -> None:
    """Delete documents with their passages, vectors, fields and links; ``feedback``: and the feedback on them."""
    for table in ("access", "expiries"):
        connection.executemany(f"DELETE FROM {table} WHERE did = ?", [(did,) for did in dids])
    _remove_passages(connection, cid, dids)
    count = 0
    for chunk in chunks(dids):
        rows = connection.execute(
            f"SELECT did, id, meta FROM documents WHERE did IN ({marks(chunk)})", chunk
        ).fetchall()
        for did, id, meta in rows:
            _remove_fields(connection, cid, did, json.loads(meta))
            connection.execute("DELETE FROM links WHERE cid = ? AND source = ?", (cid, id))
            connection.execute("DELETE FROM links WHERE cid = ? AND target = ?", (cid, id))
            if feedback:
                connection.execute("DELETE FROM feedback WHERE cid = ? AND id = ?", (cid, id))
        connection.execute(f"DELETE FROM documents WHERE did IN ({marks(chunk)})", chunk)
        count += len(rows)
    connection.execute("UPDATE collections SET documents = documents - ? WHERE cid = ?", (count, cid))


def _outgoing(connection: sqlite3.Connection, cid: int, id: str, within: Filter | None) -> set[Link]:
    """Return the links from a document; within a filter, those to documents that it allows."""
    sql = "SELECT source, target, type, weight FROM links WHERE cid = ? AND source = ?"
    found = {Link(*row) for row in connection.execute(sql, (cid, id))}
    if within is None:
        return found
    seen = visible(connection, cid, [link.target for link in found], within)
    return {link for link in found if link.target in seen}


def add_links(connection: sqlite3.Connection, cid: int, links: Sequence[Link]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?, ?)",
        [(cid, link.source, link.target, link.type, link.weight) for link in links],
    )


def find_duplicate(
    connection: sqlite3.Connection, cid: int, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int]
) -> Document | None:
    """Find a document that is ``same``, by the hash of the text or among the ``likely``; not a superseded one."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM documents WHERE did IN (SELECT did FROM passages WHERE cid = :cid AND hash = :hash AND "
        "ordinal = 0 UNION SELECT value FROM json_each(:likely)) AND cid = :cid AND kind = :kind AND meta = :meta "
        "AND NOT EXISTS (SELECT 1 FROM links l JOIN documents n ON n.cid = l.cid AND n.id = l.source "
        "WHERE l.cid = :cid AND l.target = documents.id AND l.source <> l.target AND +l.type = :type) ORDER BY did",
        {
            "cid": cid,
            "hash": item.passages[0][3],
            "likely": json.dumps(list(likely)),
            "kind": item.document.kind,
            "meta": item.meta,
            "type": SUPERSEDES,
        },
    )
    return next((document for document in map(document_of, rows) if same(document)), None)


def set_importance(connection: sqlite3.Connection, cid: int, id: str, value: float) -> None:
    connection.execute("UPDATE documents SET importance = ? WHERE cid = ? AND id = ?", (value, cid, id))


def delete_feedback(connection: sqlite3.Connection, cid: int, ids: Sequence[str]) -> None:
    """Delete the feedback on these documents."""
    sql = "DELETE FROM feedback WHERE cid = ? AND id IN (SELECT value FROM json_each(?))"
    connection.execute(sql, (cid, json.dumps(list(ids))))


# --- accesses: the time is in ``documents``, the count in a table of its own; no index reads either -----------------


def count_access(connection: sqlite3.Connection, cid: int, ids: Sequence[str], at: float) -> int:
    """Count one access of each document; return how many of the ids exist."""
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


def raise_accesses(connection: sqlite3.Connection, counts: Sequence[tuple[int, int, int]]) -> None:
    """Take over (did, cid, count) that came with documents: a count never goes down."""
    connection.executemany(
        "INSERT INTO access VALUES (?, ?, ?) ON CONFLICT (did) DO UPDATE SET count = max(count, excluded.count)", counts
    )


# --- expiries -------------------------------------------------------------------------------------------------------


def prolong(connection: sqlite3.Connection, cid: int, id: str, at: datetime | None) -> None:
    """Set the expiry of a document that is added again to the later of both; None is never."""
    row = connection.execute(
        "SELECT d.did, e.at FROM documents d JOIN expiries e ON e.did = d.did WHERE d.cid = ? AND d.id = ?", (cid, id)
    ).fetchone()
    if row is not None and (at is None or at.timestamp() > row[1]):
        _set_expiry(connection, cid, row[0], at)


def _expiry_of(connection: sqlite3.Connection, did: int) -> float | None:
    row = connection.execute("SELECT at FROM expiries WHERE did = ?", (did,)).fetchone()
    return None if row is None else float(row[0])


def _set_expiry(connection: sqlite3.Connection, cid: int, did: int, at: datetime | None) -> None:
    if at is None:
        connection.execute("DELETE FROM expiries WHERE did = ?", (did,))
    else:
        _add_expiries(connection, cid, [(did, at)])


def _add_expiries(connection: sqlite3.Connection, cid: int, rows: Iterable[tuple[int, datetime | None]]) -> None:
    given = [(did, cid, at.timestamp()) for did, at in rows if at is not None]
    if given:
        connection.executemany("INSERT OR REPLACE INTO expiries VALUES (?, ?, ?)", given)
