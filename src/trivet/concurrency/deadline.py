"""The deadline of a request, known to everything that runs for it.

A surface sets it with ``limit``, or gives ``until`` an event that ends the request when it is set: nobody waits for the
result any more. The engine calls ``check`` between its steps, and the stores before and during their statements. It
belongs to a thread: work for another thread takes it along with ``carried``. A write checks it before it starts and
then runs to its end (``lifted``); so does work that every request needs, such as building an index.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from trivet.errors import DeadlineError

T = TypeVar("T")

#: SQLite instructions between two checks. A scan of a million rows (1,333 checks) takes 183.0 ms without them, 183.5 ms
#: with them and 184.4 ms with a limit set: CPU time, median of 60, SQLite 3 in memory, 2026-11-16.
INSTRUCTIONS = 10_000
OVER = "deadline: the time for this request is over; request less at a time, or raise the limit"


class _Current(threading.local):
    until: float | None = None  # by time.monotonic
    cancelled: threading.Event | None = None


_current = _Current()


def after(seconds: float) -> float:
    """Return the moment ``seconds`` from now, for ``until``."""
    return time.monotonic() + seconds


@contextmanager
def until(moment: float | None, cancelled: threading.Event | None = None) -> Iterator[None]:
    """End what runs in this thread by ``moment``, or once ``cancelled`` is set. Earlier limits that are set stay."""
    before = _current.until, _current.cancelled
    if moment is not None and (before[0] is None or moment <= before[0]):
        _current.until = moment
    _current.cancelled = before[1] or cancelled
    try:
        yield
    finally:
        _current.until, _current.cancelled = before


def limit(seconds: float) -> AbstractContextManager[None]:
    """End what runs in this thread within ``seconds``; a context manager."""
    return until(after(seconds))


@contextmanager
def lifted() -> Iterator[None]:
    """Run without a limit: for work that must be finished, or that is not for this request alone."""
    before = _current.until, _current.cancelled
    _current.until = _current.cancelled = None
    try:
        yield
    finally:
        _current.until, _current.cancelled = before


def left() -> float | None:
    """Return the seconds left: 0 after the deadline, None without one."""
    if passed():
        return 0.0
    return None if _current.until is None else max(0.0, _current.until - time.monotonic())


def within(seconds: float) -> float:
    """Return ``seconds``, or the seconds left where these are fewer."""
    rest = left()
    return seconds if rest is None else min(seconds, rest)


def passed() -> bool:
    """Return whether the deadline has passed, or the request was cancelled."""
    if _current.cancelled is not None and _current.cancelled.is_set():
        return True
    return _current.until is not None and time.monotonic() >= _current.until


def check() -> None:
    """Raise ``DeadlineError`` after the deadline."""
    if passed():
        raise DeadlineError(OVER)


def carried(work: Callable[..., T]) -> Callable[..., T]:
    """Return ``work`` bound to this thread's deadline, for another thread to call."""
    moment, cancelled = _current.until, _current.cancelled
    if moment is None and cancelled is None:
        return work

    def limited(*given: object) -> T:
        with until(moment, cancelled):
            check()
            return work(*given)

    return limited
