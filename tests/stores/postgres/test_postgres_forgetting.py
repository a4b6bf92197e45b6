"""After ``forget`` and ``compact`` no row of the server and no byte of this machine's cache holds a document."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trivet.engine import Engine
from trivet.stores.indexes import graph_index

from .conftest import listening, rows

MARK = "zqxkvwbrtplm"


def tables_with(engine: Engine) -> set[str]:
    """Return the tables that have a row with the marker in it."""
    schema = engine._store.database.address.schema  # type: ignore[attr-defined]
    names = rows(engine, "SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)
    sql = "SELECT 1 FROM {} t WHERE t::text ILIKE %s LIMIT 1"
    return {name for (name,) in names if rows(engine, sql.format(name), f"%{MARK}%")}


def cached() -> bool:
    files = [path for path in Path(os.environ["TRIVET_CACHE"]).rglob("*") if path.is_file()]
    return any(MARK.encode() in path.read_bytes().lower() for path in files)


def test_the_first_expiry_is_read_once_for_each_version(memory: Engine) -> None:
    def asked() -> list[str]:
        with listening() as heard:
            found = [hit.id for hit in memory.search("heron", weights={"lexical": 1.0, "dense": 0.0, "graph": 0.0})]
        said = [word for sql, _ in heard for word in ("min", "max") if f"{word}(expires)" in sql]
        return [*found, *said]

    memory.add("heron by the river", id="kept")
    assert asked() == ["kept", "min"]
    assert asked() == ["kept"]
    memory.add("heron on a stone", id="short", expires=datetime.now(UTC) + timedelta(seconds=2))
    assert sorted(asked()) == ["kept", "min", "short"]
    assert sorted(asked()) == ["kept", "short"]
    time.sleep(2.1)
    assert asked()[:2] == ["kept", "max"]  # it has passed: which documents, is asked each time until they are removed


def test_a_forgotten_document_is_in_no_row_and_no_cached_file(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_index, "TAIL_LIMIT", 4)
    memory.update_settings(weights={"lexical": 1, "dense": 1, "graph": 1})
    memory.add([{"id": f"d{at}", "text": f"Blue Falcon number {at}"} for at in range(20)])
    for at in (1, 2):
        memory.add({"id": f"{MARK}-{at}", "text": f"Captain {MARK.title()} of {MARK}", "meta": {MARK: MARK}})
    memory.link(f"{MARK}-1", "d1", type=MARK)
    memory.feedback(MARK, f"{MARK}-1")
    memory.search(MARK)
    memory.prepare()
    memory._collection.graph.index().settle()  # type: ignore[attr-defined]
    assert {"documents", "passages", "lexicon", "fields", "links", "feedback"} <= tables_with(memory) and cached()
    forgotten = memory.forget([f"{MARK}-1", f"{MARK}-2"], compact=True)
    assert forgotten.documents == 2
    assert tables_with(memory) == set() and not cached()
    assert rows(memory, "SELECT count(*) FROM removed") == [(0,)]
    assert memory.verify().ok and len(memory.search("falcon", k=5)) == 5
