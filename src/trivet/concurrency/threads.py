"""The threads of an open store, and how ``close`` ends them.

``close`` waits for its threads, so that none is left behind: without a limit for background work, which stops by itself
once the store is closed, and for a few seconds for calls that may hang in a model or a server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CLOSE_TIMEOUT = 5.0  # seconds that ``close`` waits for threads which may hang


class ThreadPool(ThreadPoolExecutor):
    """Threads for calls of a model or a server, which may hang."""

    def __init__(self, workers: int, name: str) -> None:
        super().__init__(max_workers=workers, thread_name_prefix=name)

    def close(self) -> None:
        """End this pool as ``close`` does."""
        close((self,))


def close(pools: Iterable[ThreadPool]) -> None:
    """End the pools together: drop waiting calls, and stop waiting for running ones after ``CLOSE_TIMEOUT``."""
    closing, ends = list(pools), time.monotonic() + CLOSE_TIMEOUT
    for pool in closing:
        pool.shutdown(wait=False, cancel_futures=True)
    for pool in closing:
        # the executor waits forever or not at all; after the shutdown it starts no more threads
        _join(pool._threads, lambda: max(0.0, ends - time.monotonic()))


class Background:
    """Threads that run one piece of trivet's own work each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._guard = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._ended = False

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call ``work`` in a new thread. After ``end`` do nothing: the next process that opens the store does it."""
        with self._guard:  # two calls at the same time would each lose the other's thread
            if self._ended:
                return
            thread = threading.Thread(target=work, args=arguments, name=self._name)
            self._threads = [other for other in self._threads if other.is_alive()] + [thread]
            thread.start()

    def end(self) -> None:
        """Start no more threads."""
        with self._guard:
            self._ended = True

    def join(self) -> None:
        """Wait for every started thread."""
        with self._guard:
            started = list(self._threads)
        _join(started, lambda: None)


def _join(threads: Iterable[threading.Thread], timeout: Callable[[], float | None]) -> None:
    for thread in list(threads):
        if thread is not threading.current_thread():  # a garbage-collected engine may be closed by one of its threads
            thread.join(timeout())
