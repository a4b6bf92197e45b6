"""How do documents get into the truth and out of it?

Every function here works inside a transaction the caller holds. Documents are prepared (validated, cut, hashed)
before the transaction starts, so that the time a writer keeps others waiting is the time SQLite needs.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trivet.concepts import triples_of
from trivet.errors import StoreError
from trivet.filters import Filter, flatten, matches
from trivet.stores.contract import Prepared, Written
from trivet.stores.scoped import check_within
from trivet.stores.sqlite import access, expiries, feedback
from trivet.twins import quick
from trivet.types import SUPERSEDES, Document, Link

_document, _read = quick(Document), json.JSONDecoder().decode
ROUNDED = 1e-6  # of a vector of length 1
_UPDATED = 9  # the column of documents that says when it was written
_IN_CHUNK = 500  # ids per look-up, well under SQLite's parameter limit
#: Document, in order
COLUMNS = (
    "did, id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, "
    "coalesce((SELECT count FROM access WHERE access.did = documents.did), 0), "
    "(SELECT at FROM expiries WHERE expiries.did = documents.did)"
)


def take(connection: sqlite3.Connection, counter: str, amount: int) -> int:
    """Reserve ``amount`` row numbers; the first of them is returned."""
    (value,) = connection.execute(
        "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value", (amount, counter)
    ).fetchone()
    return int(value) - amount + 1


def touch(connection: sqlite3.Connection, cid: int) -> None:
    """Tell every projection of the collection that there is something to catch up on."""
    connection.execute("UPDATE collections SET version = version + 1 WHERE cid = ?", (cid,))


def write(
    connection: sqlite3.Connection,
    cid: int,
    mid: int | None,
    batch: Sequence[Prepared],
    now: float,
    within: Filter | None = None,
) -> Written:
    """Insert or replace by id; ``within``: replace, and link to, only what the filter allows."""
    known = _known(connection, cid, [item.document.id for item in batch])
    if within is not None:
        check_within(batch, known, partial(visible, connection, cid), within)
    fresh = [item for item in batch if item.document.id not in known]
    changed = [(item, known[item.document.id]) for item in batch if item.document.id in known]
    unchanged = 0

    if within is not None:  # an id that was another's before: what was said of it is not for this caller
        feedback.forget_of(connection, cid, [item.document.id for item in fresh])
    first = take(connection, "document", len(fresh)) if fresh else 0
    rows = [(first + index, item) for index, item in enumerate(fresh)]
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(did, cid, item, item.document.created, now) for did, item in rows],
    )
    pids = _add_passages(connection, cid, mid, rows)
    _add_fields(connection, cid, rows)
    access.at_least(connection, [(did, cid, item.document.accesses) for did, item in rows if item.document.accesses])
    expiries.add(connection, cid, [(did, item.document.expires) for did, item in rows])

    moved: list[tuple[int, Prepared]] = []
    embedded: dict[int, dict[tuple[int, bytes], bytes]] = {}
    for item, old in changed:
        did = int(old["did"])
        row = _row(did, cid, item, item.document.created or _time(old["created"]), now, old["accessed"])
        if item.document.accesses:
            access.at_least(connection, [(did, cid, item.document.accesses)])
        outgoing = _outgoing(connection, cid, item.document.id, within) if item.links is not None else set()
        relinked = item.links is not None and outgoing != set(item.links)
        moves = item.vector is not None and not _is_embedded(connection, mid, did, item.vector)
        expires = item.document.expires
        reset = expiries.of(connection, did) != (expires.timestamp() if expires else None)
        if _same(row, old) and not moves and not relinked and not reset:
            unchanged += 1
            continue
        if reset:
            expiries.replace(connection, cid, did, expires)
        if relinked:
            connection.executemany(
                "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = ?",
                [(cid, link.source, link.target, link.type) for link in outgoing],
            )
        connection.execute("DELETE FROM documents WHERE did = ?", (did,))
        connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if old["meta"] != item.meta:
            _remove_fields(connection, cid, did, json.loads(old["meta"]))
            _add_fields(connection, cid, [(did, item)])
        told = '"triples"' in old["meta"] or '"triples"' in item.meta
        # what a document tells of is read with its passages, and a projection hears of new passages only
        retold = told and triples_of(json.loads(old["meta"])) != triples_of(item.document.meta)
        if old["hash"] != item.hash or moves or retold:
            embedded[did] = _embedded(connection, cid, did) if item.vector is None else {}
            _remove_passages(connection, cid, [did])
            moved.append((did, item))
    pids += _add_passages(connection, cid, mid, moved)
    _give_back(connection, embedded)
    add_links(connection, cid, [link for item in batch for link in item.links or ()])
    connection.execute("UPDATE collections SET documents = documents + ? WHERE cid = ?", (len(fresh), cid))
    return Written(len(fresh), len(changed) - unchanged, unchanged, tuple(pids))


def _known(connection: sqlite3.Connection, cid: int, ids: Sequence[str]) -> dict[str, sqlite3.Row]:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    found: dict[str, sqlite3.Row] = {}
    for chunk in _chunks(ids):
        marks = ", ".join("?" * len(chunk))
        for row in cursor.execute(f"SELECT * FROM documents WHERE cid = ? AND id IN ({marks})", (cid, *chunk)):
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
        document.accessed.timestamp() if document.accessed else accessed,  # writing it again is not forgetting it
        document.valid_from.timestamp() if document.valid_from else None,
        document.valid_to.timestamp() if document.valid_to else None,
        item.hash,
    )


def _same(row: tuple[Any, ...], old: sqlite3.Row) -> bool:
    """Nothing but the moment of writing differs."""
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


def _is_embedded(connection: sqlite3.Connection, mid: int | None, did: int, vector: bytes) -> bool:
    """Has the document this very vector, up to what making it one long again rounds away?"""
    sql = "SELECT v.data FROM passages p LEFT JOIN vectors v ON v.mid = ? AND v.pid = p.pid WHERE p.did = ? LIMIT 2"
    known = connection.execute(sql, (mid, did)).fetchall()
    if len(known) != 1 or known[0][0] is None or len(known[0][0]) != len(vector):
        return False
    one, other = array("f", known[0][0]), array("f", vector)
    return known[0][0] == vector or all(abs(was - now) <= ROUNDED for was, now in zip(one, other, strict=True))


def _embedded(connection: sqlite3.Connection, cid: int, did: int) -> dict[tuple[int, bytes], bytes]:
    """(model, hash of the text) → vector, for the passages a document has."""
    mids = [mid for (mid,) in connection.execute("SELECT mid FROM models WHERE cid = ?", (cid,))]
    sql = "SELECT p.hash, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid WHERE p.did = ?"
    return {(mid, digest): data for mid in mids for digest, data in connection.execute(sql, (mid, did))}


def _give_back(connection: sqlite3.Connection, embedded: Mapping[int, Mapping[tuple[int, bytes], bytes]]) -> None:
    """A passage that says what it said before keeps its vector: an edited paragraph is not the whole document."""
    for did, vectors in embedded.items():
        found = connection.execute("SELECT pid, hash FROM passages WHERE did = ?", (did,)).fetchall() if vectors else []
        for mid in {mid for mid, _ in vectors}:
            kept = [(pid, vectors[mid, digest]) for pid, digest in found if (mid, digest) in vectors]
            if kept:
                add_vectors(connection, mid, kept)


def _add_first_vectors(connection: sqlite3.Connection, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Of passages that were written a moment ago: none of them has one, and none has gone."""
    if connection.execute("SELECT 1 FROM models WHERE mid = ?", (mid,)).fetchone() is None:
        return
    first = take(connection, "vector", len(vectors))
    numbered = [(first + index, pid, data) for index, (pid, data) in enumerate(vectors)]
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?, ?, ?)", [(vid, mid, pid, data) for vid, pid, data in numbered]
    )
    connection.executemany("INSERT INTO seals VALUES (?, ?)", [(vid, zlib.crc32(data)) for vid, _, data in numbered])
    connection.execute("UPDATE models SET vectors = vectors + ? WHERE mid = ?", (len(vectors), mid))


