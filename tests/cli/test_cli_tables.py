"""The tables of the evaluation commands fit the terminal and are readable without colour."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from trivet.cli import tables
from trivet.cli.output import Screen

ANSI = re.compile(r"\x1b\[[0-9;]*m")
Runs = Callable[..., Path]


def screen(width: int) -> Screen:
    return Screen(Console(file=StringIO(), force_terminal=True, width=width, color_system=None, highlight=False))


def shown(place: Screen) -> list[str]:
    return place.console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture(params=[60, 80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set up a terminal of that width."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", "TREES", "-p", "default", "-p", "memories", "-p", "chunks", "--headroom"],
        ["eval", "demo"],
        ["compare", "demo", "-p", "default", "-p", "memories", "-p", "snippets"],
        ["sweep", "demo", "--over", "alpha=0:1:0.5", "--over", "fusion=rrf,convex"],
        ["gate", "demo", "--against", "x.json", "--write"],
    ],
)
def test_no_line_is_wider_than_the_terminal(cli, trees: Path, width: int, arguments: list[str]) -> None:
    ran = cli(*(str(trees) if word == "TREES" else word for word in arguments))
    assert ran.code == 0
    assert "\x1b[" in ran.out
    for line in ran.out.splitlines():
        assert cell_len(ANSI.sub("", line).rstrip()) <= width, line


def test_columns_that_do_not_fit_come_below() -> None:
    place = screen(20)
    place.show(tables.table(["name", "first", "second", "third"], [["a", "1.0000", "2.0000", "3.0000"]], place))
    assert [line.split() for line in shown(place) if line.strip()] == [
        ["name", "first", "second"],
        ["a", "1.0000", "2.0000"],
        ["name", "third"],
        ["a", "3.0000"],
    ]


def test_numbers_stand_under_each_other() -> None:
    place = screen(80)
    place.show(tables.table(["name", "value"], [["a", "1"], ["b", Text("1,000")]], place))
    assert [line.rstrip() for line in shown(place)] == ["name  value", "a         1", "b     1,000"]


def test_the_best_is_bold_only_where_it_is_best(cli, trees: Path, trec: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    trec("right", lambda at: [f"d{at}"])
    trec("wrong", lambda at: [f"d{(at + 1) % 40}"])
    trec("alike", lambda at: [f"d{at}"] if at else ["d1", "d0"])
    first = cli("eval", trees, "--run", "right.trec", "--run", "wrong.trec").out
    assert re.search(r"\x1b\[1mright *\x1b", first)
    assert not re.search(r"\x1b\[1mwrong *\x1b", first)
    second = cli("eval", trees, "--run", "right.trec", "--run", "alike.trec").out
    assert not re.search(r"\x1b\[1m *(right|alike|[0-9.]+) *\x1b", second)


def test_what_a_dataset_says_is_not_obeyed(cli, beir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    evil = "red \x1b[31m [bold]alert[/bold]"
    folder = beir(
        [{"_id": "a", "title": evil, "text": evil}, {"_id": "b", "text": "red"}],
        [{"_id": evil, "text": evil, "metadata": {"type": evil}}, {"_id": "2", "text": "red"}],
        [f"{evil}\ta\t1", "2\tb\t1"],
    )
    for arguments in (["eval"], ["compare", "--alpha", "0.1"], ["gate", "--against", "x.json", "--write"]):
        ran = cli(arguments[0], folder, *arguments[1:])
        assert ran.code == 0
        assert "\x1b[31m [" not in ran.out
        assert "[bold]alert[/bold]" in ran.out or arguments[0] != "eval"


@pytest.mark.parametrize(
    ("value", "told"), [(0.5, "0.50"), (0.0496, "0.0496"), (0.001, "0.0010"), (0.0009, "<0.001"), (1.0, "1.00")]
)
def test_p(value: float, told: str) -> None:
    assert tables.p(value) == told


def test_a_difference_of_nothing_has_no_minus() -> None:
    assert tables.signed(-0.00001) == "+0.0000"
    assert tables.signed(-0.0001) == "-0.0001"
    assert tables.signed_span(-0.00001, 0.5) == "+0.0000 to +0.5000"
