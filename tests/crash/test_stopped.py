"""A process that is stopped while it holds a lock makes nobody wait long: the others name it, or go on without it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trivet
from trivet.errors import EmbedderError, StoreError
from trivet.stores.indexes.lock_holders import is_stopped
from trivet.stores.sqlite import term_index
from trivet.stores.sqlite.database import Database
from trivet.stores.sqlite.indexer import Indexer

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(60),
    pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists its locks"),
]

WRITING = """
import sys, trivet
from trivet.stores.sqlite import document_writes
with trivet.open(sys.argv[1]) as engine:
    with engine._collection.rows.changing() as connection:
        document_writes.set_importance(connection, engine._collection.rows.cid, "d0", 0.9)
        print("held", flush=True)
        sys.stdin.readline()
print("done", flush=True)
"""

OPENING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode=EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
"""

INDEXING = """
import sys, trivet
from trivet.stores.sqlite import term_index
def held(self, *given, write=term_index.TermIndex._write_missing, **named):
    print("held", flush=True)
    sys.stdin.readline()
    return write(self, *given, **named)
term_index.TermIndex._write_missing = held
term_index.TAIL_LIMIT = 0
with trivet.open(sys.argv[1]) as engine:
    engine._collection.maintenance.update_lexical()
print("done", flush=True)
"""

EMBEDDING = """
import sys
from trivet.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.collection("default", {}, "{}").vectors.embedding_lock() as mine:
    assert mine
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def stopped(script: str, store: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that was stopped while it holds what its script holds; it goes on with a line on its stdin."""
    command = [sys.executable, "-c", script, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            process.send_signal(signal.SIGSTOP)
            while not is_stopped(process.pid):
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


def resumed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGCONT)
    told, _ = process.communicate("go on\n")
    assert told == "done\n"
    assert process.returncode == 0


def command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trivet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def importance(engine: trivet.Engine) -> float:
    document = engine.get("d0")
    assert document is not None
    return document.importance


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="hashing:64") as engine:
        engine.add([{"id": f"d{number}", "text": f"heron z{number}z"} for number in range(5)])
    return path


def test_a_write_names_the_stopped_process_and_a_search_answers(store: Path) -> None:
    with trivet.open(store) as engine, stopped(WRITING, store) as process:
        told = rf"memory\.db' is locked by process {process.pid} \(.*python.* -c …\), which is stopped; "
        told += rf"resume it \(kill -CONT {process.pid}\) or end it, then try again; nothing was written"
        with pytest.raises(StoreError, match=told):
            engine.add("after", id="late")
        assert [hit.id for hit in engine.search("z3z", k=1)] == ["d3"]
        with trivet.open(store) as another:
            assert [hit.id for hit in another.search("z3z", k=1)] == ["d3"]
        resumed(process)
        engine.add("after", id="late")
        assert engine.get("late") is not None
        assert importance(engine) == 0.9
        assert engine.verify().ok


def test_a_stopped_process_that_is_killed_leaves_nothing_half_written(store: Path) -> None:
    with trivet.open(store) as engine:
        with stopped(WRITING, store), pytest.raises(StoreError, match="which is stopped"):
            engine.add("after", id="late")
        engine.add("after", id="late")
        assert engine.stats().documents == 6
        assert importance(engine) == 0.5
        assert engine.verify().ok


def refused(engine: trivet.Engine) -> None:
    with pytest.raises(StoreError, match="which is stopped"):
        engine.add("after")


def test_many_threads_are_refused_one_after_the_other(store: Path) -> None:
    """Only the first waits for the process to be resumed: 25 threads that waited so long each would take 75 s."""
    with trivet.open(store) as engine, stopped(WRITING, store), ThreadPoolExecutor(25) as pool:
        assert len(list(pool.map(refused, [engine] * 25))) == 25


