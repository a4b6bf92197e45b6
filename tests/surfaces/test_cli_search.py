"""Is a question answered, explained and tuned from the command line?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

QUESTION = "Stilt status light steady red"
#: They say the same; which of the two is shown is the ranking's business.
ANSWERS = ("note-stilt-led-codes", "note-led-codes-pasted")


def test_plain_lines_in_a_pipe(cli, notes: Path) -> None:
    ran = cli("search", QUESTION, "-s", notes, "-k", "3")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("1  0.")
    assert lines[0].split()[2] in ANSWERS
    assert "stilt status light" in lines[0].lower()
    assert "steady red" in lines[1].lower()
    assert lines[-1].startswith("3 of ")
    assert " ms · default#" in lines[-1]
    assert "\x1b" not in ran.out
    assert "█" not in ran.out
    assert all(line == line.rstrip() for line in lines)


def test_json_is_complete(cli, notes: Path) -> None:
    found = cli("search", QUESTION, "-s", notes, "-k", "2", "--json").json
    assert set(found) >= {"query", "hits", "profile", "trace", "degraded", "candidates", "ms"}
    hit = found["hits"][0]
    assert hit["id"] in ANSWERS
    assert hit["text"] == hit["passage"]["text"]
    assert hit["document"]["meta"]["project"]
    assert sum(one["share"] for one in hit["contributions"]) == pytest.approx(hit["fused"])
    assert {"leg", "rank", "raw", "normalised", "weight", "share"} == set(hit["contributions"][0])
    assert {stage["name"] for stage in found["trace"]} >= {"lexical", "dense", "fusion", "total"}


def test_explain_shows_every_number(cli, notes: Path) -> None:
    out = cli("search", QUESTION, "-s", notes, "-k", "2", "--explain").out
    assert out.count("norm  weight") == 2
    assert "fused" in out
    assert "stage" in out
    assert "rerank" in out


def test_explain_id(cli, notes: Path) -> None:
    first = cli("search", QUESTION, "-s", notes, "--json").json["hits"][0]["id"]
    assert cli("search", QUESTION, "-s", notes, "--explain-id", first).out.startswith(f"{first}  rank 1")
    missing = cli("search", QUESTION, "-s", notes, "-k", "1", "--explain-id", "note-coffee-machine", "--json").json
    assert missing["rank"] is None
    assert {one["leg"] for one in missing["verdicts"]} == {"lexical", "dense", "graph"}
    assert cli("search", QUESTION, "-s", notes, "--explain-id", "nope").code == 1


def test_filters_and_exclusions_and_pages(cli, notes: Path) -> None:
    def ids(*flags: str) -> list[str]:
        return [hit["id"] for hit in cli("search", "gateway", "-s", notes, "--json", *flags).json["hits"]]

    first = ids("-k", "6")
    assert ids("-k", "3") + ids("-k", "3", "--offset", "3") == first
    assert first[0] not in ids("--exclude", first[0])
    kinds = cli(
        "search", "gateway", "-s", notes, "--json", "-w", "kind=incident", "-w", '{"severity": {"gte": 4}}'
    ).json
    assert kinds["hits"]
    assert all(hit["document"]["kind"] == "incident" for hit in kinds["hits"])
    assert all(hit["document"]["meta"]["severity"] >= 4 for hit in kinds["hits"])


def test_knobs_reach_the_profile(cli, notes: Path) -> None:
    def profile(*flags: str) -> str:
        return cli("search", "gateway", "-s", notes, "--json", *flags).json["profile"]

    assert "rrf k=5" in profile("--fusion", "rrf", "--rrf-k", "5")
    assert "convex/zscore" in profile("--normalize", "zscore")
    assert "dense=1.5" in profile("--weight", "dense=1.5")
    assert "lexical" not in profile("--alpha", "1")
    assert "lexical=0.5@7" in profile("--set", "depths.lexical=7", "-k", "5")
    assert "→ exact → dedup" in profile("--set", "rerankers=exact,dedup")
    assert profile("--profile", "memories").startswith("memories#")


def test_profiles_from_files(cli, notes: Path, clean_place: Path) -> None:
    (clean_place / "mine.toml").write_text(cli("profiles", "memories").out.replace('"memories"', '"mine"'))
    assert cli("search", "x", "-s", notes, "--json", "-p", "mine.toml").json["profile"].startswith("mine#")
    (clean_place / "mine.json").write_text(json.dumps({"name": "js", "k": 2}))
    assert cli("search", "gateway", "-s", notes, "--json", "-p", "mine.json").json["profile"].startswith("js#")
    (clean_place / "bad.toml").write_text("k = ")
    assert "bad.toml: profile: not TOML" in cli("search", "x", "-s", notes, "-p", "bad.toml").err
    assert cli("search", "x", "-s", notes, "-p", "gone.toml").code == 2
    assert cli("search", "x", "-s", notes, "-p", "gone").code == 2


@pytest.mark.parametrize(
    "flags",
    [
        ("--alpha", "7"),
        ("--alpha", "abc"),
        ("--weight", "dense"),
        ("--weight", "smell=1"),
        ("--fusion", "magic"),
        ("--set", "rff_k=5"),
        ("--set", "weights=1"),
        ("--where", "nonsense"),
        ("--where", "sevrity=5"),
        ("--offset", "-1"),
        ("-k", "0"),
        ("--bogus",),
    ],
)
def test_wrong_flags_are_one_line_and_exit_2(cli, notes: Path, flags: tuple[str, ...]) -> None:
    ran = cli("search", "x", "-s", notes, *flags)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1


def test_no_answer_is_an_answer(cli, notes: Path) -> None:
    ran = cli("search", "zebra xylophone", "-s", notes, "--min-relevance", "0.99")
    assert ran.code == 0
    assert ran.out.startswith("no answer\n")
    assert cli("search", "zebra", "-s", notes, "--min-relevance", "0.99", "--json").json["hits"] == []


def test_what_is_missing_is_said(cli) -> None:
    cli("add", "words only", "--embedder", "none")
    ran = cli("search", "words")
    assert ran.code == 0
    assert "degraded: dense: found by words alone" in ran.out


def test_an_empty_question(cli, notes: Path) -> None:
    assert cli("search", " ", "-s", notes).code == 2


def test_store_and_collection_from_the_environment(cli, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_STORE", str(notes))
    assert cli("search", "gateway", "--json").json["hits"]
    monkeypatch.setenv("TRIVET_COLLECTION", "other")
    ran = cli("search", "gateway")
    assert ran.code == 1
    assert "has no 'other'; there are: default" in ran.err


def test_collections_are_apart(cli) -> None:
    cli("add", "in the first", "--id", "a")
    cli("add", "in the second", "--id", "b", "-c", "two")
    assert [hit["id"] for hit in cli("search", "in the", "-c", "two", "--json").json["hits"]] == ["b"]
