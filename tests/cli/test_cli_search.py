"""``trivet search``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import trivet
from trivet import data

QUESTION = "Stilt status light steady red"
#: They say the same; which of the two is shown is the ranking's business.
ANSWERS = ("note-stilt-led-codes", "note-led-codes-pasted")


def test_plain_lines_in_a_pipe(cli, notes: Path) -> None:
    ran = cli("search", QUESTION, "-s", notes, "-k", "3")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("1  0.")
    assert lines[0].split()[2] in ("strong", "likely", "weak")
    assert lines[0].split()[3] in ANSWERS
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
    assert hit["text"]
    assert hit["document"]["meta"]["project"]
    assert sum(one["share"] for one in hit["contributions"]) == pytest.approx(hit["fused"])
    assert {"leg", "rank", "raw", "normalised", "weight", "share"} == set(hit["contributions"][0])
    assert {stage["name"] for stage in found["trace"]} >= {"lexical", "dense", "fusion", "total"}


def test_json_has_the_whole_text_on_request(cli, tmp_path: Path) -> None:
    store, text = tmp_path / "long.db", " ".join(f"Lock number {at} opens the door of room {at}." for at in range(300))
    assert cli("add", text, "--id", "keys", "-s", store, "--embedder", "none").code == 0
    asked = ("search", "lock of room 250", "-s", store, "--json")
    (lean,) = cli(*asked).json["hits"]
    assert "text" not in lean["document"]
    assert "text" not in lean["passage"]
    (whole,) = cli(*asked, "--full").json["hits"]
    assert whole["document"]["text"] == text
    assert whole["passage"]["text"] == whole["text"] == lean["text"]
    assert len(lean["text"]) < len(text) / 3
    assert cli(*asked, "--fields", "id, text").json["hits"] == [{"id": "keys", "text": lean["text"]}]


def test_fields_that_a_hit_does_not_have(cli, notes: Path) -> None:
    wrong = cli("search", "door", "-s", notes, "--json", "--fields", "id,colour")
    assert wrong.code == 2
    assert "fields: a hit has no 'colour'; known: rank, id" in wrong.err
    assert "add --json" in cli("search", "door", "-s", notes, "--full").err


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
    assert ran.out.startswith("no hits\n")
    assert cli("search", "zebra", "-s", notes, "--min-relevance", "0.99", "--json").json["hits"] == []


def test_an_empty_collection_is_named(cli, notes: Path) -> None:
    assert "is empty" not in cli("search", "zebra", "-s", notes, "--min-relevance", "0.99").err
    cli("add", "words", "--id", "a")
    cli("delete", "a", "--yes")
    ran = cli("search", "words")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "no hits")
    assert ran.err == "the collection 'default' is empty; fill it with `trivet add` or `trivet import`\n"


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
    assert "there is no 'other' in " in ran.err


def test_collections_are_apart(cli) -> None:
    cli("add", "in the first", "--id", "a")
    cli("add", "in the second", "--id", "b", "-c", "two")
    assert [hit["id"] for hit in cli("search", "in the", "-c", "two", "--json").json["hits"]] == ["b"]


@pytest.mark.slow  # embeds the notes with the built-in model
def test_careful_finds_what_the_readme_says(cli, tmp_path: Path) -> None:
    demo = tmp_path / "demo.db"
    with trivet.open(demo) as memory:
        memory.add(data.notes())
        memory.wait()
    query = "which database holds the readings?"
    quick = cli("search", query, "-s", demo, "--json").json["hits"]
    found = cli("search", query, "-s", demo, "--careful", "--json").json
    assert quick[0]["id"] == "decision-hysteresis"
    assert found["hits"][0]["id"] == "decision-storage-timescale"
    assert found["profile"].startswith("careful#")
    assert "logit" in str(found["hits"][0]["adjustments"])


def test_careful_is_not_combined_with_another_profile(cli, notes: Path) -> None:
    ran = cli("search", QUESTION, "-s", notes, "--careful", "-p", "snippets")
    assert ran.code == 2
    assert "leave out --profile" in ran.err


def test_careful_keeps_the_settings_of_a_collection_that_are_not_the_default(cli, notes: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert cli("add", "The door sticks.", "-s", copy, "--embedder", "none").code == 0
    assert cli("settings", "-s", copy, "-p", "memories").code == 0
    ran = cli("search", "door", "-s", copy, "--careful")
    assert ran.code == 2
    assert "has 'memories'; write --profile careful" in ran.err
    assert cli("search", "door", "-s", copy, "-p", "careful").code == 0


# --- what an import left for later


def test_a_search_embeds_nothing_and_names_what_does(cli, clean_place: Path) -> None:
    with trivet.open("my memory.db", "team notes", embedder="hashing") as memory:
        memory._models.backlog.close()  # as if the process had ended
        memory.add([{"id": str(number), "text": f"door {number}"} for number in range(40)])
    place = ("-s", "my memory.db", "-c", "team notes")
    found = cli("search", "door 7", *place)
    assert "40 of 40 passages are not embedded yet" in found.out
    assert "`trivet reembed -s 'my memory.db' -c 'team notes'` finishes it now" in found.err
    assert cli("stats", *place, "--json").json["embedded"] == 0
    assert cli("reembed", *place, "--json").json["embedded"] == 40
    assert cli("search", "door 7", *place).err == ""


def test_the_next_process_uses_the_graph_of_an_import(process, clean_place: Path) -> None:
    notes = [{"id": str(number), "text": f"Gateway Mistral-{number} of Ann"} for number in range(6_000)]
    (clean_place / "notes.jsonl").write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    assert process("import", "notes.jsonl").code == 0
    assert _graph(process) == "found"
    (folder,) = clean_place.glob("memory.db.index/*/graph")
    shutil.rmtree(folder)
    assert _graph(process) == _graph(process) == "behind"  # a process that ends at once never makes it
    assert process("reembed").code == 0
    assert _graph(process) == "found"


def _graph(process) -> str:
    ran = process("search", "Mistral-17", "--json")
    found = json.loads(ran.out)
    if [item["part"] for item in found["degraded"]] == ["graph"]:
        assert process("search", "Mistral-17").err == "`trivet reembed -s memory.db -c default` finishes it now\n"
        return "behind"
    assert found["degraded"] == []
    return "found" if any(stage["name"] == "graph" for stage in found["trace"]) else "not asked"


def test_a_query_in_another_language_names_what_to_do(cli) -> None:
    cli("add", "The key is next to the door.", "--embedder", "builtin")
    ran = cli("search", "Wo ist der Schlüssel für die Tür?")
    assert "the model does not read the language of this query" in ran.err
    assert "trivet reembed --embedder multilingual" in ran.err
    assert "does not read" not in cli("search", "where is the key of the door").err
