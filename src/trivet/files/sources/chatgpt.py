"""ChatGPT: the conversations of a data export (``conversations.json``), on the branch that was last shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports

_SPEAKERS = ("user", "assistant")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "conversations"):
        for item in exports.entries(found, name):
            yield from [item] if isinstance(item, Broken) else _conversation(item)


def _conversation(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    session = found.get("conversation_id") or found.get("id")
    for id, message in _branch(found):
        speaker = (message.get("author") or {}).get("role")
        hidden = message.get("weight") == 0 or (message.get("metadata") or {}).get(
            "is_visually_hidden_from_conversation"
        )
        parts = (message.get("content") or {}).get("parts") or []
        text = "\n\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
        if speaker in _SPEAKERS and text and not hidden:
            created = message.get("create_time") or found.get("create_time")
            model = (message.get("metadata") or {}).get("model_slug")
            more = {"title": found.get("title"), "source": "chatgpt", "model": model}
            yield exports.message(f"chatgpt-{id}", text, session, speaker, created, **more)


def _branch(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages from the first to the last one shown; an edited question leaves a branch beside it."""
    nodes = found.get("mapping") or {}
    at, path = found.get("current_node"), []
    while at in nodes and at not in path:
        path.append(at)
        at = nodes[at].get("parent")
    order = reversed(path) if path else nodes
    return [(str(id), nodes[id]["message"]) for id in order if isinstance(nodes[id].get("message"), dict)]
