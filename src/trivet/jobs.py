"""Who does a short piece of work, and how is it waited for?

A pool's futures and its waking cost what a leg of half a millisecond would save by being asked there. A ``Job`` is
done once, by whoever takes it first; a ``Companion`` is a thread that waits for one job at a time. What it has not
begun when the lender is done with his own work, the lender does himself; who finds it busy does all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    __slots__ = ("_done", "_found", "_taken", "_work", "error")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._taken, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._found: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do it, unless somebody does or has done."""
        if not self._taken.acquire(blocking=False):
            return
        try:
            self._found.append(self._work())
        except BaseException as error:  # the one who asks for the result is told
            self.error = error
        finally:
            self._done.release()

    def cancel(self) -> None:
        """Who has not begun it does not begin it any more."""
        self._taken.acquire(blocking=False)

    def result(self, patience: float) -> T:
        """What came of it; ``TimeoutError`` where it is not done in so many seconds."""
        if not self._done.acquire(timeout=patience):
            raise TimeoutError
        self._done.release()
        if self.error is not None:
            raise self.error
        return self._found[0]


class Companion:
    """One thread, begun when it is first needed; ``close`` ends it."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._free, self._news = threading.Lock(), threading.Lock()
        self._news.acquire()
        self._job: Job[object] | None = None
        self._ended = False

    def lend(self, job: Job[T]) -> None:
        """Let it do this meanwhile, if it has nothing to do."""
        if not self._free.acquire(blocking=False):
            return
        if self._thread.ident is None:
            self._thread.start()
        self._job = job  # type: ignore[assignment]  # nobody looks at what comes of it but who lent it
        self._news.release()

    def close(self, patience: float) -> None:
        """It is never free again, and ends as soon as it has done what it is at."""
        self._ended = True
        if self._thread is threading.current_thread():  # an engine that is forgotten may be closed by what it does here
            return
        if self._free.acquire(timeout=patience) and self._thread.ident is not None:
            self._news.release()
            self._thread.join(patience)

    def _work(self) -> None:
        while True:
            self._news.acquire()
            job, self._job = self._job, None
            if job is None:
                return
            job.run()
            del job  # nobody's answer is kept while it waits
            self._free.release()
            if self._ended:
                return
