"""ChatGPT: the conversations of a data export (``conversations.json``), on the branch that was last shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports

_SPEAKERS = ("user", "assistant")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "conversations*.json"):
        yield from exports.entries(found, name, _conversation)


def _conversation(found: dict[str, Any], place: str) -> Iterator[dict[str, Any] | Broken]:
    if not isinstance(found.get("mapping"), dict | None):
        yield Broken(place, f"mapping: {type(found['mapping']).__name__} instead of an object")
        return
    session = found.get("conversation_id") or found.get("id")
    for id, message in _branch(found):
        speaker = exports.mapping(message.get("author")).get("role")
        facts = exports.mapping(message.get("metadata"))
        hidden = message.get("weight") == 0 or facts.get("is_visually_hidden_from_conversation")
        parts = exports.mapping(message.get("content")).get("parts")
        texts = [part.strip() for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
        text = "\n\n".join(filter(None, texts))
        if speaker in _SPEAKERS and text and not hidden:
            created = message.get("create_time") or found.get("create_time")
            more = {"title": found.get("title"), "source": "chatgpt", "model": facts.get("model_slug")}
            yield exports.message(f"chatgpt-{id}", text, session, speaker, created, **more)


def _branch(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages from the first to the last one shown; an edited question leaves a branch beside it."""
    given = exports.mapping(found.get("mapping"))
    nodes = {id: node for id, node in given.items() if isinstance(node, dict)}
    at, path = found.get("current_node"), []
    while isinstance(at, str) and at in nodes and at not in path:
        path.append(at)
        at = nodes[at].get("parent")
    order = reversed(path) if path else nodes
    return [(str(id), nodes[id]["message"]) for id in order if isinstance(nodes[id].get("message"), dict)]
