"""A wait for an index lock ends when it is granted, when the time is over, or when a stopped process has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import Timeout

from trivet.errors import StoreError
from trivet.stores.indexes import file_locks
from trivet.stores.indexes.file_locks import HolderStoppedError, Wait, acquire, check_not_stopped, named
from trivet.stores.indexes.lock_holders import Holder

STOPPED, LIVE = Holder(12, "trivet mcp", True), Holder(13, "", False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in its only item."""
    now = [0.0]
    monkeypatch.setattr(file_locks.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(file_locks.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def test_a_process_has_to_be_stopped_all_the_while(clock: list[float]) -> None:
    wait = Wait(2.0)
    for found, expected in [
        ([STOPPED], None),
        ([LIVE], None),  # resumed: the count begins anew
        ([STOPPED], None),
        ([LIVE, STOPPED], STOPPED),
    ]:
        clock[0] += 1.0
        assert wait.stopped(found) == expected


def test_time_in_which_nobody_looked_counts_as_one_look(clock: list[float]) -> None:
    """The machine was asleep, or the waiter was stopped as well: the holder had no time to go on."""
    wait = Wait(2.0)
    clock[0] += 3_600.0
    assert wait.stopped([STOPPED]) is None
    clock[0] += 3_600.0
    assert wait.stopped([STOPPED]) == STOPPED


def test_a_file_lock_is_taken_and_let_go(tmp_path: Path) -> None:
    with acquire(tmp_path / "lock", 0):
        with pytest.raises(Timeout) as caught:
            acquire(tmp_path / "lock", 0)
        assert not isinstance(caught.value, HolderStoppedError)
        check_not_stopped([tmp_path / "lock", tmp_path / "missing"])
    with acquire(tmp_path / "lock", 0):
        pass


@pytest.mark.timeout(60)
def test_a_file_lock_of_a_stopped_process_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "holders", lambda path: [STOPPED])
    with acquire(tmp_path / "lock", 0):
        told = r"lock' is locked by process 12 \(trivet mcp\), which is stopped; resume it \(kill -CONT 12\) or end it"
        with pytest.raises(HolderStoppedError, match=told):
            acquire(tmp_path / "lock", 600)
        with pytest.raises(StoreError, match=told):
            check_not_stopped([tmp_path / "lock"])


def test_nobody_known_is_told_as_other_processes() -> None:
    assert named([]) == "other processes"
    assert named([STOPPED, LIVE]) == "process 12 (trivet mcp) and process 13"
