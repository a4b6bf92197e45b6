"""``trivet doctor``."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from trivet.cli.doctor import PACKAGES


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number))


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
    assert "FAILED  store" in ran.out
    assert "→ trivet import -s memory.db -c default FOLDER" in ran.out
    assert "ok      numpy" in ran.out
    assert not (clean_place / "memory.db").exists()


def test_doctor_of_a_damaged_file(cli, clean_place: Path) -> None:
    (clean_place / "memory.db").write_bytes(b"not a database, far from it" * 100)
    ran = cli("doctor")
    assert ran.code == 1
    assert "FAILED  store" in ran.out


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


def test_doctor_tells_of_a_flipped_bit_in_a_text_and_of_the_way_out(cli) -> None:
    cli("add", "the kettle is descaled on Mondays", "--id", "kettle")
    data = Path("memory.db").read_bytes()
    assert b"descaled" in data
    Path("memory.db").write_bytes(data.replace(b"descaled", b"descalee"))
    ran = cli("doctor", "--json")
    assert ran.code == 1
    (check,) = [check for check in ran.json["checks"] if not check["ok"]]
    assert "document 'kettle': its title or text is not what was written" in check["said"]
    assert check["mend"].startswith("restore a backup; or trivet export ")


def test_doctor_says_rebuild_for_a_damaged_index(cli) -> None:
    Path("many.jsonl").write_text("".join(f'{{"text": "note {number}"}}\n' for number in range(1_200)))
    cli("import", "many.jsonl")
    store = next(Path("memory.db.index").rglob("words/*.store"))
    data = bytearray(store.read_bytes())
    data[len(data) // 2] ^= 8
    store.write_bytes(data)
    (check,) = [check for check in cli("doctor", "--json").json["checks"] if not check["ok"]]
    assert f"words: {store.name} is damaged" in check["said"]
    assert check["mend"].startswith("trivet rebuild ")


def test_only_packages_of_a_base_install_are_looked_for() -> None:
    declared = {
        re.split(r"[<>=!~ ;\[]", item)[0].lower()
        for item in metadata.requires("trivet") or []
        if "extra ==" not in item
    }
    assert {name.lower() for name in PACKAGES} <= {"trivet", *declared}
