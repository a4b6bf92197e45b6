"""The holders of a lock are read from what Linux lists; on other systems none is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from trivet.stores.indexes import lock_holders
from trivet.stores.indexes.lock_holders import Holder, Lock, holders, is_stopped, parse, shortened

LINUX = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists its locks")
LOCKS = """\
1: FLOCK  ADVISORY  WRITE 3961 fe:00:2146493 0 EOF
2: POSIX  ADVISORY  WRITE 3961 fe:00:2146492 120 120
2: -> POSIX  ADVISORY  WRITE 4000 fe:00:2146492 120 120
3: POSIX  ADVISORY  READ 77 103:1f:12 124 128
4: POSIX  ADVISORY  WRITE 0 fe:00:2146492 121 121
5: OFDLCK ADVISORY  WRITE -1 fe:00:2146492 0 EOF
6: LEASE  ACTIVE    READ 5 fe:00:9 0 EOF
7: POSIX  ADVISORY  WRITE x fe:00:9 0 EOF
8: POSIX  ADVISORY  WRITE 5 fe:00 0 EOF
9: POSIX  ADVISORY
"""


def test_granted_locks_are_read_and_all_other_lines_are_left_out() -> None:
    assert parse(LOCKS) == [
        Lock(3961, (0xFE, 0), 2146493, True, 0, None),
        Lock(3961, (0xFE, 0), 2146492, True, 120, 120),
        Lock(77, (0x103, 0x1F), 12, False, 124, 128),
    ]
    assert parse("") == []


def test_a_lock_covers_its_bytes() -> None:
    whole, few = parse(LOCKS)[0], parse(LOCKS)[2]
    assert whole.covers(0)
    assert whole.covers(1 << 40)
    assert [byte for byte in range(120, 132) if few.covers(byte)] == [124, 125, 126, 127, 128]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/usr/bin/trivet", "mcp"], "trivet mcp"),
        (["/usr/bin/python3", "/usr/bin/trivet", "mcp", "--store", "my.db"], "python3 trivet mcp …"),
        (["python", "-m", "trivet", "search", "a", "text"], "python -m trivet search …"),
        (["python", "-c", "import secrets"], "python -c …"),
        (["trivet", "postgresql://me:secret@host/memory"], "trivet memory"),
        (["a\nb\x1b[31m"], "a b [31m"),
        (["x" * 100], "x" * 60 + " …"),
        ([""], ""),
    ],
)
def test_a_command_is_told_by_its_first_words(arguments: list[str], told: str) -> None:
    assert shortened(arguments) == told


def test_a_holder_without_a_command_is_told_by_its_number() -> None:
    assert str(Holder(12, "trivet mcp", False)) == "process 12 (trivet mcp)"
    assert str(Holder(12, "", False)) == "process 12"


def test_a_system_that_tells_nothing_has_no_holders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock:
        monkeypatch.setattr(lock_holders, "PROC", tmp_path / "nowhere")
        assert holders(tmp_path / "lock") == []
        assert holders(tmp_path / "missing") == []
        assert not is_stopped(os.getpid())
        assert lock_holders.command(os.getpid()) == ""


@LINUX
def test_a_holder_is_found_by_inode_where_the_device_has_two_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on btrfs: another file of the same inode number, which the process has not open, is not meant."""
    file, other = tmp_path / "lock", tmp_path / "other"
    file.touch()
    other.touch()
    proc = tmp_path / "proc"
    (proc / "77" / "fd").mkdir(parents=True)
    (proc / "77" / "fd" / "3").symlink_to(file)
    (proc / "77" / "stat").write_text("77 (odd) T name) T 1 1")
    (proc / "77" / "cmdline").write_bytes(b"trivet\0mcp\0")
    (proc / "locks").write_text(
        "".join(
            f"{line}: FLOCK  ADVISORY  WRITE 77 ff:ff:{path.stat().st_ino} 0 EOF\n"
            for line, path in enumerate((file, other))
        )
    )
    monkeypatch.setattr(lock_holders, "PROC", proc)
    assert holders(file) == [Holder(77, "trivet mcp", True)]
    assert holders(other) == []


HOLD = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@LINUX
@pytest.mark.crash
@pytest.mark.timeout(60)
def test_a_process_is_seen_to_hold_a_lock_and_to_be_stopped(tmp_path: Path, holding: subprocess.Popen[str]) -> None:
    name = f"{Path(sys.executable).name} -c …"
    assert holders(tmp_path / "lock") == [Holder(holding.pid, name, False)]
    assert holders(tmp_path / "lock", among=[120], exclusive=True) == [Holder(holding.pid, name, False)]
    holding.send_signal(signal.SIGSTOP)
    while not is_stopped(holding.pid):
        time.sleep(0.01)
    assert holders(tmp_path / "lock") == [Holder(holding.pid, name, True)]
    holding.send_signal(signal.SIGCONT)
    while is_stopped(holding.pid):
        time.sleep(0.01)
    holding.kill()
    holding.wait()
    assert holders(tmp_path / "lock") == []
