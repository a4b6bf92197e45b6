"""The ids that a session has seen: kept by session and collection, claimed once, bounded."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trivet.chat import recalled_ids
from trivet.chat.recalled_ids import RecalledIds
from trivet.errors import StoreError


def test_each_session_and_collection_has_its_own(tmp_path: Path) -> None:
    assert RecalledIds(tmp_path, "notes", "s-1").claim(["a", "b", "a"]) == {"a", "b"}
    assert RecalledIds(tmp_path, "notes", "s-1").claim(["b", "c"]) == {"c"}
    assert RecalledIds(tmp_path, "notes", "s-1").read() == ["a", "b", "c"]
    assert RecalledIds(tmp_path, "notes", "../../s-2").claim(["a"]) == {"a"}
    assert RecalledIds(tmp_path, "tickets", "s-1").read() == []


def test_an_id_is_claimed_once(tmp_path: Path) -> None:
    def claim(_: int) -> set[str]:
        return RecalledIds(tmp_path, "notes", "s-1").claim(["a"])

    with ThreadPoolExecutor(4) as pool:
        assert sorted(map(len, pool.map(claim, range(12)))) == [0] * 11 + [1]


def test_the_oldest_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalled_ids, "KEPT_IDS", 3)
    monkeypatch.setattr(recalled_ids, "KEPT_SESSIONS", 2)
    for number in range(4):
        session = RecalledIds(tmp_path, "notes", f"s-{number}")
        session.claim("abcd")
        os.utime(session.path, (number, number))
    assert session.read() == ["b", "c", "d"]
    assert RecalledIds(tmp_path, "notes", "s-0").read() == []
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_folder_that_cannot_be_written_or_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        RecalledIds(tmp_path / "file", "notes", "s-1").claim(["a"])
    session = RecalledIds(tmp_path, "notes", "s-1")
    session.path.write_text("{")
    with pytest.raises(StoreError, match="delete it"):
        session.claim(["a"])
