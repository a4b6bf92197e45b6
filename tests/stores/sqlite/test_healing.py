"""The indexes may be deleted or damaged at any time, and everything is still found."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import trivet
from trivet.stores.sqlite import term_index, vector_index

from . import heal


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so low that a few documents lie in the index on disk and in a snapshot."""
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 4)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its indexes on disk, made once and copied."""
    folder = tmp_path_factory.mktemp("healing")
    run_heal(folder, "none")
    return folder / "whole"


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "store")
    return tmp_path / "store" / "memory.db"


def run_heal(folder: Path, damage: str) -> None:
    command = [sys.executable, str(Path(heal.__file__)), str(folder), damage]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    told = ran.stdout.strip().splitlines()
    assert ran.returncode == 0, f"at {told[-1:]}: {ran.stderr[-2000:]} (exit {ran.returncode})"
    assert told[-1] == "all healed"


def on_disk(store: Path) -> set[str]:
    return {path.name.split("-")[0] for path in store.with_name("memory.db.index").glob("c1/*")}


def test_the_store_under_test_has_its_indexes_on_disk(store: Path) -> None:
    assert {"words", "trigrams", "meaning"} <= on_disk(store)
    with trivet.open(store) as engine:
        engine.search("otter", weights={"trigram": 1})
        assert len(engine._collection.lexical.opened.open().index.tail) <= term_index.TAIL_LIMIT
        assert len(engine._collection.vectors.index(engine._collection.state().model)._base) == heal.COUNT


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["deleted", "emptied", "truncated", "overwritten"])
def test_a_damaged_file_is_noticed_at_opening_and_made_anew(whole: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(whole, tmp_path / "whole")
    run_heal(tmp_path, damage)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["garbled", "flipped"])
def test_wrong_bytes_in_a_file_of_the_right_size_are_healed_or_told_by_verify(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    shutil.copytree(whole, tmp_path / "whole")
    run_heal(tmp_path, damage)


def test_the_whole_folder_is_deleted_between_two_openings(store: Path) -> None:
    shutil.rmtree(f"{store}.index")
    with trivet.open(store) as engine:
        heal.check(engine)
        engine._collection.maintenance.update()
    assert {"words", "trigrams", "meaning"} <= on_disk(store)


def test_the_whole_folder_is_deleted_while_the_store_is_open(store: Path) -> None:
    with trivet.open(store) as engine:
        heal.check(engine)
        shutil.rmtree(f"{store}.index")
        heal.check(engine)
        for number in range(10):  # enough that the index on disk wants to grow
            engine.add(f"newcomer z{number}z", id=f"n{number}")
            assert [hit.id for hit in heal.ask(engine, f"z{number}z", "lexical")] == [f"n{number}"]
        heal.check(engine)
        engine._collection.maintenance.update()
        heal.check(engine)
    assert {"words", "trigrams", "meaning"} <= on_disk(store)
    with trivet.open(store) as engine:
        heal.check(engine)


def test_a_file_lies_where_the_folder_should_be(store: Path) -> None:
    shutil.rmtree(f"{store}.index")
    Path(f"{store}.index").write_text("not a folder")
    with trivet.open(store) as engine:
        heal.check(engine)
        engine.add("newcomer z1z", id="n1")
        assert [hit.id for hit in heal.ask(engine, "z1z", "lexical")] == ["n1"]
        engine._collection.maintenance.update()
        heal.check(engine)
    assert Path(f"{store}.index").read_text() == "not a folder"


def test_drafts_and_strangers_in_the_folder_do_no_harm(store: Path) -> None:
    folder = next(Path(f"{store}.index").glob("c1/meaning-*"))
    (folder / "draft-0123").mkdir()
    (folder / "draft-0123" / "vectors.npy").write_bytes(b"\x93NUMPY half a fi")
    (folder / "snapshot-9999999999999999-9999999999999999").mkdir()  # sorts before the good one, and has nothing in it
    (folder / "snapshot-note.txt").write_text("a file with such a name")
    (folder.parent / "words" / "stray.idx").write_bytes(b"stray")
    with trivet.open(store) as engine:
        heal.check(engine)
        for number in range(12):  # enough for a new snapshot
            engine.add(f"newcomer z{number}z", id=f"n{number}")
        engine._collection.maintenance.update()
        heal.check(engine)
    assert not (folder / "draft-0123").exists()
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1


def test_an_index_of_another_analyser_is_made_anew(store: Path) -> None:
    """English stems ``houses`` to ``hous`` and German does not: terms of the one are useless for the other."""
    with trivet.open(store) as engine:
        engine.add([{"id": f"h{number}", "text": f"houses stand here z{number}z"} for number in range(8)])
        engine._collection.maintenance.update()
        before = engine._collection.lexical.opened.open().index._identity
    with sqlite3.connect(store) as connection:
        config = json.loads(connection.execute("SELECT config FROM collections").fetchone()[0])
        connection.execute("UPDATE collections SET config = ?", (json.dumps({**config, "language": "none"}),))
    connection.close()
    with trivet.open(store) as engine:
        heal.check(engine)
        assert {hit.id for hit in engine.search("houses", k=20, alpha=0.0)} == {f"h{number}" for number in range(8)}
        assert len(engine.search("house", alpha=0.0)) == 0
        assert engine._collection.lexical.opened.open().index._identity != before


def test_the_store_is_replaced_by_a_new_one_beside_an_old_index(store: Path) -> None:
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        store.with_name(name).unlink(missing_ok=True)
    with trivet.open(store, embedder="hashing:64") as engine:
        for number in range(6):
            engine.add(f"entirely new z{number}z", id=f"n{number}")
        for number in range(6):
            assert [hit.id for hit in heal.ask(engine, f"z{number}z", "lexical")] == [f"n{number}"]
            assert heal.ask(engine, f"entirely new z{number}z", "dense")[0].id == f"n{number}"
        assert heal.ask(engine, "otter", "lexical") == []
        told = engine.verify().problems  # an index that nobody has asked since, and that was not used
        assert told and all("another timeline" in problem for problem in told)
        engine.rebuild()
        assert engine.verify().ok


def test_the_store_is_replaced_by_an_older_backup_beside_a_newer_index(store: Path, tmp_path: Path) -> None:
    shutil.copy(store, tmp_path / "backup.db")
    with trivet.open(store) as engine:
        engine.add([{"id": f"late{number}", "text": f"written after the backup z{number}z"} for number in range(12)])
        engine.delete([f"d{number}" for number in range(6)])
        engine.wait()
        engine._collection.maintenance.update()
    for name in ("memory.db-wal", "memory.db-shm"):
        store.with_name(name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", store)
    with trivet.open(store) as engine:
        for number in range(3):
            engine.add(f"after the restore y{number}y", id=f"n{number}")
        heal.check(engine)
        for number in range(3):
            assert [hit.id for hit in heal.ask(engine, f"y{number}y", "lexical")] == [f"n{number}"]
            assert heal.ask(engine, f"after the restore y{number}y", "dense")[0].id == f"n{number}"
        assert heal.ask(engine, "z1z", "lexical") == []
