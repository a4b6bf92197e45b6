"""``trivet export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number))


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


def test_an_import_takes_the_vectors_of_every_passage(cli, clean_place: Path) -> None:
    text = " ".join(f"Lock number {at} opens the door of room {at}." for at in range(300))
    cli("add", text, "--id", "keys", "-s", "one.db")
    assert cli("export", "out.jsonl", "--vectors", "-s", "one.db").code == 0
    line = json.loads((clean_place / "out.jsonl").read_text().splitlines()[1])
    assert len(line["vector"]) > 3
    found = cli("import", "out.jsonl", "-s", "two.db", "--no-wait", "--json").json
    assert (found["added"], found["pending"]) == (1, 0)
    assert cli("export", "-", "--vectors", "-s", "two.db").out == (clean_place / "out.jsonl").read_text()