def add_vectors(connection: sqlite3.Connection, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """(pid, float32 bytes); a passage that has one already, or that went with its model meanwhile, is passed over."""
    first = take(connection, "vector", len(vectors))
    stored = connection.executemany(
        "INSERT OR IGNORE INTO vectors "
        "SELECT ?, m.mid, p.pid, ? FROM passages p, models m WHERE p.pid = ? AND m.mid = ?",
        [(first + index, data, pid, mid) for index, (pid, data) in enumerate(vectors)],
    ).rowcount
    connection.executemany(
        "INSERT INTO seals SELECT vid, ? FROM vectors WHERE vid = ?",  # one that was passed over has none
        [(zlib.crc32(data), first + index) for index, (_, data) in enumerate(vectors)],
    )
    connection.execute("UPDATE models SET vectors = vectors + ? WHERE mid = ?", (stored, mid))


def _add_fields(connection: sqlite3.Connection, cid: int, rows: Iterable[tuple[int, Prepared]]) -> None:
    given = [(cid, key, value, did) for did, item in rows for key, value in flatten(item.document.meta)]
    # about in the order of the table, so that neighbours are written together; as text, for a value may be a number
    given.sort(key=lambda row: (row[1], str(row[2])))
    connection.executemany("INSERT OR IGNORE INTO fields VALUES (?, ?, ?, ?)", given)


def _remove_fields(connection: sqlite3.Connection, cid: int, did: int, meta: Mapping[str, Any]) -> None:
    connection.executemany(
        "DELETE FROM fields WHERE cid = ? AND key = ? AND value = ? AND did = ?",
        [(cid, key, value, did) for key, value in flatten(meta)],
    )


def _remove_passages(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> None:
    gone: list[int] = []
    for chunk in _chunks(dids):
        marks = ", ".join("?" * len(chunk))
        gone += [pid for (pid,) in connection.execute(f"SELECT pid FROM passages WHERE did IN ({marks})", chunk)]
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


def remove(connection: sqlite3.Connection, cid: int, dids: Sequence[int], judged: bool = False) -> int:
    """Delete documents with everything that hangs on them; ``judged``: and with the feedback on them."""
    access.forget(connection, dids)
    expiries.remove(connection, dids)
    _remove_passages(connection, cid, dids)
    count = 0
    for chunk in _chunks(dids):
        marks = ", ".join("?" * len(chunk))
        rows = connection.execute(f"SELECT did, id, meta FROM documents WHERE did IN ({marks})", chunk).fetchall()
        for did, identifier, meta in rows:
            _remove_fields(connection, cid, did, json.loads(meta))
            connection.execute("DELETE FROM links WHERE cid = ? AND source = ?", (cid, identifier))
            connection.execute("DELETE FROM links WHERE cid = ? AND target = ?", (cid, identifier))
            if judged:
                feedback.forget(connection, cid, None, identifier)
        connection.execute(f"DELETE FROM documents WHERE did IN ({marks})", chunk)
        count += len(rows)
    connection.execute("UPDATE collections SET documents = documents - ? WHERE cid = ?", (count, cid))
    return count


def _outgoing(connection: sqlite3.Connection, cid: int, identifier: str, within: Filter | None) -> set[Link]:
    """The links that go out from a document; within a filter, those to what it shows."""
    sql = "SELECT source, target, type, weight FROM links WHERE cid = ? AND source = ?"
    found = {Link(*row) for row in connection.execute(sql, (cid, identifier))}
    if within is None:
        return found
    seen = visible(connection, cid, [link.target for link in found], within)
    return {link for link in found if link.target in seen}


def add_links(connection: sqlite3.Connection, cid: int, links: Sequence[Link]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?, ?)",
        [(cid, link.source, link.target, link.type, link.weight) for link in links],
    )


# --- reading ----------------------------------------------------------------------------------------------------------


def fetch(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, Document]:
    """The documents by row number; one that went meanwhile is absent."""
    found: dict[int, Document] = {}
    for chunk in _chunks(dids):
        marks = ", ".join("?" * len(chunk))
        for row in connection.execute(f"SELECT {COLUMNS} FROM documents WHERE did IN ({marks})", chunk):
            found[row[0]] = document_of(row)
    return found


def find(connection: sqlite3.Connection, cid: int, identifier: str) -> Document | None:
    row = connection.execute(f"SELECT {COLUMNS} FROM documents WHERE cid = ? AND id = ?", (cid, identifier)).fetchone()
    return document_of(row) if row else None


def visible(connection: sqlite3.Connection, cid: int, ids: Sequence[str], where: Filter | None) -> set[str]:
    """Those of the ids whose document is here and is allowed by the filter."""
    found: set[str] = set()
    for chunk in _chunks(ids):
        marks = ", ".join("?" * len(chunk))
        rows = connection.execute(f"SELECT {COLUMNS} FROM documents WHERE cid = ? AND id IN ({marks})", (cid, *chunk))
        found |= {row[1] for row in rows if where is None or matches(where, document_of(row))}
    return found


def twin(
    connection: sqlite3.Connection, cid: int, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int]
) -> Document | None:
    """A document that is the same, found by its text's hash or among the ``likely``; not one that is superseded."""
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


