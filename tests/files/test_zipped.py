"""The limits of zip containers: bombs, passwords and damage."""

from __future__ import annotations

import pytest

from made_files import zipped
from trivet.files import zipped as containers
from trivet.files.formats import UnreadableError
from trivet.files.zipped import open_zip


def test_a_whole_container_is_opened() -> None:
    with open_zip(zipped({"ünïcode.txt": "words"})) as found:
        assert found.read("ünïcode.txt") == b"words"


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_UNPACKED", 2_000_000)
    bomb = zipped({"a": b"0" * 1_500_000, "b": b"0" * 1_500_000})
    assert len(bomb) < 10_000
    with pytest.raises(UnreadableError, match=r"larger than 2 MB when unpacked \(3 MB\)"):
        open_zip(bomb)


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_MEMBERS", 2)
    with pytest.raises(UnreadableError, match=r"more than 2 members \(3\)"):
        open_zip(zipped(dict.fromkeys("abc", "")))


def test_a_member_with_a_password_is_refused() -> None:
    content = bytearray(zipped({"a": "b"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flags in the directory
    with pytest.raises(UnreadableError, match="encrypted; save it without a password"):
        open_zip(bytes(content))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"words", "broken"), (b"%PDF-1.7", "but PDF"), (b"PK\x03\x04", "broken")]
)
def test_what_is_no_container_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        open_zip(content)
