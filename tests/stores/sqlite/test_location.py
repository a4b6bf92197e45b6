"""A store has one place on disk, whatever link leads to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import trivet
from trivet.engine import is_store
from trivet.engine.keys import Keys
from trivet.errors import InputError, StoreError
from trivet.stores.sqlite.location import resolved


@pytest.fixture
def real(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "memory.db"
    with trivet.open(path, embedder="hashing:64") as engine:
        engine.add([{"id": f"d{number}", "text": f"heron z{number}z"} for number in range(1_100)])
    return path


@pytest.fixture
def link(real: Path, tmp_path: Path) -> Path:
    (tmp_path / "second").symlink_to(real)
    (tmp_path / "link.db").symlink_to("second")
    return tmp_path / "link.db"


def test_everything_lies_beside_the_real_file(real: Path, link: Path, tmp_path: Path) -> None:
    with trivet.open(link) as engine:
        assert engine.path == str(real)
        engine.add("after z9999z", id="late")
        assert [hit.id for hit in engine.search("z9999z", k=1)] == ["late"]
        found = engine.stats()
        assert found.bytes_index > 0
        for target in (link, real, tmp_path / "data" / "memory.db-wal"):
            with pytest.raises(InputError, match=r"^backup: .*belongs to the store itself"):
                engine.backup(target)
    with Keys(link) as keys:
        assert not keys.any()
    assert is_store(link)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "second", "link.db"}
    assert {path.name for path in real.parent.iterdir()} == {"memory.db", "memory.db.index"}
    with trivet.open(real) as engine:
        assert engine.get("late") is not None


def test_a_damaged_log_is_seen_through_a_link(real: Path, link: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with trivet.open(real, embedder="none") as engine:
        for number in range(4):
            engine.add(f"more {number}", id=f"m{number}")
        shutil.copytree(real.parent, saved)  # as a killed process would leave it
    (saved / "memory.db-shm").unlink()
    log = bytearray((saved / "memory.db-wal").read_bytes())
    log[32 + 24 + 100] ^= 1  # a byte of the first frame's page
    (saved / "memory.db-wal").write_bytes(log)
    shutil.rmtree(real.parent)
    saved.rename(real.parent)
    with pytest.raises(StoreError, match="the write-ahead log is damaged"):
        trivet.open(link)


def test_a_link_to_nothing_makes_the_file_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "data" / "memory.db")
    assert not is_store(tmp_path / "link.db")
    with trivet.open(tmp_path / "link.db", embedder="none") as engine:
        engine.add("a heron", id="a")
    assert (tmp_path / "link.db").is_symlink()
    assert (tmp_path / "data" / "memory.db").stat().st_size > 0


def test_a_link_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere" / "memory.db")
    with pytest.raises(InputError, match=r"path: the folder '.*nowhere' does not exist; create it first"):
        trivet.open(tmp_path / "link.db", embedder="none")


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    for path in (tmp_path / "a.db", tmp_path / "b.db" / "memory.db"):
        told = r"^path: '.*' is a symbolic link that leads back to itself"
        with pytest.raises(InputError, match=told):
            trivet.open(path, embedder="none")
        with pytest.raises(InputError, match=told):
            is_store(path)
        with pytest.raises(InputError, match=told):
            Keys(path)


def test_a_name_that_no_file_can_have_is_left_to_the_store(tmp_path: Path) -> None:
    assert resolved(tmp_path / "a\0b") == tmp_path / "a\0b"
    assert resolved(tmp_path / "a\ud800b").name == "a\ud800b"
    assert resolved("memory.db") == Path.cwd() / "memory.db"
