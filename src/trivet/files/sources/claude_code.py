"""Claude Code: the transcripts below ``~/.claude/projects``, without calls of tools, thoughts and sub-agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports

#: How texts begin that the program adds to what the user wrote: its own commands and what they printed.
_ADDED = (
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-",
    "Caveat: The messages below were generated",
)


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for _, _, item in exports.transcripts(path):
        if isinstance(item, Broken):
            yield item
        elif item.get("type") in ("user", "assistant") and not item.get("isSidechain") and not item.get("isMeta"):
            text = exports.texts(exports.mapping(item.get("message")).get("content"))
            if text and item.get("uuid") and not text.startswith(_ADDED):
                more = {"source": "claude-code", "project": item.get("cwd"), "branch": item.get("gitBranch")}
                id, session = f"claude-code-{item['uuid']}", item.get("sessionId")
                yield exports.message(id, text, session, item["type"], item.get("timestamp"), **more)
