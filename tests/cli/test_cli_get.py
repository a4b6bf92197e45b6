"""``trivet get``."""

from __future__ import annotations


def test_get_gives_the_text_back_as_it_is(cli) -> None:
    cli("add", "first line\nsecond \x1b[31mline", "--id", "n1")
    ran = cli("get", "n1")
    assert ran.code == 0
    assert ran.out.startswith("id ")
    assert "first line\nsecond \x1b[31mline\n" in ran.out


def test_get_of_nothing(cli) -> None:
    cli("add", "x")
    ran = cli("get", "nope")
    assert ran.code == 1
    assert ran.err.startswith("trivet: id: document 'nope' not found")
