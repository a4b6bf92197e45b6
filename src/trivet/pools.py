"""Which threads work for an open store, and how do they end?

A close that only tells its threads to end leaves them behind for a moment, or for as long as they are at it. So it
waits: without a limit for work of our own, which ends when it finds the store closed, and for a few seconds where a
thread may hang in somebody else's endpoint.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PATIENCE = 5.0  # seconds that a close waits for threads which may hang


class Pool(ThreadPoolExecutor):
    """Threads for work that may hang: a model or a server is asked in them."""

    def __init__(self, workers: int, name: str) -> None:
        super().__init__(max_workers=workers, thread_name_prefix=name)

    def close(self) -> None:
        close((self,))


def close(pools: Iterable[Pool]) -> None:
    """End them together: what waits in them is dropped, what hangs is left to itself after ``PATIENCE``."""
    told, until = list(pools), time.monotonic() + PATIENCE
    for pool in told:
        pool.shutdown(wait=False, cancel_futures=True)
    for pool in told:
        # the executor can wait for ever or not at all; after the shutdown it starts no more
        _join(pool._threads, lambda: max(0.0, until - time.monotonic()))


class Background:
    """Threads that do one piece of work of our own each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._guard = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._ended = False

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do it in a thread that ``join`` waits for; after ``end`` it is left to whoever opens the store next."""
        with self._guard:  # two at once would each forget the other's thread
            if self._ended:
                return
            thread = threading.Thread(target=work, args=arguments, name=self._name)
            self._threads = [other for other in self._threads if other.is_alive()] + [thread]
            thread.start()

    def end(self) -> None:
        """Start no more."""
        with self._guard:
            self._ended = True

    def join(self) -> None:
        """Wait for what was started."""
        with self._guard:
            started = list(self._threads)
        _join(started, lambda: None)


def _join(threads: Iterable[threading.Thread], patience: Callable[[], float | None]) -> None:
    for thread in list(threads):
        if thread is not threading.current_thread():  # an engine that is forgotten may be closed by a thread of its own
            thread.join(patience())
