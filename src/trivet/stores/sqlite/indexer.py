"""Who indexes words while this process goes on writing?

A second process. To check and store documents is one core's work, to analyse them another's, and Python does one thing
at a time. It is told a store and a collection, reads from the truth what is committed there and advances the index of
words as any process may: no text and no term travels between the two, and whatever it has not done, somebody else does.

It is a program of its own (``python -m trivet.stores.sqlite.indexer``), not a copy of this process: it runs nobody's
script a second time and shares no thread, lock or connection. It ends with its writer, however that one ends.
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

from trivet.stores.sqlite.lock_holders import Holder, is_stopped
from trivet.stores.sqlite.waiting import SLICE_SECONDS, STOPPED_SECONDS, Wait

END = b"end\n"  # said by a writer that has ended well; silence is one that is gone
WAIT = 600.0  # seconds for what is left when the writer has ended


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Indexer:
    """The second process, seen from the first. ``OSError``: it cannot be started."""

    def __init__(self, path: Path, collection: str) -> None:
        if not sys.executable:
            raise OSError("this Python does not know its own program")
        # The same modules as here, wherever they were found, and nothing from the folder it happens to run in.
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
            with contextlib.suppress(OSError):  # it has ended before: ``finish`` tells how
                self._process.stdin.write(END)
                self._process.stdin.close()

    def finish(self) -> str:
        """Say so, and wait until everything that is stored is in the index; what went wrong, or nothing."""
        self.end()
        self._process.stdin = None
        wait, until = Wait(STOPPED_SECONDS), time.monotonic() + WAIT
        while True:
            try:
                _, told = self._process.communicate(timeout=SLICE_SECONDS)
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
        said = told.decode(errors="replace").strip().rpartition("\n")[2]
        return said or f"it ended with {self._process.returncode}"

    def stop(self) -> None:
        """End it at once: what it has not committed is read from the truth by the next who looks."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


# --- in the second process --------------------------------------------------------------------------------------------


def follow(path: str, collection: str, orders: IO[bytes]) -> None:
    """Index what is written to the collection until ``orders`` say that it has ended."""
    from trivet.stores.sqlite.store import SqliteStore

    ended = threading.Event()
    threading.Thread(target=_listen, args=(orders, ended), daemon=True).start()
    store = SqliteStore(path)
    try:
        store.shelf(collection, {}, "{}").words().follow(ended.is_set)
    finally:
        store.close()


def _listen(orders: IO[bytes], ended: threading.Event) -> None:
    if orders.readline() != END:
        os._exit(1)  # the writer is gone; nothing is lost, for the truth is not ours
    ended.set()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer's to answer: its end is ours
    with contextlib.suppress(OSError):
        os.nice(1)  # who writes and who searches go first
    follow(sys.argv[1], sys.argv[2], sys.stdin.buffer)


if __name__ == "__main__":
    main()
