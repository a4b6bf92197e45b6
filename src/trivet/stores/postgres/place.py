"""Where do the records of a collection go, and under which numbers?

For whoever writes, inside a transaction that holds the lock of the collection's row.
"""

from __future__ import annotations

from dataclasses import dataclass

from trivet.analysis import Analyzer
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.parts import Parts


@dataclass(frozen=True, slots=True)
class Place:
    """The collection a record goes to, and how its words are made."""

    parts: Parts
    analyzer: Analyzer
    words: str | None = None  # its table of words for BM25, if there is one

    @property
    def root(self) -> int:
        return self.parts.root


def take(connection: Connection, place: Place, counter: str, amount: int) -> int:
    """Reserve ``amount`` counts; the first of them is returned."""
    sql = f"UPDATE heads SET last_{counter} = last_{counter} + %s WHERE cid = %s RETURNING last_{counter}"
    row = connection.execute(sql, (amount, place.root)).fetchone()
    assert row is not None, "the caller holds the lock on this row"
    return int(row[0]) - amount + 1


def count(connection: Connection, place: Place, *, documents: int = 0, passages: int = 0, words: int = 0) -> None:
    if documents or passages or words:
        connection.execute(
            "UPDATE heads SET documents = documents + %s, passages = passages + %s, terms = terms + %s WHERE cid = %s",
            (documents, passages, words, place.root),
        )