def set_importance(connection: sqlite3.Connection, cid: int, identifier: str, value: float) -> None:
    connection.execute("UPDATE documents SET importance = ? WHERE cid = ? AND id = ?", (value, cid, identifier))


def document_of(row: tuple[Any, ...]) -> Document:
    _, identifier, title, text, kind, meta, importance, created, updated, accessed, *bounds, accesses, expires = row
    try:
        return _document(
            identifier,
            text,
            title,
            kind,
            _read(meta),
            importance,
            datetime.fromtimestamp(created, UTC),
            datetime.fromtimestamp(updated, UTC),
            _time(accessed),
            _time(bounds[0]),
            _time(bounds[1]),
            accesses,
            _time(expires),
        )
    except (ValueError, TypeError, OverflowError) as error:  # bytes that are not the ones that were written
        told = f"the row of document {identifier!r} is damaged ({error})"
        raise StoreError(f"store: {told}; run `trivet doctor`, then restore a backup or an export") from error


def fetch_spans(connection: sqlite3.Connection, pids: Sequence[int]) -> dict[int, tuple[int, int, int, int]]:
    """pid → (did, ordinal, start, stop)."""
    found: dict[int, tuple[int, int, int, int]] = {}
    for chunk in _chunks(pids):
        marks = ", ".join("?" * len(chunk))
        sql = f"SELECT pid, did, ordinal, start, stop FROM passages WHERE pid IN ({marks})"
        for pid, did, ordinal, start, stop in connection.execute(sql, chunk):
            found[pid] = (did, ordinal, start, stop)
    return found


def _time(value: float | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)


def _chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + _IN_CHUNK] for start in range(0, len(items), _IN_CHUNK))
