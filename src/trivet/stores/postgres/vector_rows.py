"""Writing and reading vectors inside of a write transaction; the bytes come back as they were given."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from trivet.stores.postgres.transaction import Transaction


def add(transaction: Transaction, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Add (passage, float32 bytes), except for passages that have a vector or were deleted, as the model may be."""
    data = dict(vectors)
    sql = "SELECT 1 FROM models WHERE cid = %s AND mid = %s"
    if not data or not transaction.all(sql, (transaction.root, mid)):
        return
    tables = transaction.tables
    without = (
        f" AND NOT EXISTS (SELECT 1 FROM {tables.vectors} v WHERE {tables.beside('v', 'p')} "
        f"AND v.mid = {int(mid)} AND v.pid = p.pid)"
    )
    rows = transaction.by_number(f"SELECT p.pid, p.did FROM {tables.passages} p", "p.pid", data, without)
    insert(transaction, mid, [(pid, did, data[pid]) for pid, did in rows])


def insert(transaction: Transaction, mid: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Insert (passage, document, bytes) with COPY in binary form: as text, a vector is three times as long."""
    if not rows:
        return
    tables = transaction.tables
    statement = f"COPY {tables.vectors} ({tables.key}, mid, pid, did, data) FROM STDIN (FORMAT BINARY)"
    with transaction.connection.cursor().copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for pid, did, data in rows:
            cid, *part = tables.key_of(did)
            head = struct.pack("!hiq", 5 + len(part), 8, cid) + (struct.pack("!ii", 4, *part) if part else b"")
            head += struct.pack("!iqiqiq", 8, mid, 8, pid, 8, did)
            vector = _to_wire(data)
            copy.write(head + struct.pack("!i", len(vector)) + vector)
        copy.write(struct.pack("!h", -1))
    sql = f"UPDATE models SET vectors = vectors + %s WHERE cid = {tables.root} AND mid = %s"
    transaction.execute(sql, (len(rows), mid))


def _to_wire(data: bytes) -> bytes:
    """Return pgvector's wire format: dimensions, two unused bytes, big-endian floats."""
    import numpy as np

    return struct.pack("!HH", len(data) // 4, 0) + np.frombuffer(data, dtype="<f4").astype(">f4").tobytes()


def from_wire(data: bytes) -> bytes:
    """Return the stored bytes of what ``vector_send`` gives."""
    import numpy as np

    return np.frombuffer(data, dtype=">f4", offset=4).astype("<f4").tobytes()


def of_document(transaction: Transaction, did: int) -> dict[tuple[int, bytes], bytes]:
    """Map (model, hash of the passage) to the vector, for the passages of a document."""
    tables = transaction.tables
    rows = transaction.by_number(
        f"SELECT v.mid, p.hash, vector_send(v.data) FROM {tables.passages} p "
        f"JOIN {tables.vectors} v ON {tables.beside('v', 'p')} AND v.pid = p.pid",
        "p.did",
        [did],
    )
    return {(mid, bytes(digest)): from_wire(data) for mid, digest, data in rows}


def restore(transaction: Transaction, embedded: Mapping[int, Mapping[tuple[int, bytes], bytes]]) -> None:
    """Give passages of rewritten documents the vectors of their earlier passages with the same text."""
    for did, vectors in embedded.items():
        head = f"SELECT pid, hash FROM {transaction.tables.passages}"
        found = transaction.by_number(head, "did", [did]) if vectors else []
        for mid in {mid for mid, _ in vectors}:
            kept = [(pid, vectors[mid, bytes(digest)]) for pid, digest in found if (mid, bytes(digest)) in vectors]
            add(transaction, mid, kept)
