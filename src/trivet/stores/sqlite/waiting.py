"""Wait for a lock that another process holds, and give up soon where that process is stopped.

A live process lets go of a lock sooner or later, so the others wait for minutes. One that is stopped (SIGSTOP, a
debugger) may never go on. Both waits therefore look every second at who holds the lock.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from trivet.errors import StoreBusyError, StoreError
from trivet.stores.sqlite.lock_holders import Holder, holders

# Between two looks at the holder; SQLite's own back-off (1 to 100 ms) goes on within. Reading /proc/locks stops every
# lock operation of the machine for a moment, so who waits less than this, as in a crowd of writers, does not look.
SLICE_SECONDS = 1.0
STOPPED_SECONDS = 3.0  # a stopped holder of the store may be resumed for so long: a write has no other way
INDEX_SECONDS = 1.0  # and one of an index: a search goes on without the lock
PAUSE = 0.01  # seconds; SQLite says "locked" at once, without waiting, where two processes change the journal's mode

# Bytes of SQLite's -shm file (walIndexLock in SQLite's file format): whoever has one of them exclusively keeps others
# from writing or from opening the store. 121 is the checkpoint, for which nobody waits.
_SHM_BYTES = (120, 122, 123, 124, 125, 126, 127, 128)


class HolderStoppedError(Timeout):
    """An index lock is held by a process that is stopped."""

    def __init__(self, path: str, holder: Holder) -> None:
        super().__init__(path)
        self.holder = holder

    def __str__(self) -> str:
        return f"{self.lock_file!r} is locked by {stopped(self.holder)}"


class Wait:
    """How long each process that is in the way was seen stopped, over many looks.

    Only time spent waiting counts: a machine that was asleep, or a waiter that was stopped too, has waited no longer.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._stopped: dict[int, float] = {}  # pid → seconds
        self._looked = time.monotonic()

    def stopped(self, found: Iterable[Holder]) -> Holder | None:
        """Take a look; return the process that was stopped for longer than the patience lasts."""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, SLICE_SECONDS), now
        halted = [holder for holder in found if holder.stopped]
        self._stopped = {holder.pid: self._stopped.get(holder.pid, 0.0) + passed for holder in halted}
        return next((holder for holder in halted if self._stopped[holder.pid] >= self._patience), None)

    @property
    def is_over(self) -> bool:
        """Tell whether the last look found a process that was stopped for too long."""
        return any(seconds >= self._patience for seconds in self._stopped.values())

    def forget(self) -> None:
        """Begin anew: the lock was granted."""
        self._stopped = {}


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether SQLite gave up because of another's lock (SQLITE_BUSY and its kinds, SQLITE_PROTOCOL)."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)


def store_holders(path: Path) -> list[Holder]:
    """Return the processes that keep others from writing or opening the store."""
    beside = Path(f"{path}-shm")
    found = [*holders(beside, _SHM_BYTES, exclusive=True), *holders(path, exclusive=True)]
    return list({holder.pid: holder for holder in found}.values())


def granted(
    path: Path,
    attempt: Callable[[], Any],
    seconds: float,
    wait: Wait | None = None,
    in_the_way: Callable[[Path], list[Holder]] = store_holders,
) -> Any:
    """Return what ``attempt`` returns, tried again while the store is locked, for so many seconds.

    The connection that ``attempt`` uses has a busy timeout of ``SLICE_SECONDS`` at most. sqlite3's own error is raised
    when the time is over, a ``StoreBusyError`` when a process that is in the way is stopped.
    """
    wait = wait or Wait(STOPPED_SECONDS)

    def look() -> None:
        holder = wait.stopped(in_the_way(path))
        if holder is not None:
            told = f"store: {str(path)!r} is locked by {stopped(holder)}"
            raise StoreBusyError(f"{told}, then try again; nothing was written")

    if wait.is_over:  # for those before; a thread behind them need not wait as long again
        look()
    until = time.monotonic() + seconds
    while True:
        try:
            answer = attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= until:
                raise
            look()
            time.sleep(PAUSE)
        else:
            wait.forget()
            return answer


def acquire(path: str | Path, seconds: float) -> AcquireReturnProxy[Any]:
    """Take the lock of an index within so many seconds; the result lets go of it at the end of a ``with`` block.

    ``Timeout`` when another process keeps it, ``HolderStoppedError`` (which is one) as soon as that process is stopped.
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
    """Refuse what needs these index locks while a stopped process holds one of them."""
    for path in locks:
        for holder in holders(path):
            if holder.stopped:
                raise StoreError(f"index: {str(path)!r} is locked by {stopped(holder)}, then try again")


def stopped(holder: Holder) -> str:
    return f"{holder}, which is stopped; resume it (kill -CONT {holder.pid}) or end it"


def named(found: Sequence[Holder]) -> str:
    """Name the processes in a message."""
    return " and ".join(map(str, found)) or "other processes"
