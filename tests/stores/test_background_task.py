"""A background task runs once at a time, and can be started again when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trivet.errors import StoreError
from trivet.stores.background_task import BackgroundTask


def test_it_is_not_started_while_it_runs() -> None:
    started: list[Callable[[], None]] = []
    done: list[int] = []
    task = BackgroundTask(lambda work, *given: started.append(lambda: work(*given)), done.append)
    task.start(1)
    task.start(2)
    assert task.running and len(started) == 1
    started[0]()
    assert done == [1] and not task.running
    task.start(3)
    started[1]()
    assert done == [1, 3]


def test_it_ends_with_an_ignored_error_and_raises_others() -> None:
    def run(work: Callable[..., None], *given: Any) -> None:
        work(*given)

    def fail(error: Exception) -> None:
        raise error

    task = BackgroundTask(run, fail, StoreError)
    task.start(StoreError("closed"))
    assert not task.running
    with pytest.raises(ZeroDivisionError):
        task.start(ZeroDivisionError())
    assert not task.running
