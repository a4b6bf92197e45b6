"""Deleting documents and passages.

The passages, vectors and fields of a document are deleted by the foreign keys. The counts are reduced, and the numbers
of deleted passages are logged in ``removed``, for the graph indexes of all machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.stores.postgres import link_rows
from trivet.stores.postgres.shards import Shard
from trivet.stores.postgres.transaction import Transaction


def remove(transaction: Transaction, dids: Sequence[int], feedback_too: bool = False) -> None:
    """Delete documents with their passages and links, and with the feedback on them if ``feedback_too``."""
    remove_passages(transaction, dids)
    sql = "DELETE FROM documents WHERE cid = %s AND did = ANY(%s) RETURNING id"
    ids = [id for (id,) in transaction.by_number(sql, dids)]
    link_rows.remove_of(transaction, ids)
    if feedback_too:
        remove_feedback(transaction, ids)
    transaction.count(documents=-len(ids))


def remove_feedback(transaction: Transaction, ids: Sequence[str]) -> None:
    """Delete all feedback on documents."""
    transaction.execute("DELETE FROM feedback WHERE cid = %s AND id = ANY(%s)", (transaction.root, list(ids)))


def remove_passages(transaction: Transaction, dids: Sequence[int]) -> None:
    """Delete the passages of documents."""
    for shard, own in transaction.shards.by_number(dids).items():
        _remove_passages(transaction, shard, own)


def _remove_passages(transaction: Transaction, shard: Shard, dids: list[int]) -> None:
    cid = shard.cid
    sql = (
        "SELECT v.mid, count(*) FROM vectors v JOIN passages p ON p.cid = v.cid AND p.pid = v.pid "
        "WHERE v.cid = %s AND p.did = ANY(%s) GROUP BY v.mid"
    )
    for mid, vectors in transaction.all(sql, (cid, dids)):
        sql = "UPDATE models SET vectors = vectors - %s WHERE cid = %s AND mid = %s"
        transaction.execute(sql, (vectors, transaction.root, mid))
    transaction.execute(
        "UPDATE lexicon l SET passages = l.passages - x.n FROM (SELECT t.term, count(*) AS n FROM passages p, "
        "unnest(tsvector_to_array(p.words)) AS t(term) WHERE p.cid = %s AND p.did = ANY(%s) GROUP BY t.term) x "
        "WHERE l.cid = %s AND l.term = x.term",
        (cid, dids, cid),
    )
    removed = transaction.all(
        "DELETE FROM passages WHERE cid = %s AND did = ANY(%s) RETURNING pid, length", (cid, dids)
    )
    if not removed:
        return
    first = transaction.take("removed", len(removed))
    with transaction.connection.cursor().copy("COPY removed (cid, seq, pid) FROM STDIN") as copy:
        for at, (pid, _) in enumerate(removed):
            copy.write_row((transaction.root, first + at, pid))
    if transaction.bm25_table:
        sql = f"DELETE FROM {transaction.bm25_table} WHERE pid = ANY(%s)"
        transaction.execute(sql, ([pid for pid, _ in removed],))
    transaction.count(passages=-len(removed), terms=-sum(length for _, length in removed))
