"""A second process that indexes terms while this one writes.

Storing documents takes one core and analysing them another, and Python uses one at a time. The second process reads
what is committed and updates the term index as any process may: no text and no term is sent between the two, and what
it has not done, a later search does.

It is a program of its own (``python -m trivet.stores.sqlite.indexer``), not a fork: it runs no script of the user a
second time and shares no thread, lock or connection. It ends with its writer, however that one ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess  # nosec
import sys
import threading
import time
from pathlib import Path
from typing import IO

from trivet.stores.indexes.file_locks import SLICE_SECONDS, Wait
from trivet.stores.indexes.lock_holders import Holder, is_stopped
from trivet.stores.sqlite.lock_waiting import STOPPED_SECONDS

END = b"end\n"  # sent by a writer that has finished; a closed pipe without it means that the writer is gone
WAIT = 600.0  # seconds to index the rest when the writer has finished


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Indexer:
    """The second process, seen from the first. ``OSError`` where it cannot be started."""

    def __init__(self, path: Path, collection: str) -> None:
        if not sys.executable:
            raise OSError("this Python does not know its own program")
        # The same modules as here, and nothing from the current folder.
        found = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
        self._process = subprocess.Popen(  # nosec
            [sys.executable, "-P", "-m", __name__, os.fspath(path), collection],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": found},
        )

    def end(self) -> None:
        """Say that everything is written."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):  # it has ended: ``finish`` reports why
                self._process.stdin.write(END)
                self._process.stdin.close()

    def finish(self) -> str:
        """Wait until everything written is indexed; return what went wrong, or an empty text."""
        self.end()
        self._process.stdin = None
        wait, until = Wait(STOPPED_SECONDS), time.monotonic() + WAIT
        while True:
            try:
                _, errors = self._process.communicate(timeout=SLICE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                pid = self._process.pid
                if wait.stopped([Holder(pid, "", is_stopped(pid))]):
                    self.stop()
                    return f"it was stopped (process {pid}), so it was ended"
                if time.monotonic() > until:
                    self.stop()
                    return f"it was not done after {WAIT:g} s"
        if self._process.returncode == 0:
            return ""
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        return last or f"it ended with {self._process.returncode}"

    def stop(self) -> None:
        """End the process now: what it has not committed is indexed by a later search."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


# --- in the second process --------------------------------------------------------------------------------------------


def follow(path: str, collection: str, orders: IO[bytes]) -> None:
    """Index what is written to the collection until ``orders`` has the end."""
    from trivet.stores.sqlite.store import SqliteStore

    ended = threading.Event()
    threading.Thread(target=_listen, args=(orders, ended), daemon=True).start()
    store = SqliteStore(path)
    try:
        store.collection(collection, {}, "{}").lexical.opened.open().index.follow(ended.is_set)
    finally:
        store.close()


def _listen(orders: IO[bytes], ended: threading.Event) -> None:
    if orders.readline() != END:
        os._exit(1)  # the writer is gone; nothing is lost: the records are not written here
    ended.set()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer handles it, and its end ends this process
    with contextlib.suppress(OSError):
        os.nice(1)  # the writer and searches go first
    follow(sys.argv[1], sys.argv[2], sys.stdin.buffer)


if __name__ == "__main__":
    main()
