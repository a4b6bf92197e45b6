"""Shell completion, and ``-h``."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("words", "at", "found"),
    [
        ("trivet re", 1, {"remember", "restore", "reembed", "rebuild", "redistribute", "revert"}),
        ("trivet list --li", 2, {"--limit"}),
    ],
)
def test_commands_and_options_are_completed(process, words: str, at: int, found: set[str]) -> None:
    ran = process(_TRIVET_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(at))
    assert set(ran.out.split()) == found


@pytest.mark.parametrize("command", [(), ("list",), ("mcp", "install")])
def test_the_short_form_of_help(cli, command: tuple[str, ...]) -> None:
    short = cli(*command, "-h")
    assert (short.code, short.out) == (0, cli(*command, "--help").out)
    assert "Usage: trivet" in short.out
