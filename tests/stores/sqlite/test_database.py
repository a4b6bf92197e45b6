"""Threads and processes share one file, and every refusal has a message."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import trivet
from trivet.errors import InputError, StoreError
from trivet.stores.sqlite import database as database_module
from trivet.stores.sqlite.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    opened = Database(tmp_path / "memory.db")
    yield opened
    opened.close()


def counter(database: Database, name: str = "document") -> int:
    return int(database.read().execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()[0])


def test_a_commit_is_forced_to_disk(database: Database) -> None:
    """2 is FULL: without it a power cut loses what was acknowledged."""
    assert database._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert database._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute("UPDATE counters SET value = 7")
        raise ZeroDivisionError
    assert counter(database) == 0
    with database.write() as connection:  # and the next one is not disturbed by it
        connection.execute("UPDATE counters SET value = value + 1")
    assert counter(database) == 1


def test_a_reader_sees_what_was_committed_and_not_what_is_under_way(database: Database) -> None:
    with database.write() as connection:
        connection.execute("UPDATE counters SET value = 7")
        assert counter(database) == 0
    assert counter(database) == 7


def test_writers_in_threads_take_turns(database: Database) -> None:
    def work() -> None:
        for _ in range(25):
            with database.write() as connection:
                (value,) = connection.execute("SELECT value FROM counters WHERE name = 'document'").fetchone()
                connection.execute("UPDATE counters SET value = ? WHERE name = 'document'", (value + 1,))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter(database) == 150


WRITER = """
import sys
from pathlib import Path
from trivet.stores.sqlite.database import Database
database = Database(Path(sys.argv[1]))
for _ in range(40):
    with database.write() as connection:
        (value,) = connection.execute("SELECT value FROM counters WHERE name = 'document'").fetchone()
        connection.execute("UPDATE counters SET value = ? WHERE name = 'document'", (value + 1,))
