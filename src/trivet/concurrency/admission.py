"""Admission of searches: one runs at a time, and the others wait in the order in which they came.

Threads that compete for the interpreter get less done than one thread (docs/adr/0052): SQLite lets go of it at every
row, and each time a waiting thread is woken for nothing. A search that waits for its turn is woken once.

A turn orders searches and protects nothing. A search that waits for a model, a server or another thread gives it back
meanwhile (``aside``). One that keeps it for long, because it builds an index or calls a plugin, is not waited for.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterator

from trivet.concurrency import deadline

#: Seconds. If no turn begins for so long, the first in the queue runs beside the others. A search takes a few ms.
PATIENCE = 0.02


class Admission:
    """A queue of threads, of which so many run at once."""

    def __init__(self, places: int, patience: float = PATIENCE) -> None:
        self._places, self._patience = places, patience
        self.clear()

    def clear(self) -> None:
        """Forget all turns: those of the threads of a parent process, which a fork does not copy."""
        self._running = self._begun = 0  # turns now, more than places where one did not wait any longer; and ever
        self._waiting: deque[threading.Lock] = deque()  # of each thread in the queue, released when its turn begins
        self._guard, self._thread = threading.Lock(), threading.local()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn and hold it until the block ends. A thread that holds one already goes on with it."""
        if self._is_held:
            yield
            return
        self._take()
        try:
            yield
        finally:
            if self._is_held:  # not where ``aside`` was interrupted
                self._give_back()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Give this thread's turn back until the block ends, because it waits for something else."""
        if not self._is_held:
            yield
            return
        self._give_back()
        try:
            yield
        finally:
            with deadline.lifted():  # whatever follows checks the deadline
                self._take(first=True)

    @property
    def _is_held(self) -> bool:
        return getattr(self._thread, "is_held", False)

    def _take(self, first: bool = False) -> None:
        """Begin a turn as soon as there is one; ``first``: before those that have not begun their search."""
        with self._guard:
            if self._running < self._places:
                self._begin()
                self._thread.is_held = True
                return
            mine = threading.Lock()
            mine.acquire()
            (self._waiting.appendleft if first else self._waiting.append)(mine)
        try:
            self._wait(mine)
        except BaseException:  # the deadline has passed
            with self._guard:
                if mine in self._waiting:
                    self._waiting.remove(mine)
                else:  # its turn began at that moment
                    self._end()
            raise
        self._thread.is_held = True

    def _wait(self, mine: threading.Lock) -> None:
        begun = -1
        while not mine.acquire(timeout=deadline.within(self._patience)):
            deadline.check()
            with self._guard:
                if self._begun == begun and self._waiting[0] is mine:
                    self._waiting.popleft()
                    self._begin()
                    return
                begun = self._begun

    def _give_back(self) -> None:
        self._thread.is_held = False
        with self._guard:
            self._end()

    def _begin(self) -> None:
        self._running += 1
        self._begun += 1

    def _end(self) -> None:
        self._running -= 1
        if self._waiting and self._running < self._places:
            self._begin()
            self._waiting.popleft().release()


#: The turns of this process: it has one interpreter, however many stores are open.
SEARCHES = Admission(1)
os.register_at_fork(after_in_child=SEARCHES.clear)
