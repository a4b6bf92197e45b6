"""``trivet stats``, ``reembed``, ``rebuild`` and ``compact``."""

from __future__ import annotations

import pytest


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number))


def test_stats(cli, three) -> None:
    found = cli("stats", "--json").json
    assert (found["documents"], found["passages"], found["embedded"], found["pending"]) == (3, 3, 3, 0)
    assert found["collections"] == ["default"]
    out = cli("stats").out
    assert "documents   3\n" in out
    assert "hashing" in out


def test_stats_tell_what_the_bytes_are_for(cli, three) -> None:
    found = cli("stats", "--bytes", "--json").json["space"]
    assert found["other tables"] > 0 and found["log"] > 0
    *parts, total = cli("stats", "--bytes").out.splitlines()[1:]
    assert [line.split("  ")[0] for line in parts] == list(cli("stats", "--bytes", "--json").json["space"])
    assert total.startswith("all files") and "100.0%" in total


def test_reembed_changes_the_model(cli, three) -> None:
    assert cli("reembed", "--embedder", "hashing:64", "--json").json["embedded"] == 3
    assert cli("stats", "--json").json["model"].startswith("hashing/64")
    assert cli("search", "apple", "--json").json["degraded"] == []
    assert cli("reembed").out.startswith("embedded 0 passages")
    assert cli("reembed", "--embedder", "nonsense").code == 2
    assert cli("add", "x", "--embedder", "hashing:32").code == 2


def test_rebuild(cli, three) -> None:
    assert cli("rebuild", "--json").json["passages"] == 3
    assert cli("rebuild").out.startswith("indexed 3 passages in ")
    assert cli("search", "apple", "--json").json["hits"][0]["id"] == "0"


def test_compact_tells_what_it_gave_back(cli, three) -> None:
    cli("delete", "0", "1")
    told = cli("compact", "--json").json
    assert told["pruned"] == 2 and told["bytes_after"] > 0 and told["expired"] == 0
    assert "erased" in cli("compact").out
