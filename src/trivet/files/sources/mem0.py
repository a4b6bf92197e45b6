"""mem0: the memories that ``get_all`` returned, as JSON: ``{"results": […]}`` or a list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.files.jsonl import Broken
from trivet.files.sources import exports
from trivet.text.conversation import SESSION

_KEPT = ("user_id", "agent_id", "app_id", "actor_id", "role", "categories")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "*.json"):
        memories = found.get("results") if isinstance(found, dict) else found
        yield from exports.entries(memories, name, _memory)


def _memory(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
    id, text = found.get("id"), found.get("memory") or found.get("text") or found.get("data")
    if not id or not isinstance(text, str):
        yield Broken(place, "not a memory: it needs `id` and `memory`")
        return
    meta = {**exports.mapping(found.get("metadata")), **{key: found[key] for key in _KEPT if found.get(key)}}
    if found.get("run_id"):
        meta[SESSION] = found["run_id"]
    times = {"created": exports.moment(found.get("created_at")), "updated": exports.moment(found.get("updated_at"))}
    known = {field: value for field, value in times.items() if value is not None}
    yield {"id": f"mem0-{id}", "text": text, "kind": "memory", "meta": {**meta, "source": "mem0"}, **known}
