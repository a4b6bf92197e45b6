"""Work that a store does in a thread of its own, at most once at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

Start = Callable[..., None]  # runs a function with its arguments in a thread that ``close`` waits for


class BackgroundTask:
    """A function that runs in the background; starting it while it runs does nothing."""

    def __init__(self, start: Start, work: Callable[..., object], *ignored: type[Exception]) -> None:
        """``ignored`` errors end the work without a message: the store was closed, or the next call does the work."""
        self._start, self._work, self._ignored = start, work, ignored
        self._running = threading.Event()

    @property
    def running(self) -> bool:
        return self._running.is_set()

    def start(self, *arguments: Any) -> None:
        if not self._running.is_set():
            self._running.set()
            self._start(self._run, *arguments)

    def _run(self, *arguments: Any) -> None:
        try:
            with contextlib.suppress(*self._ignored):
                self._work(*arguments)
        finally:
            self._running.clear()
