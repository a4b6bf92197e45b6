"""The table of a collection that pg_textsearch indexes.

The statistics of its BM25 index are those of a table, so every collection has a table of its own.
"""

from __future__ import annotations

import psycopg

from trivet.stores.postgres import document_rows, terms
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.schema import BM25_TABLE, statements
from trivet.stores.postgres.transaction import Transaction, new_version
from trivet.types import Progress

BATCH = 1_000  # passages read at a time


def create(connection: Connection, table: str) -> bool:
    """Create the table and its index; return False, and leave nothing, where the server refuses."""
    try:
        with connection.transaction():
            schema, _, name = table.rpartition(".")
            for statement in statements(BM25_TABLE.format(schema=schema, name=name)):
                connection.execute(statement)
    except psycopg.Error:
        return False
    return True


def add(rows: Rows, progress: Progress | None = None) -> None:
    """Create and fill the table of a collection that was created on a server without pg_textsearch."""
    if rows.head("bm25")[0]:
        return
    with rows.locked() as transaction:
        transaction.execute("SET LOCAL statement_timeout = 0")
        if not create(transaction.connection, rows.bm25_table):
            return
        transaction.execute(f"TRUNCATE {rows.bm25_table}")
        _fill(transaction, rows.bm25_table, progress)
        transaction.execute("UPDATE heads SET bm25 = true WHERE cid = %s", (rows.root,))
        new_version(transaction.connection, rows.root)


def _fill(transaction: Transaction, table: str, progress: Progress | None) -> None:
    ((total,),) = transaction.all("SELECT passages FROM heads WHERE cid = %s", (transaction.root,))
    after, done = 0, 0
    sql = "SELECT pid, did, body FROM passages WHERE cid = %s AND pid > %s ORDER BY pid LIMIT %s"
    while batch := transaction.all(sql, (transaction.root, after, BATCH)):
        lines = ((pid, did, terms.line(transaction.analyzer.terms(body))) for pid, did, body in batch)
        document_rows.add_lines(transaction.connection, table, lines)
        after, done = batch[-1][0], done + len(batch)
        if progress:
            progress(done, total)


def drop(rows: Rows) -> None:
    """Drop the table of a collection."""
    with rows.locked() as transaction:
        transaction.execute("UPDATE heads SET bm25 = false WHERE cid = %s", (rows.root,))
        new_version(transaction.connection, rows.root)
        transaction.execute(f"DROP TABLE IF EXISTS {rows.bm25_table}")
