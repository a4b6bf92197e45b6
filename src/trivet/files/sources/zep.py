"""Zep: sessions or threads with their messages and facts, and graphs, as its API answers with them in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.files.jsonl import Broken
from trivet.files.sources import exports, graphiti

SOURCE = "zep"
_SESSIONS = ("sessions", "threads")
_PARTS = ("messages", "facts")
_GRAPH = ("episodes", "nodes", "edges")
_LEFT_OUT = ("system", "tool", "function")


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "*.json"):
        whole = {"sessions": found} if isinstance(found, list) else exports.mapping(found)
        if not {*_SESSIONS, *_PARTS, *_GRAPH} & set(whole):
            known = ", ".join((*_SESSIONS, *_PARTS, *_GRAPH))
            raise InputError(f"import: {name}: not an export of Zep: it has none of {known}")
        for key in _SESSIONS:
            yield from exports.each(whole.get(key), f"{name} {key}", _session)
        yield from _session(whole, name)
        yield from graphiti.documents({key: whole[key] for key in _GRAPH if key in whole}, name, SOURCE)


def _session(session: dict[str, Any], place: str) -> Iterator[exports.Item]:
    id = session.get("session_id") or session.get("thread_id")
    owner = {"user_id": session.get("user_id")}

    def message(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
        uuid, text = found.get("uuid"), found.get("content")
        if not isinstance(uuid, str) or not isinstance(text, str):
            yield Broken(place, "not a message: it needs `uuid` and `content`")
            return
        # `role` is the person where there is a `role_type`; newer versions have `name` and `role`
        role = found.get("role_type") or found.get("role")
        person = found.get("name") or (found.get("role") if found.get("role_type") else None)
        if text.strip() and role not in _LEFT_OUT:
            created = found.get("created_at") or session.get("created_at")
            speaker = None if role == "norole" else role
            more = {**exports.mapping(found.get("metadata")), **owner, "name": person, "source": SOURCE}
            more.pop("title", None)  # of a message it would be shown as that of a document
            yield exports.message(f"{SOURCE}-{uuid}", text, id, speaker, created, **more)

    def fact(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
        if not isinstance(found.get("uuid"), str):
            yield Broken(place, "a fact without a `uuid`")
            return
        document = graphiti.fact(found, place, SOURCE)
        if not isinstance(document, Broken):
            more = {"conversation": id, **owner}
            document["meta"] |= {name: value for name, value in more.items() if value}
        yield document

    yield from exports.each(session.get("messages"), f"{place} messages", message)
    yield from exports.each(session.get("facts"), f"{place} facts", fact)
