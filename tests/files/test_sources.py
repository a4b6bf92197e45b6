"""Conversations and memories of other programs, each from a fixture in the shape that it writes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from made_files import zipped
from trivet.errors import InputError
from trivet.files.jsonl import Broken
from trivet.files.sources import SOURCES


def read(source: str, path: Path) -> list[Any]:
    return list(SOURCES[source](path))


def node(id: str, parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
    message = {"id": id, "author": {"role": role}, "content": {"content_type": "text", "parts": list(parts)}, **more}
    return {"id": id, "parent": parent, "children": [], "message": message if role else None}


CHATGPT = [
    {
        "title": "Pump",
        "conversation_id": "c1",
        "create_time": 1780300800.0,
        "current_node": "a2",
        "mapping": {
            item["id"]: item
            for item in (
                node("root", None),
                node("s", "root", "system", "", weight=0),
                node("u1", "s", "user", "How high does it lift?", create_time=1780300801.5),
                node("a1", "u1", "assistant", "An answer that was replaced."),
                node("a2", "u1", "assistant", "Four metres.", {"asset": "x"}, metadata={"model_slug": "gpt-x"}),
                node("t", "a2", "tool", "{}"),
            )
        },
    },
    "junk",
]
CLAUDE = [
    {
        "uuid": "c2",
        "name": "Door",
        "created_at": "2026-06-01T10:00:00Z",
        "project_uuid": "p1",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Why does it stick?", "created_at": "2026-06-01T10:00:01Z"},
            {"uuid": "m2", "sender": "assistant", "text": "", "content": [{"type": "text", "text": "Rain."}]},
            {"uuid": "m3", "sender": "assistant", "text": "", "content": [{"type": "tool_use"}]},
        ],
    }
]
CLAUDE_CODE = [
    {"type": "summary", "summary": "x", "leafUuid": "y"},
    {"type": "user", "uuid": "u1", "sessionId": "s1", "cwd": "/home/ada/heron", "timestamp": "2026-06-01T10:00:00Z",
     "message": {"role": "user", "content": "Fix the gate"}},
    {"type": "assistant", "uuid": "u2", "sessionId": "s1", "timestamp": "2026-06-01T10:00:05Z",
     "message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done."}]}},
    {"type": "user", "uuid": "u3", "sessionId": "s1",
     "message": {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]}},
    {"type": "user", "uuid": "u4", "sessionId": "s1", "isSidechain": True, "message": {"content": "sub-agent"}},
]  # fmt: skip
CODEX = [
    {"timestamp": "2026-06-01T10:00:00Z", "type": "session_meta", "payload": {"id": "s9", "cwd": "/home/ada/heron"}},
    {"timestamp": "2026-06-01T10:00:01Z", "type": "response_item", "payload": {"type": "message", "role": "user",
     "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}},
    {"timestamp": "2026-06-01T10:00:02Z", "type": "response_item", "payload": {"type": "message", "role": "user",
     "content": [{"type": "input_text", "text": "Fix the gate"}]}},
    {"timestamp": "2026-06-01T10:00:02Z", "type": "event_msg", "payload": {"type": "user_message", "message": "Fix"}},
    {"timestamp": "2026-06-01T10:00:09Z", "type": "response_item", "payload": {"type": "message", "role": "assistant",
     "content": [{"type": "output_text", "text": "Done."}]}},
    {"timestamp": "2026-06-01T10:00:09Z", "type": "response_item", "payload": {"type": "reasoning", "summary": []}},
]  # fmt: skip


def write_lines(path: Path, items: list[Any], end: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items) + end)
    return path


@pytest.mark.parametrize("how", ["file", "folder", "zip"])
def test_chatgpt_gives_the_branch_that_was_shown(tmp_path: Path, how: str) -> None:
    content = json.dumps(CHATGPT)
    path = tmp_path / ("export.zip" if how == "zip" else "conversations.json")
    path.write_bytes(zipped({"user.json": "{}", "a/conversations.json": content}) if how == "zip" else content.encode())
    one, two, junk = read("chatgpt", tmp_path if how == "folder" else path)
    assert (one["id"], one["text"], one["title"]) == ("chatgpt-u1", "How high does it lift?", "Pump")
    assert one["created"] == datetime.fromtimestamp(1780300801.5, UTC)
    assert one["meta"] == {"session": "c1", "speaker": "user", "source": "chatgpt"}
    assert (two["text"], two["meta"]["model"], two["meta"]["speaker"]) == ("Four metres.", "gpt-x", "assistant")
    assert isinstance(junk, Broken)


def test_claude_gives_the_texts_of_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CLAUDE))
    one, two = read("claude", path)
    assert one == {
        "id": "claude-m1",
        "text": "Why does it stick?",
        "title": "Door",
        "kind": "message",
        "created": "2026-06-01T10:00:01Z",
        "meta": {"session": "c2", "speaker": "user", "source": "claude", "project": "p1"},
    }
    assert (two["text"], two["created"]) == ("Rain.", "2026-06-01T10:00:00Z")


def test_claude_code_leaves_out_tools_thoughts_and_sub_agents(tmp_path: Path) -> None:
    write_lines(tmp_path / "-home-ada-heron/s1.jsonl", CLAUDE_CODE, '{"half')
    one, two, broken = read("claude-code", tmp_path)
    assert (one["id"], one["text"]) == ("claude-code-u1", "Fix the gate")
    assert one["meta"] == {"session": "s1", "speaker": "user", "source": "claude-code", "project": "/home/ada/heron"}
    assert (two["text"], two["meta"]["speaker"], two["created"]) == ("Done.", "assistant", "2026-06-01T10:00:05Z")
    assert broken.place.endswith("s1.jsonl line 6")


def test_codex_of_both_versions(tmp_path: Path) -> None:
    write_lines(tmp_path / "2026/06/01/rollout-a.jsonl", CODEX)
    old = [{"id": "s8", "timestamp": "2025-05-01T10:00:00Z"}, CODEX[2]["payload"]]
    write_lines(tmp_path / "2026/06/01/rollout-b.jsonl", old)
    write_lines(tmp_path / "history.jsonl", [{"session_id": "s9"}])
    one, two, three = read("codex", tmp_path)
    assert (one["id"], one["text"], one["created"]) == ("codex-s9-3", "Fix the gate", "2026-06-01T10:00:02Z")
    assert one["meta"] == {"session": "s9", "speaker": "user", "source": "codex", "project": "/home/ada/heron"}
    assert (two["id"], two["meta"]["speaker"]) == ("codex-s9-5", "assistant")
    assert (three["id"], three["created"]) == ("codex-s8-2", "2025-05-01T10:00:00Z")


def test_mem0_keeps_owner_run_and_metadata(tmp_path: Path) -> None:
    memories = [
        {"id": "1", "memory": "Ada likes tea", "user_id": "ada", "run_id": "r1", "metadata": {"topic": "food"},
         "created_at": "2026-06-01T10:00:00-07:00", "updated_at": None, "categories": ["food"], "hash": "x"},
        {"id": "2"},
    ]  # fmt: skip
    path = tmp_path / "memories.json"
    path.write_text(json.dumps({"results": memories}))
    one, broken = read("mem0", path)
    assert one == {
        "id": "mem0-1",
        "text": "Ada likes tea",
        "kind": "memory",
        "meta": {"topic": "food", "user_id": "ada", "categories": ["food"], "session": "r1", "source": "mem0"},
        "created": "2026-06-01T10:00:00-07:00",
    }
    assert isinstance(broken, Broken)


def chroma(folder: Path) -> Path:
    """Write the tables of Chroma's persistent client that hold documents and metadata."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.executescript(
            """
            CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT, scope TEXT, collection TEXT);
            CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT, seq_id BLOB,
                created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
            CREATE TABLE embedding_metadata (id INTEGER, key TEXT NOT NULL, string_value TEXT, int_value INTEGER,
                float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
            INSERT INTO collections VALUES ('c', 'notes');
            INSERT INTO segments VALUES ('s', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'c');
            INSERT INTO embeddings VALUES (1, 's', 'door', x'01', '2026-06-01 10:00:00');
            INSERT INTO embeddings VALUES (2, 's', 'bare', x'02', '2026-06-01 10:00:00');
            INSERT INTO embedding_metadata VALUES (1, 'chroma:document', 'The door sticks.', NULL, NULL, NULL),
                (1, 'page', NULL, 0, NULL, NULL), (1, 'wet', NULL, NULL, NULL, 1), (1, 'rate', NULL, NULL, 0.5, NULL);
            """
        )
    return folder


