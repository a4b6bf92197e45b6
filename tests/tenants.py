"""Two tenants in one collection, each with a word of its own in everything that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trivet
from trivet import serialize
from trivet.chat import Chat

MARKS = {"alice": "aliceberry", "bob": "bobsecret"}
SECRET = MARKS["bob"]
OWN = {"tenant": "alice"}
MOMENT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def documents(tenant: str) -> list[dict[str, Any]]:
    """Eight documents; the last two say the same."""
    mark = MARKS[tenant]
    return [
        {
            "id": f"{mark}-{number}",
            "title": f"{mark} title {number}",
            "text": f"The pump in the greenhouse is loud, {mark} says {min(number, 7)}. It swells when it rains.",
            "kind": f"{mark}kind" if number % 2 else "note",
            "meta": {"tenant": tenant, f"{mark}key": f"{mark}value", "ticket": "T-1", "number": number},
            "created": datetime(2026 if tenant == "alice" else 2019, number, 1, tzinfo=UTC),
            "updated": MOMENT,
        }
        for number in range(1, 9)
    ]


def fill(engine: trivet.Engine, tenants: Iterable[str]) -> None:
    """Put the tenants' documents in, those of one between those of the other."""
    lists = [documents(tenant) for tenant in tenants]
    for row in zip(*lists, strict=True):
        engine.add(list(row))
    for tenant in tenants:
        mark = MARKS[tenant]
        engine.link(f"{mark}-1", f"{mark}-2", f"{mark}-link", 0.7)
        engine.link(f"{mark}-3", f"{mark}-4", "supersedes")
        engine.link(f"{mark}-5", f"{mark}-6", "resolved-by")
        said = {"query": f"{mark} question", "id": f"{mark}-1", "good": True, "at": MOMENT.isoformat()}
        engine.restore_feedback([said, {**said, "id": f"{mark}-2", "good": False}])
        engine.touch(f"{mark}-1")
        chat = Chat(engine.within({"tenant": tenant}))
        home = chat.project(f"{mark} project")
        chat.session(home, f"{mark} session", id=f"{mark}-session")
        chat.add(f"{mark}-session", f"What does {mark} ask?", f"{mark} answers.", MOMENT, id=f"{mark}-episode")
    if "bob" in tenants:
        engine.update_settings(by=SECRET, k=7)
        engine.revert_settings(by=SECRET)
    engine.wait()


def filled(path: Path, *tenants: str) -> Path:
    with trivet.open(path, embedder="hashing") as engine:
        fill(engine, tenants)
    return path


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)?")
_TIMED = re.compile(r'("(?:ms|at_ms|request_id|bytes_store|bytes_index|worker)": )("[^"]*"|[-\d.e]+)')


def told(value: Any) -> str:
    """An answer as text, without what differs from one call to the next: times, timings, request ids."""
    text = value if isinstance(value, str) else json.dumps(serialize.plain(value), ensure_ascii=False, default=str)
    return _TIMED.sub(r"\1_", _TIME.sub("T", text))


def check_hidden(value: str) -> None:
    """Nothing that carries the other tenant's word."""
    assert SECRET not in value.casefold(), value
    assert '"bob"' not in value
