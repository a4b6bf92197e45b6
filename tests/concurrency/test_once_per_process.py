"""A value is made once in a process, and again in a child."""

from __future__ import annotations

import os

import pytest

from trivet.concurrency.once_per_process import OncePerProcess


def test_a_value_is_made_once_and_again_in_a_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    value = OncePerProcess(lambda: made.append(1) or len(made))
    assert (value(), value()) == (1, 1)
    parent = os.getpid()
    monkeypatch.setattr("trivet.concurrency.once_per_process.os.getpid", lambda: parent + 1)
    assert (value(), value()) == (2, 2)
