"""What other programs keep: conversations and memories, read from their exports or their folders.

A source is one function from a path to documents as ``Engine.add`` takes them, with ids that stay the same, so that the
next import updates. A package adds one by the entry point ``trivet.sources``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.files.jsonl import Broken
from trivet.plugins import Registry

Read = Callable[[Path], Iterator[dict[str, Any] | Broken]]


def _check(name: str, value: object) -> None:
    if not callable(value):
        raise InputError(f"import source: {name!r} is {type(value).__name__}, not a function that reads a path")


SOURCES: Registry[Read] = Registry(
    "import source",
    "trivet.sources",
    {
        "chatgpt": "trivet.files.sources.chatgpt:read",
        "claude": "trivet.files.sources.claude:read",
        "claude-code": "trivet.files.sources.claude_code:read",
        "codex": "trivet.files.sources.codex:read",
        "mem0": "trivet.files.sources.mem0:read",
        "letta": "trivet.files.sources.letta:read",
        "graphiti": "trivet.files.sources.graphiti:read",
        "zep": "trivet.files.sources.zep:read",
        "chroma": "trivet.files.sources.chroma:read",
        "lancedb": "trivet.files.sources.lancedb:read",
    },
    _check,
)
