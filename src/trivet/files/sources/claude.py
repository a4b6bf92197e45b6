"""Claude: the conversations of a data export (``conversations.json``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "conversations*.json"):
        yield from exports.entries(found, name, _conversation)


def _conversation(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
    def documents(message: dict[str, Any], place: str) -> Iterator[exports.Item]:
        text = exports.texts(message.get("text")) or exports.texts(message.get("content"))
        if text and message.get("uuid"):
            more = {"title": found.get("name"), "source": "claude", "project": found.get("project_uuid")}
            created = message.get("created_at") or found.get("created_at")
            id, session = f"claude-{message['uuid']}", found.get("uuid")
            yield exports.message(id, text, session, message.get("sender"), created, **more)

    return exports.each(found.get("chat_messages"), place, documents)
