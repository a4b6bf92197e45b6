"""Conversations and memories of other programs, each from a fixture in the shape that it writes."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Iterator
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
    {"type": "user", "uuid": "u5", "sessionId": "s1",
     "message": {"role": "user", "content": "<command-name>/clear</command-name>\n<command-args></command-args>"}},
    {"type": "user", "uuid": "u6", "sessionId": "s1",
     "message": {"role": "user", "content": "<local-command-stdout>Cleared</local-command-stdout>"}},
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
MEM0 = [
    {"id": "1", "memory": "Ada likes tea", "user_id": "ada", "run_id": "r1", "metadata": {"topic": "food"},
     "created_at": "2026-06-01T10:00:00-07:00", "updated_at": None, "categories": ["food"], "hash": "x"},
    {"id": "2"},
]  # fmt: skip
#: An agent file of two agents that share a block: one speaks in its texts, the other sends a message and thinks.
LETTA = {
    "agents": [
        {
            "id": "agent-0", "name": "Loop", "agent_type": "letta_v1_agent", "block_ids": ["block-0", "block-1"],
            "messages": [
                {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Loop."}]},
                {"id": "message-1", "role": "user", "content": "Where is the pump?",
                 "created_at": "2026-06-01T10:00:00Z"},
                {"id": "message-2", "role": "assistant", "content": [{"type": "text", "text": "In the shed."}],
                 "tool_calls": [{"function": {"name": "archival_memory_insert", "arguments": "{}"}}],
                 "model": "m-1", "created_at": "2026-06-01T10:00:04Z"},
                {"id": "message-3", "role": "tool", "content": [{"type": "text", "text": "{}"}]},
            ],
        },
        {
            "id": "agent-1", "name": "Anna", "agent_type": "memgpt_agent", "block_ids": ["block-0", "gone"],
            "messages": [
                {"id": "message-0", "role": "user", "content": [{"type": "text", "text": '{"type": "login"}'}]},
                {"id": "message-1", "role": "user",
                 "content": [{"type": "text", "text": '{"type": "user_message", "message": "Hello"}'}]},
                {"id": "message-2", "role": "assistant", "content": [{"type": "text", "text": "A new user."}],
                 "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Good morning."}'}}]},
                {"id": "message-3", "role": "assistant", "content": [{"type": "text", "text": "I should look."}],
                 "tool_calls": [{"function": {"name": "conversation_search", "arguments": "{"}}]},
                {"role": "user", "content": "Without an id"},
            ],
        },
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Ada grows tomatoes.", "description": "About the user"},
        {"id": "block-1", "label": "persona", "value": "  "},
    ],
    "created_at": "2026-06-02T10:00:00Z",
}  # fmt: skip
#: What `model_dump(mode="json")` of Graphiti's classes gives, in the lists of one object.
GRAPHITI = {
    "exported_at": "2026-06-02T10:00:00Z",
    "episodes": [
        {"uuid": "e1", "name": "chat 1", "group_id": "ada", "source": "message", "source_description": "chat",
         "content": "Ada: I moved to Bern.", "valid_at": "2026-06-01T10:00:00Z", "created_at": "2026-06-01T10:00:09Z"},
        {"uuid": "e2", "name": "chat 2", "group_id": "ada", "source": "message",
         "content": "Ada: Hello\nassistant: Good morning", "created_at": "2026-06-01T11:00:00Z"},
        {"uuid": "e3", "name": "bare", "source": "text", "content": None},
        {"content": "no uuid"},
    ],
    "nodes": [
        {"uuid": "n1", "name": "Ada", "labels": ["Entity", "Person"], "summary": "Lives in Bern.",
         "attributes": {"age": 36}, "name_embedding": [0.1], "created_at": "2026-06-01T10:00:09Z"},
        {"uuid": "n2", "name": "Bern", "labels": ["Entity"], "summary": ""},
        {"uuid": "n3"},
    ],
    "edges": [
        {"uuid": "f1", "name": "LIVES_IN", "fact": "Ada lives in Rome.", "source_node_uuid": "n1",
         "target_node_uuid": "n4", "episodes": [], "valid_at": "2020-01-01T00:00:00Z",
         "invalid_at": "2026-05-01T00:00:00Z", "expired_at": "2026-06-01T00:00:00Z",
         "created_at": "2026-01-01T00:00:00Z", "fact_embedding": None},
        {"uuid": "f2", "name": "LIVES_IN", "fact": "Ada lives in Bern.", "source_node_uuid": "n1",
         "target_node_uuid": "n2", "episodes": ["e1"], "valid_at": "2026-05-01T00:00:00Z", "invalid_at": None,
         "created_at": "2026-06-01T10:00:09Z"},
        {"uuid": "m1", "source_node_uuid": "e1", "target_node_uuid": "n1", "group_id": "ada"},
        "junk",
    ],
}  # fmt: skip
#: A session of version 2 of Zep's API with its facts, and a thread of version 3.
ZEP = {
    "sessions": [
        {
            "session_id": "s1", "user_id": "ada", "created_at": "2026-06-01T09:00:00Z",
            "messages": [
                {"uuid": "m1", "role": "Ada", "role_type": "user", "content": "The door sticks.",
                 "created_at": "2026-06-01T10:00:00Z", "metadata": {"title": "x", "room": "shed"}},
                {"uuid": "m2", "role_type": "tool", "content": "{}"},
                {"content": "no uuid", "role_type": "user"},
            ],
            "facts": [
                {"uuid": "f1", "fact": "The door of the shed sticks.", "created_at": "2026-06-01T10:00:09Z",
                 "valid_at": "2026-06-01T10:00:00Z", "rating": 0.5},
                {"uuid": "f2", "content": "The shed is green.", "invalid_at": "2026-06-03T00:00:00Z"},
            ],
        }
    ],
    "threads": [
        {"thread_id": "t1", "messages": [
            {"uuid": "m3", "role": "assistant", "name": "Loop", "content": "Plane it.", "created_at": "yesterday"}]},
    ],
    "edges": [{"uuid": "g1", "fact": "Ada owns the shed.", "source_node_uuid": "n1", "target_node_uuid": "n2"}],
}  # fmt: skip


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


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
    assert broken.place.endswith("s1.jsonl line 8")


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
    path = tmp_path / "memories.json"
    path.write_text(json.dumps({"results": MEM0}))
    one, broken = read("mem0", path)
    assert one == {
        "id": "mem0-1",
        "text": "Ada likes tea",
        "kind": "memory",
        "meta": {"topic": "food", "user_id": "ada", "categories": ["food"], "session": "r1", "source": "mem0"},
        "created": "2026-06-01T10:00:00-07:00",
    }
    assert isinstance(broken, Broken)


def test_letta_gives_blocks_and_what_was_said(tmp_path: Path) -> None:
    write(tmp_path / "loop.af", LETTA)
    human, asked, told, other, hello, morning, broken = read("letta", tmp_path)
    assert human == {
        "id": "letta-Loop/human",
        "text": "Ada grows tomatoes.",
        "title": "human",
        "kind": "memory",
        "meta": {"agent": "Loop", "label": "human", "description": "About the user", "source": "letta"},
    }
    assert (asked["id"], asked["text"]) == ("letta-Loop/2026-06-01T10:00:00Z-user", "Where is the pump?")
    assert asked["meta"] == {"session": "Loop", "speaker": "user", "source": "letta"}
    assert (told["text"], told["meta"]["speaker"], told["meta"]["model"]) == ("In the shed.", "assistant", "m-1")
    assert (other["id"], other["meta"]["agent"]) == ("letta-Anna/human", "Anna")
    assert (hello["id"], hello["text"], hello["created"]) == ("letta-Anna/message-1", "Hello", None)
    assert morning["text"] == "Good morning."  # sent to the user; the texts beside are thoughts
    assert broken.reason == "a message without an id and a time"


def test_letta_of_a_file_with_one_agent_and_of_passages(tmp_path: Path) -> None:
    block = {"label": "human", "value": "Ada grows tomatoes."}
    one = {"name": "Loop", "core_memory": [block, {"label": 3}], "messages": None, "version": "0.6.47"}
    written, bad = read("letta", write(tmp_path / "old.af", json.dumps(one)))  # a JSON text in a JSON text
    assert written["id"] == "letta-Loop/human"
    assert (bad.place.rpartition("/")[2], bad.reason) == (
        "old.af blocks entry 1",
        "not a memory block: it needs `label` and `value`",
    )
    passage = {"id": "passage-1", "text": "The pump is blue.", "agent_id": "agent-9", "tags": ["pump"], "metadata": {}}
    given = [{**passage, "created_at": "2026-06-01T10:00:00Z"}, {"text": "no id"}]
    one, bad = read("letta", write(tmp_path / "passages.json", given))
    assert one == {
        "id": "letta-passage-1",
        "text": "The pump is blue.",
        "kind": "memory",
        "created": "2026-06-01T10:00:00Z",
        "meta": {"agent": "agent-9", "tags": ["pump"], "source": "letta"},
    }
    assert bad.reason == "not a passage: it needs `id` and `text`"
    assert read("letta", write(tmp_path / "all.json", {"passages": given}))[0] == one


def test_graphiti_gives_episodes_entities_and_facts_with_their_links(tmp_path: Path) -> None:
    chat, two, bare, nameless, ada, bern, unknown, rome, now, junk = read(
        "graphiti", write(tmp_path / "g.json", GRAPHITI)
    )
    assert chat == {
        "id": "graphiti-e1",
        "text": "I moved to Bern.",
        "title": "chat 1",
        "kind": "message",
        "created": "2026-06-01T10:00:00Z",
        "meta": {"session": "ada", "speaker": "Ada", "group": "ada", "description": "chat", "source": "graphiti"},
        "links": [{"target": "graphiti-n1", "type": "mentions"}],
    }
    assert (two["text"], two["created"]) == ("Ada: Hello\nassistant: Good morning", "2026-06-01T11:00:00Z")
    assert "speaker" not in two["meta"]
    assert [item.reason for item in (bare, nameless, unknown, junk)] == [
        "an episode without a text in `content`",
        "a record without a `uuid`",
        "not a record of a graph: it has none of `content`, `fact` and `name`",
        "not a JSON object",
    ]
    assert (ada["title"], ada["text"], ada["kind"]) == ("Ada", "Lives in Bern.", "entity")
    assert ada["meta"] == {"age": 36, "labels": ["Person"], "source": "graphiti"}
    assert (bern["title"], bern["text"]) == ("Bern", "")
    assert (rome["valid_from"], rome["valid_to"]) == ("2020-01-01T00:00:00Z", "2026-05-01T00:00:00Z")
    assert now == {
        "id": "graphiti-f2",
        "text": "Ada lives in Bern.",
        "title": "",
        "kind": "fact",
        "created": "2026-06-01T10:00:09Z",
        "valid_from": "2026-05-01T00:00:00Z",
        "meta": {"relation": "LIVES_IN", "source": "graphiti"},
        "links": [
            {"target": "graphiti-n1", "type": "subject"},
            {"target": "graphiti-n2", "type": "object"},
            {"target": "graphiti-e1", "type": "stated-in"},
        ],
    }


def test_zep_gives_messages_facts_and_graphs(tmp_path: Path) -> None:
    door, broken, fact, ended, plane, edge = read("zep", write(tmp_path / "zep.json", ZEP))
    assert door == {
        "id": "zep-m1",
        "text": "The door sticks.",
        "title": "",
        "kind": "message",
        "created": "2026-06-01T10:00:00Z",
        "meta": {"session": "s1", "speaker": "user", "room": "shed", "user_id": "ada", "name": "Ada", "source": "zep"},
    }
    assert broken.reason == "not a message: it needs `uuid` and `content`"
    assert (fact["id"], fact["kind"], fact["valid_from"]) == ("zep-f1", "fact", "2026-06-01T10:00:00Z")
    assert fact["meta"] == {"rating": 0.5, "conversation": "s1", "user_id": "ada", "source": "zep"}
    assert (ended["text"], ended["valid_to"]) == ("The shed is green.", "2026-06-03T00:00:00Z")
    assert (plane["meta"]["session"], plane["meta"]["speaker"], plane["meta"]["name"]) == ("t1", "assistant", "Loop")
    assert (edge["id"], edge["links"][0]["target"]) == ("zep-g1", "zep-n1")
    answer = {"messages": ZEP["sessions"][0]["messages"][:1]}  # of one session, as its route answers
    assert "session" not in read("zep", write(tmp_path / "m.json", answer))[0]["meta"]


WRONG = (None, True, 0, 1e300, "", "x", [], [0], {}, {"a": []})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON value."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


@pytest.mark.parametrize(
    ("source", "name", "export"),
    [
        ("chatgpt", "conversations.json", CHATGPT),
        ("claude", "conversations.json", CLAUDE),
        ("mem0", "m.json", MEM0),
        ("letta", "a.af", LETTA),
        ("graphiti", "g.json", GRAPHITI),
        ("zep", "z.json", ZEP),
        ("claude-code", "s.jsonl", CLAUDE_CODE),
        ("codex", "rollout-a.jsonl", CODEX),
    ],
)
def test_a_value_of_a_wrong_type_stops_no_import(tmp_path: Path, source: str, name: str, export: Any) -> None:
    path = tmp_path / name
    for place in places(export):
        for wrong in WRONG:
            changed = replaced(export, place, wrong)
            if path.suffix == ".jsonl":
                write_lines(path, changed if isinstance(changed, list) else [changed])
            else:
                write(path, changed)
            try:
                found = read(source, path)
            except InputError as error:
                assert str(error).startswith("import: ")
                continue
            assert all(isinstance(item, Broken) or isinstance(item["text"], str) for item in found)


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


def test_a_conversation_of_a_wrong_type_is_named(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{"id": "c1", "mapping": []}, {"id": "c2"}]))
    (broken,) = read("chatgpt", tmp_path)
    assert str(broken.place).endswith("conversations.json entry 0")
    assert broken.reason == "mapping: list instead of an object"


@pytest.mark.parametrize("source", ["chatgpt", "claude", "mem0", "letta", "graphiti", "zep"])
def test_an_export_that_is_none_is_refused(tmp_path: Path, source: str) -> None:
    bad = tmp_path / "conversations.json"
    for content, reason in (("{", "not JSON"), ("", "not JSON"), ("3", "instead of a list|no list of|it has none of")):
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
