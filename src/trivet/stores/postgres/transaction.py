"""A write transaction of one collection."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.schema import KEPT_TOKENS
from trivet.stores.postgres.tables import Tables
from trivet.text.analysis import Analyzer

PRUNE_EVERY = 1_024  # versions between two deletions of tokens that are too old


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that holds the lock on the collection's row in ``heads``: writers of a collection take turns."""

    connection: Connection
    tables: Tables
    analyzer: Analyzer
    settings: str
    bm25_table: str | None  # the collection's table for pg_textsearch, if there is one

    @property
    def root(self) -> int:
        """The number of the collection."""
        return self.tables.root

    def execute(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.connection.execute(sql, values or None)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.execute(sql, values).fetchall()

    def by_number(self, head: str, column: str, numbers: Iterable[int], tail: str = "") -> list[tuple[Any, ...]]:
        return self.tables.select(self.all, head, column, numbers, tail)

    def by_id(self, head: str, column: str, ids: Iterable[str], tail: str = "") -> list[tuple[Any, ...]]:
        return self.tables.select_ids(self.all, head, column, ids, tail)

    def take(self, counter: str, amount: int) -> int:
        """Reserve ``amount`` numbers of a counter; return the first."""
        sql = f"UPDATE heads SET last_{counter} = last_{counter} + %s WHERE cid = %s RETURNING last_{counter}"
        return int(self.all(sql, (amount, self.root))[0][0]) - amount + 1

    def count(self, *, documents: int = 0, passages: int = 0, terms: int = 0) -> None:
        """Add to the counts of the collection."""
        if documents or passages or terms:
            self.execute(
                "UPDATE heads SET documents = documents + %s, passages = passages + %s, terms = terms + %s "
                "WHERE cid = %s",
                (documents, passages, terms, self.root),
            )

    def count_terms(self, frequencies: Mapping[str, int]) -> None:
        """Add to the number of passages that have each term."""
        if frequencies:
            self.execute(
                f"INSERT INTO lexicon AS l (cid, term, passages) SELECT {self.root}, x.term, x.n "
                "FROM unnest(%s::text[], %s::bigint[]) AS x(term, n) "
                "ON CONFLICT (cid, term) DO UPDATE SET passages = l.passages + excluded.passages",
                (list(frequencies), list(frequencies.values())),
            )


def new_version(connection: Connection, cid: int) -> None:
    """Give the collection a new version with a token."""
    sql = "UPDATE heads SET version = version + 1 WHERE cid = %s RETURNING version"
    row = connection.execute(sql, (cid,)).fetchone()
    if row is None:
        return
    add_token(connection, cid, row[0])
    if row[0] % PRUNE_EVERY == 0:
        connection.execute("DELETE FROM timeline WHERE cid = %s AND version <= %s", (cid, row[0] - KEPT_TOKENS))


def add_token(connection: Connection, cid: int, version: int) -> None:
    """Store a random token for a version: a restored server repeats version numbers, but never a token."""
    sql = "INSERT INTO timeline (cid, version, token) VALUES (%s, %s, %s)"
    connection.execute(sql, (cid, version, secrets.token_bytes(8)))