def test_chroma_gives_documents_with_their_metadata(tmp_path: Path) -> None:
    one, bare = read("chroma", chroma(tmp_path / "db"))
    assert one == {
        "id": "notes/door",
        "text": "The door sticks.",
        "meta": {"page": 0, "rate": 0.5, "wet": True, "source": "chroma"},
        "created": "2026-06-01T10:00:00Z",
    }
    assert bare == Broken("notes/bare", "no document, only a vector")


@pytest.mark.parametrize("source", ["chatgpt", "claude", "mem0"])
def test_an_export_that_is_none_is_refused(tmp_path: Path, source: str) -> None:
    bad = tmp_path / "conversations.json"
    for content, reason in (("{", "not JSON"), ('"x"', "instead of a list")):
        bad.write_text(content)
        with pytest.raises(InputError, match=reason):
            read(source, bad)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no"):
        read(source, tmp_path / "empty")
    (tmp_path / "a.zip").write_bytes(b"no zip")
    with pytest.raises(InputError, match="broken"):
        read(source, tmp_path / "a.zip")


@pytest.mark.parametrize("source", ["claude-code", "codex", "chroma"])
def test_a_folder_with_nothing_in_it_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match="has no"):
        read(source, tmp_path)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"junk" * 400)
    with pytest.raises(InputError, match="not a database of Chroma"):
        read("chroma", tmp_path)
