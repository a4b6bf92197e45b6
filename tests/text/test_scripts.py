"""A text is written in a script if at least half of its letters are."""

from __future__ import annotations

import pytest

from trivet.text.scripts import written_in


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("port 8443", True),
        ("Übung", True),
        ("端口是什么", False),
        ("什么是 API", True),
        ("порт", False),
        ("8443", True),
        ("", True),
    ],
)
def test_latin(text: str, latin: bool) -> None:
    assert written_in(text, ("LATIN",)) is latin
