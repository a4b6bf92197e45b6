"""The option ``--scorer`` of every command that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

READ = ("--set", "rerankers=cross_encoder")


@pytest.fixture(autouse=True)
def two(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIVET_SCORER", raising=False)
    cli("add", "The side door is green.", "--id", "green")
    cli("add", "A side door, far away: one has to walk along the river.", "--id", "river")


def test_a_search_asks_the_scorer_that_a_flag_names(cli) -> None:
    found = cli("search", "side door", *READ, "--scorer", "words", "--json").json
    assert found["degraded"] == []
    assert "2 of 2 scored" in next(stage["detail"] for stage in found["trace"] if stage["name"] == "rerank")


def test_the_environment_names_it_else(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    without = cli("search", "side door", *READ, "--json").json["degraded"]
    assert [item["part"] for item in without] == ["cross_encoder"]
    monkeypatch.setenv("TRIVET_SCORER", "words")
    assert cli("search", "side door", *READ, "--json").json["degraded"] == []
    assert cli("stats", "--json").json["scorer"] == "words/1"


def test_a_missing_scorer_is_shown_to_a_person(cli) -> None:
    assert "no scorer is set" in " ".join(cli("search", "side door", *READ).out.split())


def test_stats_and_doctor_tell_it(cli) -> None:
    assert cli("stats", "--json").json["scorer"] is None
    assert "scorer      words/1" in cli("stats", "--scorer", "words").out
    told = {check["name"]: check for check in cli("doctor", "--scorer", "words", "--json").json["checks"]}
    assert told["scorer"]["ok"] and told["scorer"]["said"].startswith("words/1 works (")
    assert "the reranker cross_encoder is off" in cli("doctor").out


def test_doctor_says_what_is_wrong_with_it(cli, tmp_path: Path) -> None:
    for spec in ("nonsense", f"folder:{tmp_path}", "http://127.0.0.1:1/rerank?timeout=0.2"):
        ran = cli("doctor", "--scorer", spec, "--json")
        assert ran.code == 1
        check = ran.json["checks"][-1]
        assert (check["name"], check["ok"], check["mend"]) == (
            "scorer",
            False,
            "name another with --scorer or TRIVET_SCORER",
        )
        assert "Traceback" not in ran.err


def test_a_wrong_spec_is_one_line(cli) -> None:
    ran = cli("search", "side door", "--scorer", "nonsense")
    assert ran.code == 2
    assert "scorer 'nonsense' is neither a known form nor an existing folder" in " ".join(ran.err.split())


def test_the_lab_asks_it_too(cli) -> None:
    ran = cli("eval", "demo", "--fast", "--json", *READ, "--scorer", "words")
    assert ran.code == 0
    assert cli("eval", "demo", "--fast", *READ, "--scorer", "nonsense").code == 2
