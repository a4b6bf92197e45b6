"""A restored store returns its own timeline only, and a process that had the old one open gets an error."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError, StoreBusyError, StoreError, StoreReplacedError
from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import term_index, vector_index

LEGS: dict[str, dict[str, Any]] = {
    "lexical": {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}},
    "trigram": {"weights": {"trigram": 1.0, "lexical": 0.0, "dense": 0.0, "graph": 0.0}},
    "dense": {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}},
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index is on disk after a few documents."""
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 8)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 8)
    monkeypatch.setattr(graph_index, "TAIL_LIMIT", 8)


def notes(name: str, count: int) -> list[dict[str, Any]]:
    """Each has a word, and a name, that no other one has."""
    return [
        {"id": f"{name}{n}", "title": f"{name.title()} Note{n}", "text": f"{name}word{n} of {name.title()} Person{n}"}
        for n in range(count)
    ]


def by_hand(backup: Path, store: Path) -> None:
    """As people restore: the file where the store was, without what lies beside."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    shutil.copy(backup, store)


def by_command(backup: Path, store: Path) -> None:
    trivet.restore(backup, store)


def by_copying(backup: Path, store: Path) -> None:
    """A plain copy of the closed file, made outside of trivet: nothing in it says that it is one."""
    by_hand(backup.with_suffix(".plain"), store)


def to_disk(memory: Engine) -> None:
    """Write every index, however little is in it."""
    collection: Any = memory._collection
    memory.prepare()
    collection.graph.update()
    collection.graph.opened.open().settle()
    collection.vectors.index(collection.state().model).catch_up(collection.state().version)
    collection.vectors.index(collection.state().model).compact()


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A store whose indexes hold documents that its backups do not."""
    store = tmp_path / "m.db"
    with trivet.open(store, embedder="hashing:64") as memory:
        memory.add(notes("base", 20))
        memory.wait()
        memory.prepare("chunks")
    shutil.copy(store, tmp_path / "monday.plain")
    with trivet.open(store) as memory:
        memory.backup(tmp_path / "monday.db")
        memory.add(notes("lost", 60))
        memory.wait()
        memory.search("lostword3", **LEGS["trigram"])
        to_disk(memory)
    assert {path.name for path in Path(f"{store}.index").glob("c1/*")} >= {"words", "trigrams", "meaning-1", "graph"}
    return store


def check(memory: Engine, new: int) -> None:
    """What is there is found by every leg, and what is not by none."""
    for leg, how in LEGS.items():
        for name, count in (("base", 20), ("new", new)):
            for n in range(count):
                whole = f"{name.title()} Note{n}\n{name}word{n} of {name.title()} Person{n}"
                asked = whole if leg == "dense" else f"{name}word{n}"  # 64 dimensions tell whole texts apart
                found = [hit.id for hit in memory.search(asked, k=3, **how)]
                assert f"{name}{n}" in found, (leg, name, n, found)
        everything = {document.id for document in memory.documents()}
        for n in range(60):
            hits = memory.search(f"lostword{n} of Lost Person{n}", k=5, **how)
            assert {hit.id for hit in hits} <= everything
            assert not any("lost" in hit.text for hit in hits)
    # what lay on disk and is not needed yet is told until it is made anew
    assert all("another timeline" in problem for problem in memory.verify().problems)


FEW = ((by_hand, 1, True), (by_hand, 80, False), (by_command, 80, False), (by_copying, 1, False))
EVERY = itertools.product((by_hand, by_command, by_copying), (1, 13, 80), (True, False))


@pytest.mark.parametrize(
    ("restored", "batch", "first"),
    [pytest.param(*case, marks=() if case in FEW else pytest.mark.slow) for case in EVERY],
)
def test_words_vectors_trigrams_and_graph_are_of_the_restored_timeline(
    lost: Path, tmp_path: Path, restored: Any, batch: int, first: bool
) -> None:
    restored(tmp_path / "monday.db", lost)
    with trivet.open(lost) as memory:
        if first:
            assert not any("lost" in hit.id for hit in memory.search("lostword3 quokka"))
        documents = notes("new", 80)
        for start in range(0, 80, batch):
            memory.add(documents[start : start + batch])
        memory.wait()
        check(memory, 80)
        to_disk(memory)
    with trivet.open(lost) as memory:
        check(memory, 80)
        collection: Any = memory._collection
        found = collection.graph.mentions(collection.state().version)
        assert found.documents == 100


def test_vectors_after_a_restore_and_another_model(lost: Path, tmp_path: Path) -> None:
    with trivet.open(lost) as memory:
        memory.reembed("hashing:32")
        to_disk(memory)
    by_hand(tmp_path / "monday.db", lost)
    with trivet.open(lost) as memory:
        memory.add(notes("new", 80))
        memory.wait()
        memory.reembed("hashing:48")  # takes the number that the lost model had
        check(memory, 80)
    with trivet.open(lost) as memory:
        check(memory, 80)


def test_an_import_is_read_again_after_a_restore(tmp_path: Path) -> None:
    store, source = tmp_path / "m.db", tmp_path / "notes.jsonl"
    source.write_text('{"id": "a", "text": "one apple"}\n{"id": "b", "text": "two pears"}\n')
    with trivet.open(store, embedder="none") as memory:
        memory.add("something else", id="x")
        memory.backup(tmp_path / "monday.db")
        assert memory.import_(source).added == 2
    by_hand(tmp_path / "monday.db", store)
    with trivet.open(store) as memory:
        memory.patch("x", text="rewritten")  # the version that the lost import had
        assert memory.import_(source).added == 2


