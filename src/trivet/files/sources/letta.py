"""Letta: memory blocks and messages of agent files (``.af``), and exported passages of the archival memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports

#: The type of agent whose texts are said to the user. The others say what they send, and think in the text beside it.
_SPEAKS_IN_TEXT = "letta_v1_agent"
_SENDS = "send_message"
_SPEAKERS = ("user", "assistant")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "*.af", "*.json"):
        # the API answers with the file as one JSON text, and some save it like that
        whole = exports.parsed(found, name) if isinstance(found, str) else found
        if not isinstance(whole, dict):
            yield from exports.entries(whole, name, _passage)
        elif "passages" in whole:
            yield from exports.entries(whole["passages"], name, _passage)
        elif "core_memory" in whole:  # a file of one agent, before version 0.8
            yield from _agent(whole, name, whole["core_memory"])
        else:
            yield from exports.entries(whole.get("agents"), name, _of_file(whole))


def _of_file(whole: dict[str, Any]) -> exports.Convert:
    """Return what reads an agent of a file whose blocks stand beside the agents that share them."""
    blocks = whole.get("blocks")

    def convert(agent: dict[str, Any], place: str) -> Iterator[exports.Item]:
        ids = agent.get("block_ids")
        if not isinstance(blocks, list) or not isinstance(ids, list):
            return _agent(agent, place, ids if isinstance(blocks, list) else blocks)
        return _agent(agent, place, [block for block in blocks if exports.mapping(block).get("id") in ids])

    return convert


def _agent(agent: dict[str, Any], place: str, blocks: Any) -> Iterator[exports.Item]:
    owner = agent.get("name") or agent.get("id")
    if not isinstance(owner, str):
        yield Broken(place, "an agent without a name")
        return

    def block(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
        label, text = found.get("label"), found.get("value")
        if not isinstance(label, str) or not isinstance(text, str):
            yield Broken(place, "not a memory block: it needs `label` and `value`")
        elif text.strip():
            meta = {"agent": owner, "label": label, "description": found.get("description"), "source": "letta"}
            known = {key: value for key, value in meta.items() if value}
            yield {"id": f"letta-{owner}/{label}", "text": text, "title": label, "kind": "memory", "meta": known}

    def message(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
        speaker, created = found.get("role"), found.get("created_at")
        text = _said(found, agent.get("agent_type")) if speaker in _SPEAKERS else ""
        if text and not created and not found.get("id"):
            yield Broken(place, "a message without an id and a time")
        elif text:  # an id of a message is its number in the file, and another one in the next file
            id = f"letta-{owner}/{f'{created}-{speaker}' if created else found['id']}"
            yield exports.message(id, text, owner, speaker, created, source="letta", model=found.get("model"))

    yield from exports.each(blocks, f"{place} blocks", block)
    yield from exports.each(agent.get("messages"), f"{place} messages", message)


def _said(message: dict[str, Any], agent_type: Any) -> str:
    """Return what a message says to the other one; empty for thoughts, calls of other tools and events."""
    text = exports.texts(message.get("content"))
    if message["role"] == "user":
        return _of_user(text)
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    functions = [exports.mapping(exports.mapping(call).get("function")) for call in calls]
    sent = [_argument(function) for function in functions if function.get("name") == _SENDS]
    return "\n\n".join(filter(None, sent)) or ("" if functions and agent_type != _SPEAKS_IN_TEXT else text)


def _of_user(text: str) -> str:
    """Return what the user wrote: agents before 1.0 get it, and events, as a JSON object with a type."""
    event = exports.mapping(_json(text))
    if "type" not in event:
        return text
    written = event.get("message")
    return written.strip() if event["type"] == "user_message" and isinstance(written, str) else ""


def _argument(function: dict[str, Any]) -> str:
    said = exports.mapping(_json(function.get("arguments"))).get("message")
    return said.strip() if isinstance(said, str) else ""


def _json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) and text.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _passage(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
    id, text = found.get("id"), found.get("text")
    if not isinstance(id, str) or not isinstance(text, str):
        yield Broken(place, "not a passage: it needs `id` and `text`")
        return
    given = {"agent": found.get("agent_id"), "archive": found.get("archive_id"), "tags": found.get("tags")}
    meta = {**exports.mapping(found.get("metadata")), **given, "source": "letta"}
    known = {key: value for key, value in meta.items() if value not in (None, "", [])}
    created = exports.moment(found.get("created_at"))
    yield {"id": f"letta-{id}", "text": text, "kind": "memory", "created": created, "meta": known}
