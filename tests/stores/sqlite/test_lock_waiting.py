"""A wait for a lock ends when it is granted, when the time is over, or when a stopped process is in the way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from trivet.errors import StoreError
from trivet.stores.indexes.file_locks import Wait
from trivet.stores.indexes.lock_holders import Holder
from trivet.stores.sqlite import lock_waiting
from trivet.stores.sqlite.lock_waiting import granted

STOPPED, LIVE = Holder(12, "trivet mcp", True), Holder(13, "", False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in its only item."""
    now = [0.0]
    monkeypatch.setattr(lock_waiting.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(lock_waiting.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def test_what_is_locked_is_tried_until_it_is_granted(tmp_path: Path, clock: list[float]) -> None:
    answers: list[sqlite3.OperationalError | str] = [busy(), busy(), "granted"]

    def attempt() -> str:
        answer = answers.pop(0)
        if isinstance(answer, sqlite3.OperationalError):
            raise answer
        return answer

    assert granted(tmp_path, attempt, 10.0, in_the_way=lambda _: [LIVE]) == "granted"


@pytest.mark.parametrize(
    ("holder", "error", "after"), [(LIVE, sqlite3.OperationalError, 10.0), (STOPPED, StoreError, 3.0)]
)
def test_a_live_process_is_waited_for_longer_than_a_stopped_one(
    tmp_path: Path, clock: list[float], holder: Holder, error: type[Exception], after: float
) -> None:
    def attempt() -> None:
        clock[0] += 0.1
        raise busy()

    with pytest.raises(error):
        granted(tmp_path, attempt, 10.0, in_the_way=lambda _: [holder])
    assert clock[0] == pytest.approx(after, abs=0.3)


def test_who_comes_after_a_wait_is_refused_at_once_until_the_process_goes_on(
    tmp_path: Path, clock: list[float]
) -> None:
    wait, in_the_way = Wait(3.0), [STOPPED]

    def attempt() -> None:
        clock[0] += 1.0
        if in_the_way:
            raise busy()

    for after in (3.0, 0.0, 0.0):
        began = clock[0]
        with pytest.raises(StoreError):
            granted(tmp_path, attempt, 10.0, wait, lambda _: in_the_way)
        assert clock[0] - began == pytest.approx(after, abs=0.1)
    in_the_way.clear()
    granted(tmp_path, attempt, 10.0, wait, lambda _: in_the_way)
    assert not wait.is_over


def test_an_error_that_is_no_lock_is_raised_at_once(tmp_path: Path) -> None:
    def attempt() -> None:
        raise sqlite3.OperationalError("no such table: locked")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        granted(tmp_path, attempt, 10.0)
