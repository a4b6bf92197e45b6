"""A store is created once, recognised again, and no other file is taken for one."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import trivet
from trivet.errors import StoreError
from trivet.stores.sqlite import database as database_module
from trivet.stores.sqlite.database import Database
from trivet.stores.sqlite.schema import MIGRATIONS, statements

TABLES = {
    "counters",
    "collections",
    "models",
    "documents",
    "passages",
    "removed",
    "vectors",
    "fields",
    "links",
    "feedback",
    "access",
    "settings_history",
}


def set_back(path: Path, version: int) -> None:
    """The file as the trivet of that schema would have left it."""
    with closing(sqlite3.connect(path)) as connection:
        before = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        form = re.compile(r"^CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)", re.MULTILINE)
        made = [form.findall(script) for script in MIGRATIONS]
        for what, name in reversed([thing for things in made[version:] for thing in things]):
            connection.execute(f"DROP {what} {name}")
        connection.execute(f"PRAGMA user_version={version}")
        connection.commit()
        assert before > {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_fresh_file_has_every_table_and_the_newest_version(tmp_path: Path) -> None:
    Database(tmp_path / "memory.db").close()
    made = {name for (name,) in rows(tmp_path / "memory.db", "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert made >= TABLES
    assert rows(tmp_path / "memory.db", "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert rows(tmp_path / "memory.db", "PRAGMA journal_mode") == [("wal",)]
    assert dict(rows(tmp_path / "memory.db", "SELECT * FROM counters")) == dict.fromkeys(
        ("document", "passage", "vector", "removed"), 0
    )


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Database(path).close()
    before = path.read_bytes()
    Database(path).close()
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    Database(tmp_path / "memory.db").close()
    assert rows(tmp_path / "memory.db", "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_a_store_of_a_newer_trivet_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 3}")
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=rf"memory\.db.* schema {len(MIGRATIONS) + 3}.*knows {len(MIGRATIONS)}; upgrade"
    ):
        trivet.open(path, embedder="none")
    assert path.read_bytes() == before


def test_a_sqlite_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.execute("INSERT INTO recipes VALUES ('soup')")
        connection.commit()
    with pytest.raises(StoreError, match=r"other\.db.*another program"):
        trivet.open(path, embedder="none")
    assert rows(path, "SELECT * FROM recipes") == [("soup",)]
    assert rows(path, "SELECT name FROM sqlite_master") == [("recipes",)]
    assert rows(path, "PRAGMA journal_mode") == [("delete",)], "its journal mode was changed"


def test_a_foreign_file_with_a_version_of_its_own_is_refused(tmp_path: Path) -> None:
    """``user_version`` 1 is what many programs write: the number alone does not make it ours."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.execute("PRAGMA user_version=1")
        connection.commit()
    with pytest.raises(StoreError, match="another program"):
        trivet.open(path, embedder="none")
    assert rows(path, "SELECT name FROM sqlite_master") == [("recipes",)]


def test_migrations_are_applied_once_each_from_where_the_file_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    Database(path).close()
    later = (*MIGRATIONS, "CREATE TABLE later (x);\nINSERT INTO later VALUES (1);", "INSERT INTO later VALUES (2);")
    monkeypatch.setattr(database_module, "MIGRATIONS", later)
    for _ in range(2):
        Database(path).close()
        assert rows(path, "SELECT x FROM later") == [(1,), (2,)]
        assert rows(path, "PRAGMA user_version") == [(len(later),)]


@pytest.fixture
def first_schema(tmp_path: Path) -> Path:
    """A store as the trivet before feedback left it, with something in it."""
    folder = tmp_path / "old"
    folder.mkdir()
    with trivet.open(folder / "memory.db", embedder="hashing:32") as engine:
        engine.add([{"id": "a", "text": "a red fox", "links": ["b"]}, {"id": "b", "text": "a heron"}])
        engine.update_settings(k=3)
        engine.wait(timeout=60)
        engine.search("fox")
    set_back(folder / "memory.db", 1)
    assert rows(folder / "memory.db", "PRAGMA user_version") == [(1,)]
    assert rows(folder / "memory.db", "SELECT name FROM sqlite_master WHERE name = 'feedback'") == []
    return folder / "memory.db"


