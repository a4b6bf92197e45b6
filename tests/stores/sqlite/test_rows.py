"""The rows of a collection follow one timeline: another one is refused, and a gap drops every cache."""

from __future__ import annotations

from pathlib import Path

import pytest

import trivet
from trivet.errors import NotFoundError, StoreReplacedError
from trivet.filters import Eq
from trivet.stores.sqlite.collection import SqliteCollection


def test_a_write_of_another_process_is_followed(
    engine: trivet.Engine, collection: SqliteCollection, tmp_path: Path
) -> None:
    before = collection.state()
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as other:
        other.add("a fox", id="a")
    after = collection.state()
    assert after.version > before.version and after.documents == 1
    assert collection.knows_version(before.version, before.token)
    assert not collection.knows_version(before.version, b"other")


def test_another_token_for_the_last_version_is_refused(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add("a fox", id="a")
    version = collection.state().version
    with collection.rows.changing() as connection:
        connection.execute("UPDATE timeline SET token = x'00' WHERE version = ?", (version,))
    with pytest.raises(StoreReplacedError, match="open it again"):
        collection.state()


def test_a_gap_in_the_timeline_drops_every_cache(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add([{"id": "a", "text": "a fox", "meta": {"x": 1}}, {"id": "b", "text": "a heron"}])
    engine.wait()
    engine.search("fox", where={"x": 1}, weights={"lexical": 1, "trigram": 1, "dense": 1, "graph": 1})
    state = collection.state()
    collection.graph.edges([1], state.version)
    assert collection.filters.scope(Eq("x", 1), (), state.version) is not None
    with collection.rows.changing() as connection:
        connection.execute("DELETE FROM timeline WHERE version <= ?", (state.version,))
    assert collection.state().version == state.version + 1
    opened = (collection.lexical.opened.index, collection.trigrams.opened.index, collection.graph.opened.index)
    assert opened == (None, None, None) and collection.vectors.opened() == []
    assert not collection.filters._scopes and collection.graph._linked[0] == -1
    assert engine.search("fox").hits[0].id == "a"


def test_a_dropped_collection_is_named(engine: trivet.Engine) -> None:
    other = engine.collection("other", embedder="none")
    rows = other._collection.rows  # type: ignore[attr-defined]
    engine._collection.store.drop("other")
    with pytest.raises(NotFoundError, match="'other' was dropped"):
        rows.state()
