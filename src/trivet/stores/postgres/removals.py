"""How do documents leave the truth?

What a document brought with it (passages, vectors, fields) goes with it by the foreign keys; what was counted is
counted down, and the passages that are gone are written down for whoever holds what was made of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.stores.postgres import links
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.parts import Part
from trivet.stores.postgres.place import Place, count, take


def remove_passages(connection: Connection, place: Place, dids: Sequence[int]) -> None:
    for part, own in place.parts.by_number(dids).items():
        _remove_passages(connection, place, part, own)


def _remove_passages(connection: Connection, place: Place, part: Part, dids: list[int]) -> None:
    cid = part.cid
    sql = (
        "SELECT v.mid, count(*) FROM vectors v JOIN passages p ON p.cid = v.cid AND p.pid = v.pid "
        "WHERE v.cid = %s AND p.did = ANY(%s) GROUP BY v.mid"
    )
    for mid, gone_with in connection.execute(sql, (cid, dids)).fetchall():
        change = "UPDATE models SET vectors = vectors - %s WHERE cid = %s AND mid = %s"
        connection.execute(change, (gone_with, place.root, mid))
    connection.execute(
        "UPDATE lexicon l SET passages = l.passages - x.n FROM (SELECT t.term, count(*) AS n FROM passages p, "
        "unnest(tsvector_to_array(p.words)) AS t(term) WHERE p.cid = %s AND p.did = ANY(%s) GROUP BY t.term) x "
        "WHERE l.cid = %s AND l.term = x.term",
        (cid, dids, cid),
    )
    gone = connection.execute(
        "DELETE FROM passages WHERE cid = %s AND did = ANY(%s) RETURNING pid, length", (cid, dids)
    ).fetchall()
    if gone:
        first = take(connection, place, "removed", len(gone))
        with connection.cursor().copy("COPY removed (cid, seq, pid) FROM STDIN") as copy:
            for at, (pid, _) in enumerate(gone):
                copy.write_row((place.root, first + at, pid))
    if place.words and gone:
        connection.execute(f"DELETE FROM {place.words} WHERE pid = ANY(%s)", ([pid for pid, _ in gone],))
    count(connection, place, passages=-len(gone), words=-sum(length for _, length in gone))


def remove(connection: Connection, place: Place, dids: Sequence[int], judged: bool = False) -> int:
    """Delete documents with everything that hangs on them; ``judged``: and with the feedback on them."""
    remove_passages(connection, place, dids)
    gone: list[str] = []
    for part, own in place.parts.by_number(dids).items():
        sql = "DELETE FROM documents WHERE cid = %s AND did = ANY(%s) RETURNING id"
        gone += [identifier for (identifier,) in connection.execute(sql, (part.cid, own))]
    links.remove_of(connection, place.root, gone)
    if judged and gone:
        connection.execute("DELETE FROM feedback WHERE cid = %s AND id = ANY(%s)", (place.root, gone))
    count(connection, place, documents=-len(gone))
    return len(gone)