database.close()
"""


def test_writers_in_processes_take_turns(database: Database) -> None:
    command = [sys.executable, "-c", WRITER, str(database.path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=100)[1] for process in running] == ["", "", ""]
    assert counter(database) == 120


def test_threads_that_ended_leave_no_connection_open(database: Database) -> None:
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else len(database._opened)

    counter(database)
    before = handles()
    for _ in range(40):
        thread = threading.Thread(target=counter, args=(database,))
        thread.start()
        thread.join()
    assert handles() <= before + 4


def test_a_lock_held_too_long_is_told_as_such(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.05)
    other = Database(database.path)
    try:
        with database.write(), pytest.raises(StoreError, match=r"memory\.db.*locked.*try again"), other.write():
            pass
    finally:
        other.close()


def test_no_use_of_a_connection_begins_once_it_is_closed(tmp_path: Path) -> None:
    """A background thread that had checked before would use a connection that is being closed: the process crashed."""
    database = Database(tmp_path / "m.db")
    connection = database.read()
    with database.explained():  # a use that has begun may go on
        thread = threading.Thread(target=database.close)
        thread.start()
        while not database.closed:
            time.sleep(0.001)
        with database.explained():
            assert connection.execute("SELECT 1").fetchone() == (1,)
    thread.join()
    with pytest.raises(StoreError, match="is closed; open it again"), database.explained():
        pytest.fail("a connection was lent")


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db")
    database.close()
    database.close()
    with pytest.raises(StoreError, match=r"memory\.db.*closed"):
        database.read()
    with pytest.raises(StoreError, match=r"memory\.db.*closed"), database.write():
        pass


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path: .*is a folder"):
        Database(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path: .*nowhere.*does not exist"):
        Database(tmp_path / "nowhere" / "memory.db")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "name", ["a b.db", "50%.db", "what?.db", "hash#1.db", "grüße-日本.db", "file:odd.db", "-wal.db"]
)
def test_any_file_name_is_the_file_of_that_name(tmp_path: Path, name: str) -> None:
    with trivet.open(tmp_path / name, embedder="none") as engine:
        engine.add("hello", id="a")
    assert (tmp_path / name).is_file()
    assert {path.name for path in tmp_path.iterdir()} <= {name, f"{name}.index", f"{name}-wal", f"{name}-shm"}
    with trivet.open(tmp_path / name) as engine:
        assert engine.get("a") is not None


# --- places that cannot be written ------------------------------------------------------------------------------------


def filled(folder: Path) -> Path:
    folder.mkdir()
    with trivet.open(folder / "memory.db", embedder="hashing:64") as engine:
        engine.add([{"id": f"d{number}", "text": f"heron z{number}z"} for number in range(5)])
    return folder


def test_a_read_only_store_can_be_searched_and_not_changed(tmp_path: Path, sealed: Callable[[Path], Path]) -> None:
    place = sealed(filled(tmp_path / "data"))
    with trivet.open(place / "memory.db") as engine:
        assert [hit.id for hit in engine.search("z3z", k=1)] == ["d3"]
        assert len(engine.search("heron", where={"id": ["d1", "d2"]})) == 2
        assert engine.verify().ok
        for change in (
            lambda: engine.add("more"),
            lambda: engine.delete("d1"),
            lambda: engine.link("d1", "d2"),
            lambda: engine.update_settings(k=3),
            lambda: engine.collection("other", embedder="none"),
        ):
            with pytest.raises(StoreError, match=r"memory\.db.*read-only; nothing was written"):
                change()
        assert engine.stats().documents == 5


def test_a_read_only_store_shows_what_a_killed_writer_left_in_the_wal(
    tmp_path: Path, sealed: Callable[[Path], Path]
) -> None:
    folder = filled(tmp_path / "data")
    code = (
        "import os, signal, sys, trivet\n"
        "engine = trivet.open(sys.argv[1])\n"
        "engine.add('acknowledged z9z', id='late')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / "memory.db")], check=False)
    assert (folder / "memory.db-wal").stat().st_size > 0
    with trivet.open(sealed(folder) / "memory.db") as engine:
        assert [hit.id for hit in engine.search("z9z", k=1)] == ["late"]
        assert engine.stats().documents == 6


def test_a_read_only_store_of_an_older_schema_is_refused(
    tmp_path: Path, sealed: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sealed(filled(tmp_path / "data"))
    monkeypatch.setattr(database_module, "MIGRATIONS", (*database_module.MIGRATIONS, "CREATE TABLE later (x);"))
    with pytest.raises(StoreError, match="once where it can be written"):
        trivet.open(place / "memory.db")


def test_a_new_store_in_a_read_only_folder_is_refused(tmp_path: Path, sealed: Callable[[Path], Path]) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(StoreError, match=r"cannot create .*memory\.db.*read-only"):
        trivet.open(sealed(tmp_path / "data") / "memory.db", embedder="none")


# --- files that are not what they should be ---------------------------------------------------------------------------


def test_every_sqlite_error_is_explained(database: Database) -> None:
    with pytest.raises(StoreError, match=r"memory\.db.*no such table: nowhere") as caught, database.explained():
        database.read().execute("SELECT * FROM nowhere")
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)


def test_a_damaged_schema_is_told_though_sqlite_quotes_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        sql = (
            "UPDATE sqlite_master SET name = CAST(x'b5ff' AS TEXT), sql = 'CREATE INDEX of' WHERE name = 'links_target'"
        )
        connection.execute(sql)
        connection.commit()
    with pytest.raises(StoreError, match=r"memory\.db.*the file is damaged"):
        Database(path)


def test_the_file_vanishes_while_open(tmp_path: Path) -> None:
    """POSIX: the open file goes on; what matters is that nothing but a StoreError comes out."""
    folder = filled(tmp_path / "data")
    with trivet.open(folder / "memory.db") as engine:
        shutil.rmtree(folder)
        try:
            engine.add("after the end", id="x")
            assert [hit.id for hit in engine.search("end", k=1)] == ["x"]
        except StoreError:
            pass


class TestSnapshot:
    def test_it_sees_one_state_whatever_is_written_meanwhile(self, tmp_path: Path) -> None:
        database = Database(tmp_path / "m.db")
        count = "SELECT count(*) FROM counters"
        with database.snapshot():
            assert database.in_snapshot
            with database.write() as connection:
                connection.execute("INSERT INTO counters VALUES ('new', 0)")
            assert database.read().execute(count).fetchone() == (4,)
            assert database.newest().execute(count).fetchone() == (5,)
            with database.snapshot():  # within another: the same
                assert database.read().execute(count).fetchone() == (4,)
            assert database.in_snapshot
        assert not database.in_snapshot
        assert database.read().execute(count).fetchone() == (5,)
        database.close()

    def test_it_is_one_threads_own_and_ends_with_an_error(self, tmp_path: Path) -> None:
        database = Database(tmp_path / "m.db")
        seen: list[bool] = []
        with pytest.raises(ZeroDivisionError), database.snapshot():
            thread = threading.Thread(target=lambda: seen.append(database.in_snapshot))
            thread.start()
            thread.join()
            raise ZeroDivisionError
        assert seen == [False] and not database.in_snapshot
        with database.snapshot():
            assert database.read().execute("SELECT count(*) FROM counters").fetchone() == (4,)
        database.close()


def test_a_reader_that_cannot_write_sees_what_a_writer_beside_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite is told that nobody writes where it cannot keep a log; it would never look again by itself."""
    path = tmp_path / "m.db"
    with trivet.open(path, embedder="none") as memory:
        memory.add("one apple", id="a")
    with monkeypatch.context() as read_only:
        read_only.setattr(database_module, "_writable", lambda _: False)
        reader = trivet.open(path, embedder="none")
    assert len(reader.search("apple", alpha=0)) == 1
    for number in range(3):
        with trivet.open(path, embedder="none") as memory:
            memory.add(f"two pears {number}", id=f"b{number}")
            assert len(reader.search("pears", alpha=0)) == number + 1  # while the writer has it open
        assert len(reader.search("pears", alpha=0)) == number + 1  # and when its log is gone
    assert reader.get("b2") is not None and reader.stats().documents == 4
    reader.close()


def test_threads_that_read_one_after_the_other_share_a_lent_connection(database: Database) -> None:
    own, seen = database.read(), []

    def work() -> None:
        with database.lent():
            seen.append(database.read())
            with database.snapshot(), database.lent():  # a snapshot stays the same one
                seen.append(database.read())

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    database._close_dead_threads()  # a lent connection outlives the thread that opened it
    with database.lent():
        seen.append(database.read())
        assert counter(database) == 0
    assert seen[0] is seen[2] is seen[4]
    assert seen[1] is seen[3] is not seen[0]
    assert database.read() is own is not seen[0]


def test_threads_that_read_at_once_have_a_lent_connection_each(database: Database) -> None:
    together, seen = threading.Barrier(3), []

    def work() -> None:
        with database.lent():
            seen.append(database.read())
            together.wait(30)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 3
