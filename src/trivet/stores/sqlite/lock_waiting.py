"""Wait for the lock of the database, and give up soon where the process that holds it is stopped."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trivet.errors import StoreBusyError
from trivet.stores.indexes.file_locks import Wait, stopped
from trivet.stores.indexes.lock_holders import Holder, holders

STOPPED_SECONDS = 3.0  # a stopped holder may be resumed within this time: a write has no other way
PAUSE = 0.01  # seconds; SQLite reports "locked" at once, without waiting, where two processes change the journal mode

# Bytes of SQLite's -shm file (walIndexLock in SQLite's file format): a process that has one of them exclusively keeps
# others from writing or from opening the store. 121 is the checkpoint, for which nobody waits.
_SHM_BYTES = (120, 122, 123, 124, 125, 126, 127, 128)


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
    """Return what ``attempt`` returns; try again while the store is locked, for so many seconds.

    The connection that ``attempt`` uses has a busy timeout of ``SLICE_SECONDS`` at most. sqlite3's own error is raised
    when the time is over, a ``StoreBusyError`` when a process that is in the way is stopped.
    """
    wait = wait or Wait(STOPPED_SECONDS)

    def look() -> None:
        holder = wait.stopped(in_the_way(path))
        if holder is not None:
            message = f"store: {str(path)!r} is locked by {stopped(holder)}"
            raise StoreBusyError(f"{message}, then try again; nothing was written")

    if wait.is_over:  # an earlier thread has waited: this one need not wait as long again
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
