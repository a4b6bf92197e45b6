"""The cache of neighbours: each document is looked up once in a version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trivet.stores import known_turns
from trivet.stores.contract import Adjacent
from trivet.stores.known_turns import KnownTurns


class Rows:
    """Documents in one row, and a note of what was read."""

    def __init__(self, *keys: str) -> None:
        self.keys, self.asked = list(keys), 0
        self.reads: list[list[int]] = []

    def keys_in_use(self) -> list[str]:
        self.asked += 1
        return self.keys

    def read(self, keys: Sequence[str], dids: Sequence[int]) -> Adjacent:
        self.reads.append(list(dids))
        return {did: (did - 1, did + 1) if did < 100 else (None, None) for did in dids}


def test_a_document_is_read_once_in_a_version() -> None:
    rows = Rows("session")
    known = KnownTurns(rows.keys_in_use, rows.read)
    assert known.adjacent([5, 7, 100], 1) == {5: (4, 6), 7: (6, 8)}
    assert known.adjacent([7, 8, 100], 1) == {7: (6, 8), 8: (7, 9)}
    assert rows.reads == [[5, 7, 100], [8]] and rows.asked == 1
    known.adjacent([7], 2)
    assert rows.reads[2:] == [[7]] and rows.asked == 2


def test_nothing_is_read_without_sessions_until_there_are_some() -> None:
    rows = Rows()
    known = KnownTurns(rows.keys_in_use, rows.read)
    assert known.adjacent([5], 1) is known.adjacent([6], 1) is None
    assert rows.reads == [] and rows.asked == 1
    rows.keys.append("session")
    assert known.adjacent([5], 2) == {5: (4, 6)}


def test_it_forgets_when_told_and_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows("session")
    known = KnownTurns(rows.keys_in_use, rows.read)
    known.adjacent([5], 1)
    known.drop()
    known.adjacent([5], 1)
    assert rows.reads == [[5], [5]]
    monkeypatch.setattr(known_turns, "MOST_KEPT", 0)
    known.adjacent([5], 1)
    assert rows.reads == [[5], [5], [5]]
