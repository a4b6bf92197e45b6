"""Locks of index files: wait for one that another process holds, and give up soon where that process is stopped.

A running process releases a lock sooner or later, so the others wait for minutes. A stopped one (SIGSTOP, a debugger)
may never continue. So the wait looks every second at who holds the lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from trivet.errors import StoreError
from trivet.stores.indexes.lock_holders import Holder, holders

# Seconds between two looks at the holder. Reading /proc/locks stops every lock operation of the machine for a moment,
# so a process that waits less than this, as among many writers, does not look.
SLICE_SECONDS = 1.0
INDEX_SECONDS = 1.0  # a stopped holder of an index may be resumed within this time: a search works without the lock


class HolderStoppedError(Timeout):
    """An index lock is held by a process that is stopped."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(path)
        self.holder = holder

    def __str__(self) -> str:
        return f"{self.lock_file!r} is locked by {stopped(self.holder)}"


class Wait:
    """How long each process that holds the lock was seen stopped, over many looks.

    Only time spent waiting counts: not the time that the machine was asleep, or this process stopped too.
    """

    def __init__(self, seconds: float) -> None:
        self._limit = seconds
        self._stopped: dict[int, float] = {}  # pid → seconds
        self._looked = time.monotonic()

    def stopped(self, found: Iterable[Holder]) -> Holder | None:
        """Note who is stopped; return a process that was stopped for longer than the time limit."""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, SLICE_SECONDS), now
        halted = [holder for holder in found if holder.stopped]
        self._stopped = {holder.pid: self._stopped.get(holder.pid, 0.0) + passed for holder in halted}
        return next((holder for holder in halted if self._stopped[holder.pid] >= self._limit), None)

    @property
    def is_over(self) -> bool:
        """Tell whether the last look found a process that was stopped for too long."""
        return any(seconds >= self._limit for seconds in self._stopped.values())

    def forget(self) -> None:
        """Start again: the lock was granted."""
        self._stopped = {}


def acquire(path: str | Path, seconds: float) -> AcquireReturnProxy[Any]:
    """Take the lock of an index within so many seconds; a ``with`` block releases it.

    ``Timeout`` when another process keeps it, ``HolderStoppedError`` (which is one) when that process is stopped.
    """
    lock, wait = FileLock(path), Wait(INDEX_SECONDS)
    until = time.monotonic() + seconds
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            return lock.acquire(timeout=min(left, SLICE_SECONDS))
        except Timeout:
            if not left:
                raise
            holder = wait.stopped(holders(Path(path)))
            if holder is not None:
                raise HolderStoppedError(str(path), holder) from None


def check_not_stopped(locks: Iterable[Path]) -> None:
    """Raise ``StoreError`` while a stopped process holds one of these locks."""
    for path in locks:
        for holder in holders(path):
            if holder.stopped:
                raise StoreError(f"index: {str(path)!r} is locked by {stopped(holder)}, then try again")


def stopped(holder: Holder) -> str:
    return f"{holder}, which is stopped; resume it (kill -CONT {holder.pid}) or end it"


def named(found: Sequence[Holder]) -> str:
    """Name the processes in a message."""
    return " and ".join(map(str, found)) or "other processes"