def test_closing_does_not_wait_for_a_stopped_process(store: Path) -> None:
    engine = trivet.open(store)
    database: Database = engine._store.database
    with stopped(WRITING, store):
        thread = threading.Thread(target=refused, args=(engine,))
        thread.start()
        while database._write_lock.acquire(blocking=False):  # until the thread waits in there
            database._write_lock.release()
            time.sleep(0.01)
        engine.close()
        thread.join(60)
        assert not thread.is_alive()


def test_opening_names_the_stopped_process_that_has_the_file_to_itself(store: Path) -> None:
    with (
        stopped(OPENING, store) as process,
        pytest.raises(StoreError, match=rf"is locked by process {process.pid} .*which is stopped"),
    ):
        trivet.open(store)
    with trivet.open(store) as engine:
        assert engine.stats().documents == 5


def test_a_live_process_is_waited_for_and_then_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.stores.sqlite.database.BUSY_SECONDS", 4.0)  # longer than a stopped one is given
    database = Database(store)
    with stopped(WRITING, store) as process:
        process.send_signal(signal.SIGCONT)
        told = rf"memory\.db': process {process.pid} \(.*\) kept it locked for 4 s; try again"
        with pytest.raises(StoreError, match=told), database.write():
            pass
        resumed(process)
        with database.write():
            pass
    database.close()


def test_commands_end_with_one_line(store: Path) -> None:
    place = ("--store", str(store))
    with stopped(WRITING, store) as process:
        added = command_line("add", *place, "after")
        assert (added.returncode, added.stdout) == (1, "")
        assert len(added.stderr.splitlines()) == 1, added.stderr
        assert f"process {process.pid} (" in added.stderr
        found = command_line("search", *place, "z3z", "--json")
        assert found.returncode == 0, found.stderr
        assert "z3z" in found.stdout


# --- the lock of an index ---------------------------------------------------------------------------------------------


def test_a_search_goes_on_without_the_lock_of_the_words(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stopped(INDEXING, store) as process:
        monkeypatch.setattr(term_index, "TAIL_LIMIT", 0)
        monkeypatch.setattr(term_index, "MANY", 0)  # one that would wait for whoever is indexing
        with trivet.open(store) as engine:
            assert [hit.id for hit in engine.search("z3z", k=1)] == ["d3"]
            engine.add("after z9z", id="late")
            assert [hit.id for hit in engine.search("z9z", k=1)] == ["late"]
            for build in (engine.rebuild, engine.prepare):
                with pytest.raises(StoreError, match=rf"index: .*words\.lock' is locked by process {process.pid} "):
                    build()
        resumed(process)
    with trivet.open(store) as engine:
        engine.rebuild()
        assert [hit.id for hit in engine.search("z9z", k=1)] == ["late"]
        assert engine.verify().ok


def test_the_command_that_needs_the_lock_of_an_index_names_the_process(store: Path) -> None:
    with stopped(INDEXING, store) as process:
        told = command_line("rebuild", "--store", str(store))
        assert (told.returncode, told.stdout) == (1, "")
        assert len(told.stderr.splitlines()) == 1, told.stderr
        assert f"process {process.pid} (" in told.stderr
    assert command_line("rebuild", "--store", str(store)).returncode == 0


def test_who_waits_for_the_vectors_is_told_which_process_is_stopped(store: Path) -> None:
    with stopped(EMBEDDING, store) as process, trivet.open(store) as engine:
        with engine._collection.rows.changing() as connection:
            connection.execute("DELETE FROM vectors")
            connection.execute("UPDATE models SET vectors = 0")
        with pytest.raises(EmbedderError, match=rf"not embedded: .* locked by process {process.pid} "):
            engine.wait()


def test_a_stopped_indexer_is_ended(store: Path) -> None:
    indexer = Indexer(store, "default")
    indexer._process.send_signal(signal.SIGSTOP)
    assert indexer.finish() == f"it was stopped (process {indexer._process.pid}), so it was ended"
    assert indexer._process.returncode == -signal.SIGKILL
