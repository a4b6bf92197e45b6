"""How do vectors get into the truth and out of it?

Bytes in, the same bytes out. Each works inside a transaction that holds the lock of its collection's row.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.parts import Part, Parts


def add_vectors(connection: Connection, parts: Parts, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    """(pid, float32 bytes); a passage that has one already, or that went with its model meanwhile, is passed over."""
    data = dict(vectors)
    sql = "SELECT 1 FROM models WHERE cid = %s AND mid = %s"
    if not data or connection.execute(sql, (parts.root, mid)).fetchone() is None:
        return
    for part, pids in parts.by_number(data).items():
        rows = connection.execute(
            "SELECT p.pid, p.did FROM passages p WHERE p.cid = %s AND p.pid = ANY(%s) AND NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.cid = %s AND v.mid = %s AND v.pid = p.pid)",
            (part.cid, pids, part.cid, mid),
        ).fetchall()
        store(connection, parts.root, part, mid, [(pid, did, data[pid]) for pid, did in rows])


def store(connection: Connection, root: int, part: Part, mid: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """COPY in PostgreSQL's binary form: a vector as text would be three times as long and has to be parsed."""
    if not rows:
        return
    with connection.cursor().copy("COPY vectors (cid, mid, pid, did, data) FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for pid, did, data in rows:
            head = struct.pack("!hiqiqiqiq", 5, 8, part.cid, 8, mid, 8, pid, 8, did)
            vector = _wire(data)
            copy.write(head + struct.pack("!i", len(vector)) + vector)
        copy.write(struct.pack("!h", -1))
    sql = "UPDATE models SET vectors = vectors + %s WHERE cid = %s AND mid = %s"
    connection.execute(sql, (len(rows), root, mid))


def _wire(data: bytes) -> bytes:
    """pgvector's wire form: dimensions, two spare bytes, big-endian floats."""
    import numpy as np

    return struct.pack("!HH", len(data) // 4, 0) + np.frombuffer(data, dtype="<f4").astype(">f4").tobytes()


def unwired(data: bytes) -> bytes:
    """What ``vector_send`` gives, as the bytes that were stored."""
    import numpy as np

    return np.frombuffer(data, dtype=">f4", offset=4).astype("<f4").tobytes()


def embedded(connection: Connection, cid: int, did: int) -> dict[tuple[int, bytes], bytes]:
    """(model, hash of the text) → vector, for the passages a document has."""
    rows = connection.execute(
        "SELECT v.mid, p.hash, vector_send(v.data) FROM passages p JOIN vectors v ON v.cid = p.cid AND v.pid = p.pid "
        "WHERE p.cid = %s AND p.did = %s",
        (cid, did),
    )
    return {(mid, bytes(digest)): unwired(data) for mid, digest, data in rows}


def give_back(
    connection: Connection, parts: Parts, part: Part, embedded: Mapping[int, Mapping[tuple[int, bytes], bytes]]
) -> None:
    """A passage that says what it said before keeps its vector: an edited paragraph is not the whole document."""
    for did, vectors in embedded.items():
        sql = "SELECT pid, hash FROM passages WHERE cid = %s AND did = %s"
        found = connection.execute(sql, (part.cid, did)).fetchall() if vectors else []
        for mid in {mid for mid, _ in vectors}:
            kept = [(pid, vectors[mid, bytes(digest)]) for pid, digest in found if (mid, bytes(digest)) in vectors]
            add_vectors(connection, parts, mid, kept)
