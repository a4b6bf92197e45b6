"""``trivet gate`` fails where a score fell, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trivet
from trivet.evaluate import Lab


@pytest.fixture
def stored(cli, trees: Path) -> str:
    ran = cli("gate", trees, "--against", "kept/trees.json", "--write", "--alpha", "0")
    assert (ran.code, ran.err) == (0, "wrote kept/trees.json\n")
    return "kept/trees.json"


def test_what_is_stored_is_slim_and_has_every_measure(cli, stored: str, clean_place: Path) -> None:
    record = json.loads((clean_place / stored).read_text())
    assert not {"answers", "texts", "qrels"} & set(record)
    assert record["overall"]["nDCG@10"] == record["overall"]["R@5"] == 1.0


def test_the_same_passes(cli, trees: Path, stored: str) -> None:
    ran = cli("gate", trees, "--against", stored, "--alpha", "0")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("passed  trees/test#")
    assert "nDCG@10 1.0000 → 1.0000  +0.0000  margin 0.01\n0 topics better, 0 worse, 40 equal; " in ran.out
    assert "\x1b" not in ran.out


def test_a_drop_fails_with_what_fell_most(cli, trees: Path, stored: str) -> None:
    ran = cli("gate", trees, "--against", stored, "--alpha", "0", "--language", "none", "--stratum", "leaf")
    assert ran.code == 2, "other topics"
    ran = cli("gate", trees, "--against", stored, "--alpha", "0", "--set", "min_relevance=1.0")
    assert ran.code == 1
    assert ran.out.startswith("FAILED  trees/test#")
    assert "by the paired test: worse (p < 0.001)" in ran.out
    lines = ran.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("what fell most"))
    assert lines[at + 1].split()[:4] == ["q0", "1.0000", "0.0000", "-1.0000"]
    assert lines[at + 1].endswith("alderleaf wood")
    assert lines[at + 6] == "", "five are shown"


def test_json_says_the_same(cli, trees: Path, stored: str) -> None:
    ran = cli("gate", trees, "--against", stored, "--alpha", "0", "--set", "min_relevance=1.0", "--json")
    assert ran.code == 1
    assert ran.json["passed"] is False
    assert ran.json["difference"] == -1.0
    assert [item["topic"] for item in ran.json["fallen"]] == ["q0", "q1", "q10", "q11", "q12"]
    assert ran.json["stored"]["profile"] != ran.json["current"]["profile"]
    assert any(note.startswith("the stored result is of default#") for note in ran.json["notes"])
    assert cli("gate", trees, "--against", stored, "--alpha", "0", "--json").json["passed"] is True


def test_the_margin_decides(cli, trees: Path, stored: str, clean_place: Path) -> None:
    record = json.loads((clean_place / stored).read_text())
    record["scores"]["nDCG@10"]["q0"] += 0.8  # 0.02 more on the mean of 40
    (clean_place / "more.json").write_text(json.dumps(record))
    asked = ("gate", trees, "--against", "more.json", "--alpha", "0")
    assert cli(*asked).code == 1
    assert cli(*asked, "--margin", "0.021").code == 0
    assert cli(*asked, "--margin", "0.019").code == 1
    assert cli(*asked, "--measure", "R@5").code == 0


def test_a_rise_passes(cli, trees: Path, clean_place: Path) -> None:
    cli("gate", trees, "--against", "x.json", "--write", "--alpha", "0", "--set", "min_relevance=1.0")
    ran = cli("gate", trees, "--against", "x.json", "--alpha", "0")
    assert ran.code == 0
    assert "40 topics better, 0 worse" in ran.out


def test_the_profile_is_the_stored_one_s(cli, clean_place: Path) -> None:
    cli("gate", "demo", "--against", "m.json", "--write", "-p", "memories")
    told = cli("gate", "demo", "--against", "m.json", "--json").json
    assert told["current"]["profile"] == trivet.PROFILES["memories"].identity
    # a shipped profile is run as it ships now
    record = json.loads((clean_place / "m.json").read_text())
    record["profile"]["rrf_k"] = 1.0
    (clean_place / "m.json").write_text(json.dumps(record))
    told = cli("gate", "demo", "--against", "m.json", "--json").json
    assert told["current"]["profile"] == trivet.PROFILES["memories"].identity
    # any other profile is run as it was stored
    record["profile"]["name"] = "mine"
    (clean_place / "m.json").write_text(json.dumps(record))
    assert cli("gate", "demo", "--against", "m.json", "--json").json["current"]["name"] == "mine"


def test_another_model_is_told(cli, stored: str, trees: Path) -> None:
    ran = cli("gate", trees, "--against", stored, "--alpha", "0", "--embedder", "none")
    assert ran.code == 0
    assert "note: the stored result is of the model hashing" in ran.out


class TestWrite:
    def test_it_replaces_and_says_what_changed(self, cli, trees: Path, stored: str) -> None:
        ran = cli("gate", trees, "--against", stored, "--alpha", "0", "--set", "min_relevance=1.0", "--write")
        assert ran.code == 0, "a new promise is no failure"
        assert ran.out.startswith("stored  trees/test#")
        assert "1.0000 → 0.0000  -1.0000" in ran.out
        assert cli("gate", trees, "--against", stored, "--alpha", "0", "--set", "min_relevance=1.0").code == 0

    def test_of_another_set_or_no_result_at_all(self, cli, trees: Path, stored: str, clean_place: Path) -> None:
        assert cli("gate", "demo", "--against", stored, "--write").out.startswith("stored  demo/test#")
        (clean_place / "broken.json").write_text("{")
        assert cli("gate", "demo", "--against", "broken.json").code == 2
        assert cli("gate", "demo", "--against", "broken.json", "--write", "--json").json["passed"] is None
        assert cli("gate", "demo", "--against", "broken.json").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["demo"], 2, "--against"),
        (["demo", "--against", "nope.json"], 1, "--against: there is no file 'nope.json'; make it with --write"),
        (["demo", "--against", "STORED"], 2, "the dataset was changed; store a new result with trivet gate --"),
        (["TREES", "--against", "STORED", "--margin", "2"], 2, "margin: 2.0 is out of range"),
        (["TREES", "--against", "STORED", "--measure", "R@7"], 2, "measure: R@7 was not computed"),
        (["TREES", "--against", "."], 2, ""),
        (["nowhere", "--against", "STORED"], 1, "there is no folder 'nowhere'"),
        (["TREES", "--against", "STORED", "-p", "default", "-p", "memories"], 2, "this command takes one"),
    ],
)
def test_what_cannot_be_is_told_before_the_work(
    cli, trees: Path, stored: str, arguments: list[str], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Lab, "fill", never)
    names = {"STORED": stored, "TREES": str(trees)}
    ran = cli("gate", *(names.get(word, word) for word in arguments))
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert "unexpected" not in ran.err
    assert ran.err.count("\n") == 1
