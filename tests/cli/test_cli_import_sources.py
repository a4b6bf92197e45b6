"""``trivet import --from``: again, changed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import trivet
from files.test_sources import CHATGPT, CLAUDE, CLAUDE_CODE, CODEX, GRAPHITI, LETTA, ZEP, chroma, write, write_lines


def test_every_source_is_imported_once_and_then_updated(cli, clean_place: Path) -> None:
    (clean_place / "gpt.json").write_text(json.dumps(CHATGPT[:1]))
    (clean_place / "claude.json").write_text(json.dumps(CLAUDE))
    (clean_place / "mem.json").write_text(json.dumps([{"id": "1", "memory": "Ada likes tea", "user_id": "ada"}]))
    write_lines(clean_place / "cc/s1.jsonl", CLAUDE_CODE)
    write_lines(clean_place / "cx/rollout-a.jsonl", CODEX)
    given = {"chatgpt": "gpt.json", "claude": "claude.json", "mem0": "mem.json", "claude-code": "cc", "codex": "cx"}
    for source, path in given.items():
        told = cli("import", "--from", source, path, "--json").json
        assert (told["added"], told["broken"]) == (1 if source == "mem0" else 2, []), source
        assert cli("import", "--from", source, path, "--json").json["unchanged"] == told["added"], source
    write_lines(clean_place / "cx/rollout-a.jsonl", [*CODEX, CODEX[4]])
    assert cli("import", "--from", "codex", "cx").out.startswith("1 added · 0 updated · 2 unchanged")
    hit = cli("search", "fix gate", "--where", "session=s9", "--json").json["hits"][0]
    assert (hit["id"], hit["document"]["meta"]["speaker"]) == ("codex-s9-3", "user")


def test_memories_with_their_validity_and_links(cli, clean_place: Path) -> None:
    write(clean_place / "g.json", GRAPHITI)
    told = cli("import", "--from", "graphiti", "g.json", "--prefix", "old/", "--json").json
    assert (told["added"], len(told["broken"])) == (6, 4)
    fact = cli("get", "old/graphiti-f2", "--json").json
    targets = {link["type"]: link["target"] for link in fact["links"]}
    assert targets == {"subject": "old/graphiti-n1", "object": "old/graphiti-n2", "stated-in": "old/graphiti-e1"}
    with trivet.open(clean_place / "memory.db") as engine:
        hits = engine.search("where does Ada live", where={"kind": "fact"}, as_of="2026-06-01")
    assert [hit.id for hit in hits] == ["old/graphiti-f2"]
    write(clean_place / "a.af", LETTA)
    assert cli("import", "--from", "letta", "a.af", "--json").json["added"] == 6
    assert cli("import", "--from", "letta", "a.af", "--json").json["unchanged"] == 6


def test_a_time_that_is_none_is_named_and_the_rest_goes_in(cli, clean_place: Path) -> None:
    write(clean_place / "z.json", ZEP)
    ran = cli("import", "--from", "zep", "z.json")
    assert (ran.code, ran.out.startswith("4 added")) == (2, True)
    assert "trivet: z.json zep-m3: created: 'yesterday' is not a time" in ran.err


def test_a_vector_without_a_document_is_an_error_and_the_rest_goes_in(cli, clean_place: Path) -> None:
    chroma(clean_place / "db")
    ran = cli("import", "--from", "chroma", "db", "--prefix", "old/")
    assert ran.code == 2
    assert "trivet: notes/bare: no document, only a vector" in ran.err
    assert cli("get", "old/notes/door", "--json").json["text"] == "The door sticks."


def test_a_vault_of_obsidian_with_its_links(cli, clean_place: Path) -> None:
    vault = clean_place / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Pump.md").write_text("---\ntags: [garden]\n---\nSee [[Door|the door]].")
    (vault / "Door.md").write_text("It sticks.")
    assert cli("import", "--from", "obsidian", vault, "--json").json["added"] == 2
    assert cli("get", "Pump.md", "--json").json["links"][0]["target"] == "Door.md"
    ran = cli("import", "--from", "obsidian", clean_place)
    assert ran.code == 2
    assert "it has no folder .obsidian" in ran.err


def test_an_unknown_source_and_a_missing_path(cli, clean_place: Path) -> None:
    ran = cli("import", "--from", "notion", ".")
    assert ran.code == 2
    known = "chatgpt, claude, claude-code, codex, mem0, letta, graphiti, zep, chroma, lancedb, obsidian"
    assert f"--from: 'notion' is unknown; known: {known}" in ran.err
    assert cli("import", "--from", "codex", "nowhere").code == 2


def test_texts_without_a_vector_where_the_caller_brings_them(cli, clean_place: Path) -> None:
    (clean_place / "a.jsonl").write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": "two", "vector": [1, 0]}\n')
    ran = cli("import", "a.jsonl", "--embedder", "vectors:2")
    assert ran.code == 0
    assert "1 passage without a vector, which words alone find" in ran.err
    assert "reembed" not in ran.err