def test_a_store_from_before_feedback_is_upgraded_and_loses_nothing(first_schema: Path) -> None:
    with trivet.open(first_schema) as engine:
        assert engine.feedbacks() == []
        assert [document.id for document in engine.documents()] == ["a", "b"]
        assert (engine.settings.k, len(engine.links()), engine.stats().embedded) == (3, 1, 2)
        assert engine.search("fox")[0].id == "a"
        assert engine.verify().ok
        given = engine.feedback("which bird", "b")
    assert rows(first_schema, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    with trivet.open(first_schema) as engine:
        assert engine.feedbacks() == [given]


#: What the first schema's trivet runs to store a document and to change the settings.
OLD_WRITES = (
    "INSERT INTO documents VALUES (100, 1, 'c', '', 'a grey heron', 'note', '{}', 0.5, 0, 0, NULL, NULL, NULL, x'00')",
    "INSERT INTO passages VALUES (100, 1, 100, 0, 0, 12, x'00')",
    "INSERT INTO links VALUES (1, 'c', 'a', 'see-also', 1.0)",
    "UPDATE counters SET value = 100 WHERE name IN ('document', 'passage')",
    "UPDATE collections SET documents = documents + 1, passages = passages + 1, version = version + 1",
)


def test_who_has_an_older_store_open_goes_on_while_another_upgrades_it(first_schema: Path) -> None:
    with closing(sqlite3.connect(first_schema, isolation_level=None)) as before:
        assert before.execute("SELECT count(*) FROM documents").fetchone() == (2,)
        with trivet.open(first_schema, embedder="none") as after:
            after.feedback("which animal", "a")
            after.touch("a")
            for statement in OLD_WRITES:
                before.execute(statement)
            assert after.get("c") is not None
            assert [hit.id for hit in after.search("grey heron", graph_weight=0)] == ["c", "b"]
            assert after.touch(["a", "c"]) == 2
            before.execute("DELETE FROM documents WHERE did = 100")
            assert len(after.feedbacks()) == 1


def test_a_store_from_before_access_counts_is_upgraded_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="none") as engine:
        engine.add("a red fox", id="a", accessed="2026-01-01", valid_from="2026-01-01")
        given = engine.feedback("which animal", "a")
        engine.update_settings(k=3)
    set_back(path, 2)
    with trivet.open(path) as engine:
        assert engine.feedbacks() == [given]
        assert (engine.settings.k, engine.settings_history()) == (3, [])
        kept = engine.get("a")
        assert kept is not None and kept.accesses == 0 and kept.accessed == datetime(2026, 1, 1, tzinfo=UTC)
        assert engine.touch("a") == 1
        assert [hit.id for hit in engine.search("fox", as_of="2025-01-01")] == []


def test_an_older_store_that_cannot_be_written_says_how_it_is_upgraded(
    first_schema: Path, sealed: Callable[[Path], Path]
) -> None:
    place = sealed(first_schema.parent)
    with pytest.raises(
        StoreError, match=rf"has schema 1, this trivet needs {len(MIGRATIONS)}; open it once where it can be written"
    ):
        trivet.open(place / "memory.db")
    trivet.open(first_schema).close()
    with trivet.open(place / "memory.db") as engine:
        assert engine.feedbacks() == []
        with pytest.raises(StoreError, match="read-only; nothing was written"):
            engine.feedback("which animal", "a")


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    Database(path).close()
    broken = (*MIGRATIONS, "CREATE TABLE later (x);\nINSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(database_module, "MIGRATIONS", broken)
    with pytest.raises(StoreError, match="nowhere"):
        Database(path)
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'later'") == []
    assert rows(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_statements_splits_at_statement_ends_only() -> None:
    script = "CREATE TABLE a (x TEXT DEFAULT 'one;two');  -- a comment; with a semicolon\nINSERT INTO a\nVALUES (1);\n"
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements(script):
            connection.execute(statement)
        assert connection.execute("SELECT x FROM a").fetchall() == [("1",)]


OPEN_AT_ONCE = """
import sys, threading, time
import trivet
from trivet.stores.sqlite.store import SqliteStore
path, start, worker = sys.argv[1], float(sys.argv[2]), sys.argv[3]
import trivet.engine
time.sleep(max(0.0, start - time.time()))  # all at the same moment
for attempt in range(12):
    with trivet.open(f"{path}/{attempt}.db", embedder="none") as engine:
        engine.add(f"hello from {worker}", id=worker)
print("done")
"""


@pytest.mark.slow
def test_processes_that_create_the_same_store_at_once_share_it(tmp_path: Path) -> None:
    import time

    start = str(time.time() + 1.5)
    workers = [str(number) for number in range(5)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AT_ONCE, str(tmp_path), start, worker],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for worker in workers
    ]
    for process in running:
        told, complaints = process.communicate(timeout=100)
        assert (told, complaints) == ("done\n", ""), complaints
    for attempt in range(12):
        with trivet.open(tmp_path / f"{attempt}.db") as engine:
            assert sorted(document.id for document in engine.documents()) == workers
            assert engine.collections() == ["default"]