def test_a_restored_store_is_another_generation_and_so_is_its_backup(lost: Path, tmp_path: Path) -> None:
    def generation(path: Path) -> str:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return str(connection.execute("SELECT id FROM generation").fetchone()[0])

    before = generation(lost)
    by_command(tmp_path / "monday.db", lost)
    assert len({before, generation(lost), generation(tmp_path / "monday.db")}) == 3
    assert not Path(f"{lost}.index").exists()


# --- while it is open -------------------------------------------------------------------------------------------------


def test_a_restore_is_refused_while_this_process_has_the_store_open(lost: Path, tmp_path: Path) -> None:
    with (
        trivet.open(lost) as memory,
        pytest.raises(StoreBusyError, match="is open in this process; close it first"),
    ):
        by_command(tmp_path / "monday.db", lost)
    with trivet.open(lost) as memory:
        assert memory.stats().documents == 80


@contextlib.contextmanager
def another_process(store: Path) -> Iterator[subprocess.Popen[str]]:
    code = (
        "import sys, trivet\n"
        f"memory = trivet.open({str(store)!r}, embedder='none')\n"
        "print('open', flush=True)\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        print(eval(line), flush=True)\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[str], expression: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{expression}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.crash
def test_a_restore_is_refused_while_another_process_has_the_store_open_and_names_it(lost: Path, tmp_path: Path) -> None:
    before = lost.read_bytes()
    with another_process(lost) as other:
        with pytest.raises(StoreBusyError, match=rf"is in use by .*process {other.pid} ") as told:
            by_command(tmp_path / "monday.db", lost)
        assert "Nothing was changed" in str(told.value)
        assert ask(other, "len(memory.search('lostword3', alpha=0, k=1))") == "1"
    assert len(before) == len(lost.read_bytes())
    by_command(tmp_path / "monday.db", lost)
    with trivet.open(lost) as memory:
        check(memory, 0)


@pytest.mark.crash
@pytest.mark.parametrize("how", ["replaced", "copied over", "moved", "deleted", "log deleted"])
def test_a_file_that_is_replaced_while_it_is_open_is_told_and_no_write_is_acknowledged(
    lost: Path, tmp_path: Path, how: str
) -> None:
    with another_process(lost) as other:
        assert ask(other, "len(memory.add('before', id='before'))") == "1"
        if how == "replaced":
            (tmp_path / "monday.db").replace(lost)
        elif how == "copied over":
            shutil.copyfile(tmp_path / "monday.db", lost)  # the same file, with other bytes
            for suffix in ("-wal", "-shm"):
                Path(f"{lost}{suffix}").unlink()
        elif how == "moved":
            lost.rename(tmp_path / "moved.db")
        elif how == "deleted":
            lost.unlink()
        else:
            Path(f"{lost}-wal").unlink()
        for call in ("memory.add('after', id='after')", "memory.search('word')", "memory.get('before')"):
            told = ask(other, call)
            assert told.startswith("StoreReplacedError"), (how, call, told)
            assert "open it again" in told


def test_a_state_that_is_put_into_the_same_file_is_told(tmp_path: Path) -> None:
    """Through SQLite itself, so that neither the file nor its log is another one."""
    store = tmp_path / "m.db"
    with trivet.open(store, embedder="none") as memory:
        memory.add("one", id="a")
        memory.backup(tmp_path / "monday.db")
        for n in range(5):
            memory.add(f"lost {n}", id=f"lost{n}")
        assert len(memory.search("lost", alpha=0)) == 5
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "monday.db")) as given,
            contextlib.closing(sqlite3.connect(store)) as taken,
        ):
            given.backup(taken)
        with pytest.raises(StoreReplacedError, match="another state was put in its place"):
            memory.search("lost", alpha=0)


# --- what is asked for wrongly ----------------------------------------------------------------------------------------


def test_a_damaged_store_can_be_restored(lost: Path, tmp_path: Path) -> None:
    lost.write_bytes(b"rubbish" * 1000)
    by_command(tmp_path / "monday.db", lost)
    with trivet.open(lost) as memory:
        check(memory, 0)


def test_where_there_is_no_store_one_is_made(lost: Path, tmp_path: Path) -> None:
    found = trivet.restore(tmp_path / "monday.db", tmp_path / "new.db")
    assert (found.documents, found.collections, found.replaced) == (20, ("default",), False)


def test_a_link_stays_a_link(lost: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(lost)
    by_command(tmp_path / "monday.db", tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    with trivet.open(lost) as memory:
        check(memory, 0)


def test_a_damaged_backup_changes_nothing(lost: Path, tmp_path: Path) -> None:
    data = (tmp_path / "monday.db").read_bytes()
    (tmp_path / "flipped.db").write_bytes(data.replace(b"baseword7", b"baseword_"))
    (tmp_path / "text.db").write_text("no store")
    (tmp_path / "cut.db").write_bytes(data[: len(data) // 2])
    before = lost.read_bytes()
    for name in ("flipped.db", "text.db", "cut.db"):
        with pytest.raises(StoreError, match=r"damaged|not a backup"):
            by_command(tmp_path / name, lost)
    assert lost.read_bytes() == before
    assert not list(tmp_path.glob(".*part*"))
    with trivet.open(lost) as memory:
        assert memory.stats().documents == 80 and memory.verify().ok


def test_wrong_names_are_told(lost: Path, tmp_path: Path) -> None:
    for given, target, kind, told in (
        (tmp_path / "no.db", lost, NotFoundError, "there is no backup"),
        (tmp_path, lost, InputError, "is a folder"),
        (tmp_path / "monday.db", tmp_path, InputError, "is a folder"),
        (tmp_path / "monday.db", tmp_path / "no" / "m.db", InputError, "does not exist; create it first"),
        (lost, lost, InputError, "the same file"),
        ("postgresql://db/x", lost, InputError, "only the file of a store"),
    ):
        with pytest.raises(kind, match=told):
            trivet.restore(given, target)
