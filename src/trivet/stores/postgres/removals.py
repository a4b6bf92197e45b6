"""Deleting documents and passages.

The passages, vectors and fields of a document are deleted by the foreign keys. The counts are reduced, and the numbers
of deleted passages are logged in ``removed``, for the graph indexes of all machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.stores.postgres import link_rows
from trivet.stores.postgres.transaction import Transaction


def remove(transaction: Transaction, dids: Sequence[int], feedback_too: bool = False) -> None:
    """Delete documents with their passages and links, and with the feedback on them if ``feedback_too``."""
    remove_passages(transaction, dids)
    ids = [
        id
        for (id,) in transaction.by_number(f"DELETE FROM {transaction.tables.documents}", "did", dids, " RETURNING id")
    ]
    link_rows.remove_of(transaction, ids)
    if feedback_too:
        remove_feedback(transaction, ids)
    transaction.count(documents=-len(ids))


def remove_feedback(transaction: Transaction, ids: Sequence[str]) -> None:
    """Delete all feedback on documents."""
    transaction.execute(f"DELETE FROM feedback WHERE cid = {transaction.root} AND id = ANY(%s)", (list(ids),))


def remove_passages(transaction: Transaction, dids: Sequence[int]) -> None:
    """Delete the passages of documents."""
    tables = transaction.tables
    joined = f"{tables.passages} p JOIN {tables.vectors} v ON {tables.beside('v', 'p')} AND v.pid = p.pid"
    for mid, vectors in transaction.by_number(
        f"SELECT v.mid, count(*) FROM {joined}", "p.did", dids, " GROUP BY v.mid"
    ):
        sql = f"UPDATE models SET vectors = vectors - %s WHERE cid = {tables.root} AND mid = %s"
        transaction.execute(sql, (vectors, mid))
    counted = f"SELECT t.term, -count(*) FROM {tables.passages} p, unnest(tsvector_to_array(p.words)) AS t(term)"
    transaction.count_terms(dict(transaction.by_number(counted, "p.did", dids, " GROUP BY t.term")))
    removed = transaction.by_number(f"DELETE FROM {tables.passages}", "did", dids, " RETURNING pid, length")
    if not removed:
        return
    first = transaction.take("removed", len(removed))
    with transaction.connection.cursor().copy("COPY removed (cid, seq, pid) FROM STDIN") as copy:
        for at, (pid, _) in enumerate(removed):
            copy.write_row((tables.root, first + at, pid))
    if transaction.bm25_table:
        sql = f"DELETE FROM {transaction.bm25_table} WHERE pid = ANY(%s)"
        transaction.execute(sql, ([pid for pid, _ in removed],))
    transaction.count(passages=-len(removed), terms=-sum(length for _, length in removed))
