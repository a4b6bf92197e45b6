"""Codex: the transcripts below ``~/.codex/sessions``, without calls of tools and thoughts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports

#: How texts begin that the program adds to what the user wrote.
_ADDED = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md instructions")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    session: dict[str, Any] = {}
    last = None
    for file, number, item in exports.transcripts(path, "rollout-*.jsonl"):
        if file != last:
            last, session = file, {"id": file.stem.removeprefix("rollout-")}
        if isinstance(item, Broken):
            yield item
            continue
        payload = item.get("payload", item)  # before September 2025 a line was the item itself
        if not isinstance(payload, dict):
            continue
        if item.get("type") == "session_meta" or (number == 1 and "id" in payload):
            session = {**session, **payload}
        elif payload.get("type") == "message" and payload.get("role") in ("user", "assistant"):
            text = exports.texts(payload.get("content"))
            if text and not text.startswith(_ADDED):
                created = item.get("timestamp") or session.get("timestamp")
                more = {"source": "codex", "project": session.get("cwd")}
                id = f"codex-{session['id']}-{number}"  # a transcript is only appended to
                yield exports.message(id, text, session["id"], payload["role"], created, **more)
