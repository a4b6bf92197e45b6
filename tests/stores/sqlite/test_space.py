"""What the bytes of a store are for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import trivet
from trivet.stores.sqlite import space
from trivet.stores.sqlite.collection import SqliteCollection

TEXT = "The heron waits at the weir until the water is clear. " * 20


def files_of(path: Path) -> int:
    folder = Path(f"{path}.index")
    files = [path, Path(f"{path}-wal"), Path(f"{path}-shm"), *folder.rglob("*")]
    return sum(file.stat().st_size for file in files if file.is_file())


@pytest.fixture
def full(engine: trivet.Engine) -> trivet.Engine:
    engine.add([{"id": str(at), "text": f"{at} {TEXT}", "meta": {"at": at}} for at in range(600)])
    engine.wait()
    engine.prepare()
    return engine


def test_every_byte_belongs_to_one_part(full: trivet.Engine, collection: SqliteCollection) -> None:
    path = collection.rows.database.path
    assert sum(full.space().values()) == files_of(path) == sum(collection.store.sizes())
    full.delete([str(at) for at in range(300)])
    with collection.rows.database.write() as connection:
        connection.execute("SELECT 1")
    assert sum(full.space().values()) == files_of(path)
    full.compact()
    assert sum(full.space().values()) == files_of(path)


def test_each_kind_of_data_is_named(full: trivet.Engine) -> None:
    full.compact()  # the log into the file
    found = full.space()
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found["texts"] > 600 * len(TEXT) > found["passages"] > 0
    assert found["vectors"] > 600 * 64
    assert {"metadata", "SQLite indexes", "word index", "forward files", "other tables", "log"} <= set(found)
    full.delete([str(at) for at in range(300)])
    full._collection.rows.database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert full.space()["free pages"] > 250 * len(TEXT)


def test_a_page_that_is_only_in_the_log_counts_there(engine: trivet.Engine) -> None:
    engine.add("heron", id="a")
    found = engine.space()
    assert found["log"] > found.get("texts", 0)


def test_without_dbstat_the_tables_are_one_part(full: trivet.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    full.compact()
    monkeypatch.setattr(space, "_PAGES", "SELECT * FROM no_such_table WHERE pageno <= ?")
    path = full._collection.rows.database.path
    found = full.space()
    assert found["tables"] > 600 * len(TEXT) and "texts" not in found
    assert sum(found.values()) == files_of(path)


def test_a_damaged_file_is_not_taken_for_one_without_dbstat(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"no database at all" * 400)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.DatabaseError):
        space.space(connection, path, tmp_path / "index")
    connection.close()


def test_a_bound_engine_does_not_see_the_sizes_of_others(full: trivet.Engine) -> None:
    with pytest.raises(trivet.NotAllowedError, match="space"):
        full.within({"at": 3}).space()
