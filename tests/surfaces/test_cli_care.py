"""Can a store be tuned, looked at, checked, re-embedded, rebuilt and exported from the command line?"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from trivet.profile import PROFILES


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number))


def test_settings_are_toml_with_their_identity(cli, three) -> None:
    out = cli("settings").out
    assert out.startswith("# default#")
    assert tomllib.loads(out)["weights"] == dict(PROFILES["default"].weights)


def test_settings_change_for_good(cli, three) -> None:
    changed = cli("settings", "--set", "weights.dense=2", "--set", "rrf_k=5", "--json").json
    assert (changed["weights"]["dense"], changed["rrf_k"]) == (2.0, 5.0)
    assert cli("settings", "--json").json == changed
    from_profile = cli("settings", "--profile", "memories", "--set", "k=3", "--json").json
    assert (from_profile["name"], from_profile["k"], from_profile["fusion"]) == ("memories", 3, "rrf")
    assert cli("search", "apple", "--json").json["profile"].startswith("memories#")


@pytest.mark.parametrize("change", ["profile=x", "k=many", "weights.smell=1", "k", "weights.dense=99"])
def test_wrong_settings_change_nothing(cli, three, change: str) -> None:
    before = cli("settings", "--json").json
    assert cli("settings", "--set", change).code == 2
    assert cli("settings", "--json").json == before


def test_profiles(cli) -> None:
    out = cli("profiles").out
    assert all(f"\n{profile.identity}" in out for profile in PROFILES.values())
    assert [item["name"] for item in cli("profiles", "--json").json] == list(PROFILES)
    assert tomllib.loads(cli("profiles", "chunks").out)["gates"] == {"trigram": 0.3}
    assert cli("profiles", "chunks", "--json").json["identity"] == PROFILES["chunks"].identity
    assert cli("profiles", "nope").code == 2


def test_stats(cli, three) -> None:
    found = cli("stats", "--json").json
    assert (found["documents"], found["passages"], found["embedded"], found["pending"]) == (3, 3, 3, 0)
    assert found["collections"] == ["default"]
    out = cli("stats").out
    assert "documents   3\n" in out
    assert "hashing" in out


def test_doctor_of_a_sound_store(cli, three) -> None:
    ran = cli("doctor", "--json")
    assert ran.code == 0, ran.out
    checks = {check["name"]: check for check in ran.json["checks"]}
    assert {"python", "sqlite", "numpy", "tantivy", "store", "verify", "index", "model", "embedded"} <= set(checks)
    assert all(check["ok"] for check in checks.values())
    assert "ok  store" in cli("doctor").out


def test_doctor_without_a_store_says_how_to_make_one(cli, clean_place: Path) -> None:
    ran = cli("doctor")
    assert ran.code == 1
    assert "NO  store" in ran.out
    assert "→ trivet import -s memory.db -c default FOLDER" in ran.out
    assert "ok  numpy" in ran.out
    assert not (clean_place / "memory.db").exists()


def test_doctor_of_a_damaged_file(cli, clean_place: Path) -> None:
    (clean_place / "memory.db").write_bytes(b"not a database, far from it" * 100)
    ran = cli("doctor")
    assert ran.code == 1
    assert "NO  store" in ran.out


def test_doctor_names_a_model_that_does_not_load(cli, clean_place: Path) -> None:
    import sqlite3

    cli("add", "one apple")
    with sqlite3.connect("memory.db") as connection:
        connection.execute("UPDATE models SET spec = 'folder:/nowhere/at/all'")
    connection.close()
    ran = cli("doctor", "--json")
    assert ran.code == 1
    broken = next(check for check in ran.json["checks"] if check["name"] == "model")
    assert not broken["ok"]
    assert broken["mend"].startswith("trivet reembed -s memory.db")
    assert cli("reembed", "--embedder", "hashing").code == 0
    assert cli("doctor").code == 0


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


def test_export_to_a_file_and_to_a_pipe(cli, three, clean_place: Path) -> None:
    assert cli("export", "out.jsonl").out == "wrote 3 documents to out.jsonl\n"
    assert cli("export", "out.jsonl", "--json").json == {"documents": 3, "file": "out.jsonl"}
    streamed = cli("export", "-").out
    assert streamed == (clean_place / "out.jsonl").read_text()
    header, *documents = map(json.loads, streamed.splitlines())
    assert header["trivet"] == 1
    assert [document["text"] for document in documents] == ["one apple", "two pears", "three plums"]
    assert "vector" in json.loads(cli("export", "-", "--vectors").out.splitlines()[1])
    assert cli("export", "no/such/folder/out.jsonl").code == 1
