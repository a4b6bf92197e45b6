"""``trivet sweep``: the axes, the table and the plot."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import trivet
from trivet.cli import sweep
from trivet.cli.output import Screen
from trivet.errors import InputError
from trivet.evaluate.sweeps import Point, Sweep

DEFAULT = trivet.PROFILES["default"]


@pytest.mark.parametrize(
    ("said", "name", "values"),
    [
        ("alpha=0:1:0.1", "alpha", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("alpha=0:1:0.4", "alpha", (0.0, 0.4, 0.8)),
        ("alpha=1:0:-0.5", "alpha", (1.0, 0.5, 0.0)),
        ("k=5:20:5", "k", (5, 10, 15, 20)),
        ("rrf_k=2,5,60", "rrf_k", (2, 5, 60)),
        ("fusion=rrf, convex", "fusion", ("rrf", "convex")),
        ("pool=2k,50", "pool", ("2k", 50)),
        ("weights.dense=0,1", "dense_weight", (0, 1)),
        ("depths.lexical=50", "lexical_depth", (50,)),
        ('rerankers=[],["dedup"]', "rerankers", ([], ["dedup"])),
        ("alpha=0.5", "alpha", (0.5,)),
    ],
)
def test_values(said: str, name: str, values: tuple[Any, ...]) -> None:
    found = sweep.parse_axes([said])
    assert found == {name: values}
    assert [type(value) for value in found[name]] == [type(value) for value in values]


@pytest.mark.parametrize(
    "said", ["alpha", "=1", "alpha=", "alpha=,", "alpha=0:1", "alpha=0:1:0", "alpha=0:1:-0.1", "alpha=a:b:c",
             "alpha=0:1:0.0000001", "alpha=0:1:NaN", "alpha=0:Infinity:1"]
)  # fmt: skip
def test_values_that_are_none(said: str) -> None:
    with pytest.raises(InputError, match="--over"):
        sweep.parse_axes([said])


def test_an_axis_twice() -> None:
    with pytest.raises(InputError, match="alpha was given twice"):
        sweep.parse_axes(["alpha=0", "alpha=1"])


def cells(out: str) -> list[list[str]]:
    """Return the rows of the table."""
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if " 95 % " in f"{line} ")
    return [line.split() for line in lines[start + 1 : lines.index("", start)]]


def test_the_grid(cli) -> None:
    ran = cli("sweep", "demo", "--over", "alpha=0:1:0.5", "--over", "fusion=rrf,convex")
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    assert "●" not in ran.out, "a pipe has the numbers"
    rows = cells(ran.out)
    assert [row[:2] for row in rows] == [[alpha, how] for alpha in ("0", "0.5", "1") for how in ("rrf", "convex")]
    assert [row[:2] for row in rows if any(cell.startswith("unchanged") for cell in row)] == [["0.5", "convex"]]
    assert sum("highest" in row for row in rows) == 1
    assert sweep.CAUTION in ran.out
    assert "best" not in ran.out


def test_json_is_what_the_table_shows(cli) -> None:
    asked = ("sweep", "demo", "--over", "alpha=0:1:0.25")
    told, rows = cli(*asked, "--json").json, cells(cli(*asked).out)
    assert told["axes"] == {"alpha": [0.0, 0.25, 0.5, 0.75, 1.0]}
    assert [f"{point['mean']:.4f}" for point in told["points"]] == [row[1] for row in rows]
    assert told["highest"] == max(told["points"], key=lambda point: point["mean"])
    base = next(point for point in told["points"] if point["changes"] == {"alpha": 0.5})
    assert told["as_it_is"]["mean"] == base["mean"]
    assert told["as_it_is"]["profile"] == told["base"] == DEFAULT.identity


def test_a_base_outside_the_grid_has_its_own_row(cli) -> None:
    rows = cells(cli("sweep", "demo", "--set", "fusion=rrf", "--over", "rrf_k=2,5", "-m", "R@5").out)
    assert rows[0][0] == "60"
    assert rows[0][-1] == "unchanged"
    assert [row[0] for row in rows[1:]] == ["2", "5"]


@pytest.mark.parametrize(
    ("profile", "over", "told"),
    [
        ("default", "alpha=0,1", "0.5"),
        ("memories", "alpha=0,1", "0.5"),
        ("memories", "weights.dense=0.5,2", "1"),
        ("chunks", "gates.trigram=0.1,0.2", "0.3"),
        ("chunks", "gates.dense=0.1,0.2", "–"),
        ("memories", "depths.dense=10", "50"),
        ("memories", "fusion=isr", "rrf"),
    ],
)
def test_what_the_base_says_of_itself(cli, trees: Path, profile: str, over: str, told: str) -> None:
    first = cells(cli("sweep", trees, "-p", profile, "--over", over).out)[0]
    assert " ".join(first[: len(told.split())]) == told
    assert first[-1] == "unchanged"


def test_the_means_are_those_of_eval(cli) -> None:
    (point,) = cli("sweep", "demo", "-p", "memories", "--over", "rrf_k=20", "--json").json["points"]
    (found,) = cli("eval", "demo", "-p", "memories", "--set", "rrf_k=20", "--json").json["evaluations"]
    assert point["mean"] == found["overall"]["nDCG@10"]


def test_report(cli, clean_place: Path) -> None:
    assert cli("sweep", "demo", "--over", "alpha=0,1", "--report", "page.html").err == "wrote page.html\n"
    assert "alpha" in (clean_place / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["demo"], 2, "--over"),
        (["demo", "--over", "nope=1,2"], 2, "nope: unknown setting"),
        (["demo", "--over", "alpha=0,2"], 2, "alpha: 2 is out of range"),
        (["demo", "--over", "k=1:100:1", "--over", "alpha=0:1:0.01"], 2, "10,100 combinations are more than 2,000"),
        (["demo", "--over", "alpha=0,1", "-p", "default", "-p", "memories"], 2, "this command takes one"),
        (["nowhere", "--over", "alpha=0,1"], 1, "there is no folder 'nowhere'"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(cli, arguments: list[str], code: int, told: str) -> None:
    ran = cli("sweep", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def point(alpha: float, mean: float, low: float, high: float) -> Point:
    return Point({"alpha": alpha}, DEFAULT.with_changes({"alpha": alpha}), mean, low, high, {})


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_drawing(width: int) -> None:
    points = (point(0.25, 0.5, 0.25, 0.75), point(0.5, 0.75, 0.5, 1.0))
    found = Sweep("x/test#1", "nDCG@10", DEFAULT, {"alpha": (0.25, 0.5)}, points)
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    Screen(console).show(sweep._view(found, points[1], 40, (), Screen(console)))
    lines = [line for line in console.file.getvalue().splitlines() if "●" in line]  # type: ignore[attr-defined]
    assert [line.count("●") for line in lines] == [1, 1]
    assert lines[0].index("●") < lines[1].index("●")
    # the upright line stands at the mean of the base, which is the end of the other interval
    assert lines[0].index("┼") == lines[1].index("●")
    assert "┼" not in lines[1]
    assert max(map(len, console.file.getvalue().splitlines())) <= width  # type: ignore[attr-defined]


def test_all_alike_is_drawn() -> None:
    points = (point(0.5, 0.0, 0.0, 0.0),)
    found = Sweep("x/test#1", "nDCG@10", DEFAULT, {"alpha": (0.5,)}, points)
    console = Console(file=StringIO(), force_terminal=True, width=80, color_system=None)
    Screen(console).show(sweep._view(found, points[0], 1, (), Screen(console)))
    assert "●" in console.file.getvalue()  # type: ignore[attr-defined]
