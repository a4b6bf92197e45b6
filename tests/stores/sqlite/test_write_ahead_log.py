"""A damaged write-ahead log is told apart from one that a killed process left."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import trivet
from trivet.errors import StoreError
from trivet.stores.sqlite import write_ahead_log

FRAME = 4096 + 24


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A store as a killed process leaves it: twelve commits of one document each, all in the log."""
    with trivet.open(tmp_path / "made.db", embedder="none") as engine:
        for number in range(12):
            engine.add(f"note {number}", id=f"d{number}")
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{tmp_path / 'made.db'}{suffix}", f"{tmp_path / 'left.db'}{suffix}")
    return tmp_path / "left.db"


def wal(store: Path) -> Path:
    return Path(f"{store}-wal")


def flip(store: Path, at: int) -> bytes:
    data = bytearray(wal(store).read_bytes())
    data[at] ^= 4
    wal(store).write_bytes(data)
    return bytes(data)


def commits(store: Path) -> list[int]:
    """The numbers of the frames that end a commit."""
    data = wal(store).read_bytes()
    heads = [data[at : at + 8] for at in range(32, len(data) - FRAME + 1, FRAME)]
    return [number for number, head in enumerate(heads, start=1) if struct.unpack(">I", head[4:8])[0]]


def ids(store: Path) -> list[str]:
    with trivet.open(store) as engine:
        return [document.id for document in engine.documents()]


def test_what_a_killed_process_left_is_opened_with_all_of_it(left: Path) -> None:
    assert len(commits(left)) > 12
    assert ids(left) == [f"d{number}" for number in range(12)]


@pytest.mark.parametrize("part", ["page", "checksum", "salt", "page number"])
def test_a_flipped_bit_before_a_finished_commit_is_refused_and_nothing_is_touched(left: Path, part: str) -> None:
    frame = commits(left)[-4] - 1
    at = 32 + (frame - 1) * FRAME + {"page": 1000, "checksum": 20, "salt": 9, "page number": 3}[part]
    before = flip(left, at)
    for _ in range(2):  # looking again says the same: nothing was changed by looking
        with pytest.raises(
            StoreError, match=r"left\.db.*write-ahead log is damaged.*copy .*restore a backup, or delete"
        ):
            trivet.open(left)
        assert wal(left).read_bytes() == before


@pytest.mark.parametrize("at", [0, 9, 17, 25], ids=["magic", "page size", "salt", "checksum"])
def test_a_damaged_header_would_lose_the_whole_log_and_is_refused(left: Path, at: int) -> None:
    flip(left, at)
    with pytest.raises(StoreError, match="write-ahead log is damaged"):
        trivet.open(left)


def test_without_the_log_it_opens_as_the_message_says(left: Path) -> None:
    flip(left, 32 + 40 * FRAME)
    with pytest.raises(StoreError, match="delete the -wal file"):
        trivet.open(left)
    wal(left).unlink()
    Path(f"{left}-shm").unlink()
    with trivet.open(left, embedder="none") as engine:
        engine.add("and it goes on", id="again")
        assert engine.verify().ok


def test_a_torn_last_commit_is_dropped_as_sqlite_does(left: Path) -> None:
    """A power cut looks like this: what was never acknowledged must not keep the store shut."""
    data = wal(left).read_bytes()
    wal(left).write_bytes(data[: 32 + (commits(left)[-1] - 1) * FRAME + 100])
    assert ids(left) == [f"d{number}" for number in range(11)]


def test_frames_of_an_earlier_round_are_not_taken_for_lost_ones(left: Path) -> None:
    """After a checkpoint the log begins anew over the old frames, which stay behind the new ones."""
    with sqlite3.connect(left) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'document'")
        connection.commit()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{left}{suffix}", f"{left.with_name('round.db')}{suffix}")
    connection.close()
    salt, last = write_ahead_log._finished(wal(left.with_name("round.db")))
    assert salt and last < 3
    assert len(ids(left.with_name("round.db"))) == 12


def test_a_log_that_another_process_is_writing_is_no_damage(left: Path) -> None:
    with trivet.open(left) as engine:
        engine.add("one more", id="d12")
        assert len(ids(left)) == 13
        engine.add("and another", id="d13")
    assert len(ids(left)) == 14


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_the_check_drops_no_lock_that_this_process_holds(left: Path) -> None:
    """A process that finds no lock takes itself for the first and truncates the -shm file under everybody's feet."""
    with trivet.open(left) as engine:
        engine.add("one more", id="d12")
        with trivet.open(left) as second:
            assert second.stats().documents == 13
        assert not can_lock(Path(f"{left}-shm"))
    kept = len(write_ahead_log._kept)
    assert ids(left) and len(write_ahead_log._kept) <= kept


def can_lock(path: Path) -> bool:
    """Whether another process can lock the byte that SQLite locks while it has the store open."""
    code = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0 or "BlockingIOError" in ran.stderr, ran.stderr
    return ran.returncode == 0


def test_a_store_that_was_cut_off_is_not_taken_for_a_new_one(left: Path) -> None:
    with trivet.open(left) as engine:
        engine.rebuild()
        engine.add([{"id": f"n{number}", "text": f"more {number}"} for number in range(1_200)])
    assert list(Path(f"{left}.index").glob("c*"))
    left.write_bytes(b"")
    for suffix in ("-wal", "-shm"):
        Path(f"{left}{suffix}").unlink(missing_ok=True)
    with pytest.raises(StoreError, match=r"left\.db.*is empty.*indexes.*restore a backup, or delete that folder"):
        trivet.open(left)
    shutil.rmtree(f"{left}.index")
    with trivet.open(left, embedder="none") as engine:
        assert engine.stats().documents == 0
