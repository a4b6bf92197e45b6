"""``trivet compare``: the tests, the queries that changed, and refused calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import trivet

Runs = Callable[..., Path]


@pytest.fixture
def runs(trec: Runs) -> list[str]:
    """Write three runs: ``good`` is right everywhere, ``bad`` swaps the first two hits, ``same`` fails on one query."""
    trec("good", lambda at: [f"d{at}", f"d{(at + 1) % 40}"])
    trec("bad", lambda at: [f"d{(at + 1) % 40}", f"d{at}"])
    trec("same", lambda at: [f"d{at}"] if at else ["d1", "d0"])
    return [word for name in ("good", "bad", "same") for word in ("--run", f"{name}.trec")]


def row(out: str, first: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [first])


class TestADataset:
    def test_the_first_against_each_other(self, cli, trees: Path, runs: list[str]) -> None:
        ran = cli("compare", trees, *runs)
        assert (ran.code, ran.err) == (0, "")
        assert "\x1b" not in ran.out
        assert "nDCG@10, 40 topics, each against good" in ran.out
        assert row(ran.out, "good") == ["good", "1.0000"]
        bad, same = row(ran.out, "bad"), row(ran.out, "same")
        assert bad[1:3] == ["0.6309", "-0.3691"]
        assert bad[-2:] == ["0/40/0", "worse"]
        assert same[-4:] == ["0/1/39", "no", "difference", "shown"]

    def test_json_is_what_the_table_shows(self, cli, trees: Path, runs: list[str]) -> None:
        told, out = cli("compare", trees, *runs, "--json").json, cli("compare", trees, *runs).out
        assert (told["baseline"], told["measure"]) == ("good", "nDCG@10")
        for pair in told["overall"]:
            cells = row(out, pair["challenger"])
            assert cells[1] == f"{pair['mean_challenger']:.4f}"
            assert cells[2] == f"{pair['difference']:+.4f}"
            assert pair["verdict"].startswith(cells[-1] if cells[-1] == "worse" else "no difference shown")
        assert set(told["strata"]) == {"leaf", "bark"}
        assert len(told["moved"]["bad"]) == 5
        assert len(told["moved"]["same"]) == 1

    def test_strata(self, cli, trees: Path, runs: list[str]) -> None:
        out = cli("compare", trees, *runs).out
        lines = [line for line in out.splitlines() if line.startswith(("leaf ", "bark "))]
        assert len(lines) == 4, "two strata, two challengers each"
        assert all(line.endswith("too few topics to tell") for line in lines)
        assert lines[0].split()[1:3] == ["20", "bad"]

    def test_what_moved_most_with_both_rankings(self, cli, trees: Path, runs: list[str]) -> None:
        out = cli("compare", trees, *runs, "--moved", "1").out
        at = out.index("What changed most: good → bad")
        block = out[at : out.index("What changed most: good → same")].splitlines()
        assert block[2] == "-0.3691  1.000 → 0.631  alderleaf wood  q0"
        assert block[3].split() == ["good", "bad"]
        assert block[4].split() == ["1", "✓", "d0", "alderleaf", "d1", "alderbark"]
        assert block[5].split() == ["2", "d1", "alderbark", "✓", "d0", "alderleaf"]

    def test_none_need_be_shown(self, cli, trees: Path, runs: list[str]) -> None:
        assert "moved" not in cli("compare", trees, *runs, "--moved", "0").out

    def test_profiles(self, cli) -> None:
        ran = cli("compare", "demo", "-p", "default", "-p", "memories", "-p", "snippets", "-m", "R@5")
        assert ran.code == 0
        assert "R@5, 41 topics, each against default" in ran.out
        assert all(row(ran.out, name) for name in ("default", "memories", "snippets"))
        assert str(trivet.PROFILES["memories"]) in ran.out

    def test_a_profile_against_itself_changed(self, cli) -> None:
        ran = cli("compare", "demo", "--set", "fusion=rrf", "--alpha", "0.7", "--moved", "0")
        assert row(ran.out, "default-changed")
        assert "rrf k=60 lexical=0.3@100 dense=0.7@100" in ran.out
        assert str(trivet.PROFILES["default"]) in ran.out

    def test_a_profile_against_another_system(self, cli, trees: Path, runs: list[str]) -> None:
        ran = cli("compare", trees, "-p", "default", "--run", "bad.trec")
        assert row(ran.out, "bad")[-1] == "worse"
        assert row(cli("compare", trees, "--run", "bad.trec").out, "default")[0] == "default"

    def test_report(self, cli, trees: Path, runs: list[str], clean_place: Path) -> None:
        assert cli("compare", trees, *runs, "--report", "page.html").err == "wrote page.html\n"
        assert "bad" in (clean_place / "page.html").read_text()


class TestSavedResults:
    @pytest.fixture
    def saved(self, cli, trees: Path, runs: list[str], clean_place: Path) -> dict[str, Path]:
        cli("eval", trees, *runs, "--save", "results")
        return {json.loads(path.read_text())["name"]: path for path in (clean_place / "results").iterdir()}

    def test_the_same_as_from_the_dataset(self, cli, trees: Path, runs: list[str], saved: dict[str, Path]) -> None:
        live = cli("compare", trees, *runs, "--json").json
        assert cli("compare", saved["good"], saved["bad"], saved["same"], "--json").json == live

    def test_of_two_commits(self, cli, saved: dict[str, Path], clean_place: Path) -> None:
        record = json.loads(saved["good"].read_text())
        old = {**record, "made": {**record["made"], "commit": "0ld"}}
        (clean_place / "old.json").write_text(json.dumps(old))
        told = cli("compare", "old.json", saved["good"], "--json").json
        assert told["baseline"] == "good@0ld"
        assert told["overall"][0]["challenger"] == f"good@{record['made']['commit']}"
        assert told["overall"][0]["verdict"].startswith("no difference shown (the same score on each of 40 topics)")

    def test_of_one_commit_by_their_files(self, cli, saved: dict[str, Path], clean_place: Path) -> None:
        (clean_place / "copy.json").write_text(saved["good"].read_text())
        assert cli("compare", saved["good"], "copy.json", "--json").json["overall"][0]["challenger"] == "copy"

    def test_the_same_file_twice(self, cli, saved: dict[str, Path]) -> None:
        ran = cli("compare", saved["good"], saved["good"])
        assert ran.code == 2
        assert "two of them have the same name" in ran.err

    def test_slim_ones_have_no_rankings(self, cli, trees: Path, runs: list[str], clean_place: Path) -> None:
        cli("eval", trees, *runs, "--save", "slim", "--slim")
        ran = cli("compare", *sorted((clean_place / "slim").iterdir()))
        assert ran.code == 0
        assert "What changed most" in ran.out
        assert "✓" not in ran.out

    def test_another_model_is_told(self, cli, clean_place: Path) -> None:
        cli("eval", "demo", "--save", "a", "--fast")
        cli("eval", "demo", "--save", "b", "--fast", "--embedder", "none", "--alpha", "0")
        ran = cli("compare", *(next((clean_place / name).iterdir()) for name in "ab"))
        assert "note: not the same model: " in ran.out

    def test_of_different_queries(self, cli, saved: dict[str, Path], clean_place: Path) -> None:
        cli("eval", "demo", "--save", "other", "--fast")
        (other,) = (clean_place / "other").iterdir()
        ran = cli("compare", saved["good"], other)
        assert (ran.code, ran.out) == (2, "")
        assert "only runs over the same topics can be compared" in ran.err

    def test_of_different_strata(self, cli, trees: Path, saved: dict[str, Path], clean_place: Path) -> None:
        cli("eval", trees, "--run", "bad.trec", "--stratum", "leaf", "--save", "leaf")
        (other,) = (clean_place / "leaf").iterdir()
        assert "only runs over the same topics can be compared" in cli("compare", saved["good"], other).err

    def test_a_measure_that_was_not_computed(self, cli, saved: dict[str, Path]) -> None:
        ran = cli("compare", saved["good"], saved["bad"], "-m", "R@7")
        assert ran.code == 2
        assert "measure: R@7 was not computed for" in ran.err

    @pytest.mark.parametrize("flags", [["-p", "default"], ["--stratum", "leaf"], ["--run", "bad.trec"], ["-k", "5"]])
    def test_what_would_do_nothing_is_refused(self, cli, saved: dict[str, Path], flags: list[str]) -> None:
        ran = cli("compare", saved["good"], saved["bad"], *flags)
        assert ran.code == 2
        assert "with saved results only --measure" in ran.err

    @pytest.mark.parametrize("text", ["", "[1]", "{}", '{"format": 1}', '{"format": 99}', "\xff", None])
    def test_a_file_that_is_no_result(self, cli, saved: dict[str, Path], clean_place: Path, text: str | None) -> None:
        if text is not None:
            (clean_place / "x.json").write_bytes(text.encode("latin-1"))
        ran = cli("compare", saved["good"], "x.json")
        assert ran.code == (1 if text is None else 2)
        assert "x.json" in ran.err
        assert ran.err.startswith("trivet: ")
        assert "unexpected" not in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "See `trivet compare --help`"),
        (["demo"], 2, "compare: name a second ranking with -p or --run"),
        (["demo", "-p", "memories"], 2, "compare: name a second ranking"),
        (["demo", "-p", "memories", "-p", "memories"], 2, "was named twice"),
        (["demo", "-p", "default", "-p", "memories", "--alpha", "0"], 2, "change one profile; name one"),
        (["demo", "trees"], 2, "give one dataset or several .json results, not 'demo' and 'trees'"),
        (["demo", "x.json"], 2, "give one dataset or several .json results, not 'demo' and 'x.json'"),
        (["demo", "--alpha", "0", "--moved", "-1"], 2, "--moved: -1 is less than 0"),
        (["nowhere", "--alpha", "0"], 1, "dataset: there is no folder 'nowhere'"),
        (["x.json"], 1, "there is no file 'x.json'"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(cli, arguments: list[str], code: int, told: str) -> None:
    ran = cli("compare", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1
