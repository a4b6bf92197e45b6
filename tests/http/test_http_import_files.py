"""``POST /import?filename=``: the files that the command line reads, and the same refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from cli.test_cli_import_files import FILES, FOUND, REFUSED
from made_files import pdf

HOME = "/v1/collections/default"


def send(client: TestClient, name: str, content: bytes, **more: str) -> dict[str, Any]:
    answer = client.post(f"{HOME}/import", params={"filename": name, **more}, content=content)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text.splitlines()[-1])
    return found


def test_every_kind_of_file_is_found_at_its_place(client: TestClient) -> None:
    for name, content in FILES.items():
        last = send(client, name, content, modified="2026-06-01T10:00:00Z")
        assert (last["done"], last["broken"]) == (True, 0), name
    assert last["notes"] == [{"file": "größe.txt", "note": "read as cp1252"}]
    for word, (id, location) in FOUND.items():
        hit = client.get(f"{HOME}/search", params={"q": word}).json()["hits"][0]
        assert (hit["id"], hit["location"]) == (id, location), word
    assert client.get(f"{HOME}/documents/manual.pdf").json()["created"].startswith("2026-06-01T10:00:00")
    assert send(client, "manual.pdf", FILES["manual.pdf"], modified="2026-06-01T10:00:00Z")["unchanged"] == 1


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_named_and_not_stored(client: TestClient, name: str) -> None:
    content, reason = REFUSED[name]
    last = send(client, name, content)
    assert (last["added"], last["broken"]) == (0, 1)
    assert last["problems"][0]["line"] == name
    assert last["problems"][0]["reason"].startswith(reason)
    assert client.get(f"{HOME}/stats").json()["documents"] == 0


def test_markdown_and_json_lines_are_read_by_their_names_too(client: TestClient) -> None:
    assert send(client, "a.md", b"---\ntitle: Side door\n---\nIt sticks.")["added"] == 1
    assert client.get(f"{HOME}/documents/a.md").json()["title"] == "Side door"
    assert send(client, "b.jsonl", b'{"id": "x", "text": "see [[a.md]]"}\n{"id": "y", "text": "two"}\n')["added"] == 2
    last = send(client, "c.md", b"---\na: b: c\n---\nx")
    assert last["problems"][0]["line"].startswith("c.md line ")


def test_an_id_of_its_own_and_a_file_that_is_too_large(service: Any) -> None:
    client = service(max_body_bytes=10_000)
    assert send(client, "a.pdf", pdf("x"), id="manual")["added"] == 1
    assert client.get(f"{HOME}/documents/manual").json()["meta"]["path"] == "a.pdf"
    last = send(client, "b.txt", b"x" * 20_000)
    assert last["done"] is False
    assert "more than 10,000 bytes; a file is read as a whole" in last["error"]
    assert client.post(f"{HOME}/import?filename=", content=b"x").status_code == 422
