"""Find the processes that hold a lock on a file, and tell which of them are stopped.

Linux lists every lock in ``/proc/locks`` and the state of every process in ``/proc/PID/stat``. Other systems have
neither: there no holder is found, and messages speak of another process without naming it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
WORDS, LENGTH = 4, 60  # of a command in a message: enough for `python -m trivet mcp`


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock."""

    pid: int
    command: str  # empty where it cannot be read
    stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


@dataclass(frozen=True, slots=True)
class Lock:
    """One line of ``/proc/locks``: the bytes ``start`` to ``end`` (None: to the end of the file) of one file."""

    pid: int
    device: tuple[int, int]  # major, minor
    inode: int
    exclusive: bool
    start: int
    end: int | None

    def covers(self, byte: int) -> bool:
        return self.start <= byte and (self.end is None or byte <= self.end)


def parse(text: str) -> list[Lock]:
    """Read the granted locks of ``/proc/locks``; lines of waiters, of other namespaces and of other forms are left out.

    A line is ``1: POSIX  ADVISORY  WRITE 3961 fe:00:2146492 120 120``; a waiter has ``->`` after the number, and a
    process of another namespace has the number 0 (or -1 for a lock that belongs to no process).
    """
    found = []
    for line in text.splitlines():
        parts = line.split()
        if len(parts) != 8 or parts[1] not in ("POSIX", "FLOCK"):
            continue
        with contextlib.suppress(ValueError):
            major, minor, inode = parts[5].split(":")
            end = None if parts[7] == "EOF" else int(parts[7])
            device = (int(major, 16), int(minor, 16))
            lock = Lock(int(parts[4]), device, int(inode), parts[3] == "WRITE", int(parts[6]), end)
            if lock.pid > 0:
                found.append(lock)
    return found


def holders(path: Path, among: Iterable[int] | None = None, exclusive: bool = False) -> list[Holder]:
    """Return who holds a lock on the file, each process once; where given, only locks on one of these bytes, and only
    exclusive ones. Empty where nobody does or the system does not tell."""
    try:
        file = path.stat()
        locks = parse((PROC / "locks").read_text())
    except (OSError, ValueError):
        return []
    wanted = None if among is None else list(among)
    pids = {
        lock.pid
        for lock in locks
        if lock.inode == file.st_ino
        and (lock.exclusive or not exclusive)
        and (wanted is None or any(lock.covers(byte) for byte in wanted))
        and (lock.device == (os.major(file.st_dev), os.minor(file.st_dev)) or _has_open(lock.pid, file))
    }
    return [Holder(pid, command(pid), is_stopped(pid)) for pid in sorted(pids)]


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Some file systems (btrfs) tell ``stat`` another device than ``/proc/locks``; who holds a lock has the file
    open."""
    with contextlib.suppress(OSError):
        for handle in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(handle.stat(), file):
                    return True
    return False


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped by a signal or a debugger; False where the system does not tell."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])  # the name before it may hold anything


def command(pid: int) -> str:
    """Return the program and its first arguments, without folders, options and scripts; empty where unknown."""
    try:
        line = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return shortened([part.decode(errors="replace") for part in line.rstrip(b"\0").split(b"\0")])


def shortened(arguments: list[str]) -> str:
    """Return the words of a command that tell which one it is: an argument may be a text or an address with a password,
    so options are left out with all that follows, and of a path or an address only its end is shown."""
    shown: list[str] = []
    for argument in arguments[:WORDS]:
        if argument.startswith("--"):
            break
        shown.append(argument.rpartition("/")[2])
        if argument == "-c":
            break
    text = "".join(letter if letter.isprintable() else " " for letter in " ".join(shown))
    return f"{text[:LENGTH]} …" if len(shown) < len(arguments) or len(text) > LENGTH else text
