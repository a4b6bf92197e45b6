"""A time limit that goes with a request into everything that works for it.

A surface sets it with ``limit``; the engine asks ``check`` between its steps, and the stores before and within their
statements. It belongs to a thread: work that is handed to another one takes it along with ``carried``. Writes check it
before they begin and are then done to the end (``lifted``), and so is work that every request needs, such as an index.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from trivet.errors import DeadlineError

T = TypeVar("T")

#: SQLite instructions between two looks at the clock. A scan of a million rows (1,333 looks) takes 183.0 ms without
#: them, 183.5 ms with them and 184.4 ms with a limit set: CPU time, median of 60, SQLite 3 in memory, 2026-11-16.
INSTRUCTIONS = 10_000
OVER = "deadline: the time for this request is over; ask for less at a time, or allow more"


class _Current(threading.local):
    until: float | None = None  # by time.monotonic


_current = _Current()


def after(seconds: float) -> float:
    """Return the moment that ends ``seconds`` from now, for ``until``."""
    return time.monotonic() + seconds


@contextmanager
def until(moment: float | None) -> Iterator[None]:
    """End what runs in this thread by ``moment``. A limit that is set already and ends sooner stays."""
    before = _current.until
    _current.until = before if moment is None or (before is not None and before < moment) else moment
    try:
        yield
    finally:
        _current.until = before


def limit(seconds: float) -> AbstractContextManager[None]:
    """End what runs in this thread within ``seconds``; a context manager."""
    return until(after(seconds))


@contextmanager
def lifted() -> Iterator[None]:
    """Run without a limit: for what must be done to its end, or is not done for this request alone."""
    before, _current.until = _current.until, None
    try:
        yield
    finally:
        _current.until = before


def left() -> float | None:
    """Return the seconds that are left, 0 where there are none, None where there is no limit."""
    return None if _current.until is None else max(0.0, _current.until - time.monotonic())


def within(seconds: float) -> float:
    """Return how long to wait for something that may take ``seconds``: no longer than is left."""
    rest = left()
    return seconds if rest is None else min(seconds, rest)


def passed() -> bool:
    """Is the time over?"""
    return _current.until is not None and time.monotonic() >= _current.until


def check() -> None:
    """Raise ``DeadlineError`` where the time is over."""
    if passed():
        raise DeadlineError(OVER)


def carried(work: Callable[..., T]) -> Callable[..., T]:
    """Return ``work`` with this thread's limit, for another thread to do."""
    moment = _current.until
    if moment is None:
        return work

    def limited(*given: object) -> T:
        with until(moment):
            check()
            return work(*given)

    return limited
