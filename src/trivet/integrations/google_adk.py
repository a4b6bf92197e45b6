"""Google ADK: a memory service over a trivet collection.

An event with a text is a document of the kind ``adk-memory``. Application, user, session and author are metadata, and
every search is within one application and one user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from trivet.engine import Engine
from trivet.filters import And, Eq
from trivet.integrations.engine import by_ids, in_thread, lenient, missing_extra, open_engine, search
from trivet.text.conversation import SESSION
from trivet.types import Hit

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as error:
    raise missing_extra("google-adk", error) from error

if TYPE_CHECKING:
    from google.adk.events import Event
    from google.adk.sessions import Session

KIND = "adk-memory"
#: The kind of what is left of a memory that was deleted: its id, so that its session does not bring it back.
DELETED = "adk-deleted"


class TrivetMemoryService(BaseMemoryService):
    """Keeps what was said in sessions, and finds it by hybrid search within one application and user.

    Adding a session again adds what is new. An event that a session no longer has stays, because a session may have
    been loaded in part; ``delete_memory`` removes it for good. Only texts are kept, without thoughts.

    Args:
        store: The path or address of a store, or an open engine.
        collection: The name of the collection.
        embedder: The model of a new collection, if not the built-in one.
        k: How many memories a search returns; by default as many as the settings of the collection say.
        options: Settings of the search, such as ``{"min_relevance": 0.02}``.
    """

    def __init__(
        self,
        store: str | Path | Engine,
        collection: str = "default",
        embedder: str | None = None,
        *,
        k: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine = open_engine(store, collection, embedder)
        self._k, self._options = k, dict(options or {})

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events; ``custom_metadata`` is kept with each of them, and comes back with it."""
        rows = [
            _row(
                event.id,
                event.content,
                event.author,
                event.timestamp,
                {**(event.custom_metadata or {}), **_of(custom_metadata)},
            )
            for event in events
            if not event.partial
        ]
        await self._add(app_name, user_id, rows, session_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories that are of no session."""
        rows = [
            _row(
                memory.id,
                memory.content,
                memory.author,
                memory.timestamp,
                {**memory.custom_metadata, **_of(custom_metadata)},
            )
            for memory in memories
        ]
        await self._add(app_name, user_id, rows)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories of an application and a user that answer a query, the best first."""
        return SearchMemoryResponse(memories=await self._search(app_name, user_id, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory by the id of its entry; adding its session again does not bring it back."""
        if memory_id:
            await self._delete(app_name, user_id, memory_id)

    @in_thread
    def _add(
        self, app_name: str, user_id: str, rows: Iterable[dict[str, Any] | None], session_id: str | None = None
    ) -> None:
        owner = {"app_name": app_name, "user_id": user_id, **({SESSION: session_id} if session_id else {})}
        documents = {
            id: {**row, "id": id, "meta": {**row["meta"], **owner}}
            for row in rows
            if row is not None and (id := _id(app_name, user_id, row["id"]))
        }
        known = by_ids(self.engine, documents)
        self.engine.add(row for id, row in documents.items() if id not in known or known[id].kind != DELETED)

    @in_thread
    def _search(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        if not query.strip():
            return []
        where = And((Eq("kind", KIND), Eq("meta.app_name", app_name), Eq("meta.user_id", user_id)))
        hits = lenient(self.engine, where, lambda allowed: search(self.engine, query, self._k, allowed, self._options))
        return [_entry(hit) for hit in hits]

    @in_thread
    def _delete(self, app_name: str, user_id: str, memory_id: str) -> None:
        id = _id(app_name, user_id, memory_id)
        found = self.engine.get(id)
        if found is not None and found.kind == KIND:
            owner = {"app_name": app_name, "user_id": user_id}
            self.engine.add({"id": id, "title": "deleted", "text": "", "kind": DELETED, "meta": owner})


def _id(app_name: str, user_id: str, id: str) -> str:
    """Return the id of a document: two users may have an event of the same id."""
    return "/".join(quote(part, safe="") for part in (app_name, user_id, id))


def _of(metadata: Mapping[str, object] | None) -> dict[str, object]:
    return dict(metadata or {})


def _row(
    id: str | None, content: Content | None, author: str | None, at: float | str | None, custom: dict[str, Any]
) -> dict[str, Any] | None:
    """Return a document without its owner; None where there is no text."""
    parts = (content.parts if content else None) or []
    text = "\n".join(part.text for part in parts if part.text and not part.thought).strip()
    if content is None or not text:
        return None
    given = {"speaker": author, "role": content.role, "custom": custom}
    # without an id of its own a memory is named by what it is, so that adding it again changes nothing
    key = id or hashlib.sha256(f"{author}\n{at}\n{text}".encode()).hexdigest()[:32]
    created = datetime.fromtimestamp(at, UTC) if isinstance(at, float | int) else at or None
    meta = {name: value for name, value in given.items() if value}
    return {"id": key, "text": text, "kind": KIND, "created": created, "meta": {**meta, "memory": key}}


def _entry(hit: Hit) -> MemoryEntry:
    meta, created = hit.document.meta, hit.document.created
    return MemoryEntry(
        id=meta["memory"],
        content=Content(role=meta.get("role"), parts=[Part(text=hit.text)]),
        author=meta.get("speaker"),
        timestamp=created.isoformat() if created else None,
        custom_metadata=meta.get("custom", {}),
    )
