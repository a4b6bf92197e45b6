"""Writing and reading vectors inside of a write transaction; the bytes come back as they were given."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from trivet.stores.postgres.shards import Shard
from trivet.stores.postgres.transaction import Transaction


def add(transaction: Transaction, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Add (passage, float32 bytes), except for passages that have a vector or were deleted, as the model may be."""
    data = dict(vectors)
    sql = "SELECT 1 FROM models WHERE cid = %s AND mid = %s"
    if not data or not transaction.all(sql, (transaction.root, mid)):
        return
    for shard, pids in transaction.shards.by_number(data).items():
        rows = transaction.all(
            "SELECT p.pid, p.did FROM passages p WHERE p.cid = %s AND p.pid = ANY(%s) AND NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.cid = %s AND v.mid = %s AND v.pid = p.pid)",
            (shard.cid, pids, shard.cid, mid),
        )
        insert(transaction, shard, mid, [(pid, did, data[pid]) for pid, did in rows])


def insert(transaction: Transaction, shard: Shard, mid: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Insert (passage, document, bytes) with COPY in binary form: as text, a vector is three times as long."""
    if not rows:
        return
    cursor = transaction.connection.cursor()
    with cursor.copy("COPY vectors (cid, mid, pid, did, data) FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for pid, did, data in rows:
            head = struct.pack("!hiqiqiqiq", 5, 8, shard.cid, 8, mid, 8, pid, 8, did)
            vector = _to_wire(data)
            copy.write(head + struct.pack("!i", len(vector)) + vector)
        copy.write(struct.pack("!h", -1))
    sql = "UPDATE models SET vectors = vectors + %s WHERE cid = %s AND mid = %s"
    transaction.execute(sql, (len(rows), transaction.root, mid))


def _to_wire(data: bytes) -> bytes:
    """Return pgvector's wire format: dimensions, two unused bytes, big-endian floats."""
    import numpy as np

    return struct.pack("!HH", len(data) // 4, 0) + np.frombuffer(data, dtype="<f4").astype(">f4").tobytes()


def from_wire(data: bytes) -> bytes:
    """Return the stored bytes of what ``vector_send`` gives."""
    import numpy as np

    return np.frombuffer(data, dtype=">f4", offset=4).astype("<f4").tobytes()


def of_document(transaction: Transaction, cid: int, did: int) -> dict[tuple[int, bytes], bytes]:
    """Map (model, hash of the passage) to the vector, for the passages of a document."""
    rows = transaction.all(
        "SELECT v.mid, p.hash, vector_send(v.data) FROM passages p JOIN vectors v ON v.cid = p.cid AND v.pid = p.pid "
        "WHERE p.cid = %s AND p.did = %s",
        (cid, did),
    )
    return {(mid, bytes(digest)): from_wire(data) for mid, digest, data in rows}


def restore(transaction: Transaction, shard: Shard, embedded: Mapping[int, Mapping[tuple[int, bytes], bytes]]) -> None:
    """Give passages of rewritten documents the vectors of their earlier passages with the same text."""
    for did, vectors in embedded.items():
        sql = "SELECT pid, hash FROM passages WHERE cid = %s AND did = %s"
        found = transaction.all(sql, (shard.cid, did)) if vectors else []
        for mid in {mid for mid, _ in vectors}:
            kept = [(pid, vectors[mid, bytes(digest)]) for pid, digest in found if (mid, bytes(digest)) in vectors]
            add(transaction, mid, kept)
