"""An update reads only what is new: with a wrong SQL index every search after a write read the whole collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import trivet
from trivet.stores.sqlite.collection import SqliteCollection

READS: dict[str, Callable[[SqliteCollection], Any]] = {
    "passages_after": lambda collection: collection.feed.passages_after(5, 10),
    "count_after": lambda collection: collection.feed.count_after(5),
    "removed_after": lambda collection: collection.feed.removed_after(5),
    "vectors_after": lambda collection: collection.feed.vectors_after(1, 5),
    "next_pending": lambda collection: collection.vectors.next_missing(1, 5, 10),
    "documents": lambda collection: list(collection.documents.scan()),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_new_is_found_by_row_number(name: str) -> None:
    with trivet.open(":memory:", embedder="hashing:16") as engine:
        engine.add([{"id": f"d{number}", "text": f"word{number}"} for number in range(30)])
        engine.wait(timeout=60)
        connection = engine._collection.rows.database.read()
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        READS[name](engine._collection)
        connection.set_trace_callback(None)
        first = next(sql for sql in asked if "expiries WHERE cid" not in sql)  # has anything expired? comes before
        plan = " | ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {first}"))
        assert "USING INTEGER PRIMARY KEY (rowid>?" in plan.split(" | ")[0], plan
        assert "TEMP B-TREE" not in plan, plan


def test_the_vectors_of_the_same_text_are_looked_up_for_the_new_passages_only() -> None:
    """By the index on the hash, which begins with the collection, every write read all passages: 5 ms at 89,000."""
    with trivet.open(":memory:", embedder="hashing:16") as engine:
        engine.add([{"id": f"d{number}", "text": f"word{number}"} for number in range(30)])
        connection = engine._collection.rows.database.read()
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        engine._collection.vectors.known(1, [5])
        connection.set_trace_callback(None)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]
        assert plan[0] == "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)", plan


def test_what_has_expired_is_one_look_into_an_index() -> None:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add({"id": "a", "text": "one"})
        connection = engine._collection.rows.database.read()
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        assert engine._collection.filters.scope(None, (), 1) is None
        connection.set_trace_callback(None)
        (only,) = asked
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {only}"))
        assert plan == "SEARCH expiries USING COVERING INDEX expiries_at (cid=? AND at<?)", plan
