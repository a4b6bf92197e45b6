"""Resources: every document, and ``trivet://collection`` with counts and the fields to filter by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import mcp_types as types

from trivet.errors import InputError, NotFoundError
from trivet.mcp import delimiters
from trivet.mcp.uris import COLLECTION, TEMPLATE, id_of, uri_of

if TYPE_CHECKING:
    from trivet.mcp.tools import Memory
    from trivet.types import Document

PAGE = 100  # resources in one response; a cursor leads to the next

TEMPLATES = [
    types.ResourceTemplate(
        name="document",
        title="A document",
        uri_template=TEMPLATE,
        description="The whole text of one document, delimited as recalled data. The id is percent-encoded.",
        mime_type="text/plain",
    )
]


def page(memory: Memory, cursor: str | None) -> types.ListResourcesResult:
    """Return the collection, then its documents in the order they were added."""
    found = memory.engine.page(after=cursor, limit=PAGE)
    documents = [_described(document) for document in found]
    return types.ListResourcesResult(
        resources=[_COLLECTION, *documents] if cursor is None else documents, next_cursor=found.next
    )


_COLLECTION = types.Resource(
    name="collection",
    title="The collection",
    uri=COLLECTION,
    description="The number of documents and the metadata fields to filter by.",
    mime_type="application/json",
)


def _described(document: Document) -> types.Resource:
    return types.Resource(
        name=delimiters.label(document.id),
        title=delimiters.line(document.title) or None,
        uri=uri_of(document.id),
        description=delimiters.label(document.kind),
        mime_type="text/plain",
        annotations=types.Annotations(
            priority=document.importance,
            last_modified=document.updated.isoformat() if document.updated else None,
        ),
    )


def content_of(memory: Memory, uri: str) -> types.TextResourceContents:
    if uri == COLLECTION:
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=_collection(memory))
    id = id_of(uri)
    if id is None:
        raise InputError(f"uri: {uri!r} is not known; use {COLLECTION} or {TEMPLATE}")
    document = memory.engine.get(id)
    if document is None:
        raise NotFoundError(f"id: document {id!r} not found in collection {memory.engine.name!r}")
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=_whole(document))


def _whole(document: Document) -> str:
    title = f"title: {delimiters.quote(document.title)}" if document.title else ""
    text = "\n".join(part for part in (title, document.text) if part)
    return delimiters.fenced([(f"{delimiters.quote(document.id)} · {delimiters.quote(document.kind)}", text)])


def _collection(memory: Memory) -> str:
    found = memory.engine.stats()
    content = {
        "untrusted": True,
        "collection": delimiters.label(found.collection),
        "documents": found.documents,
        "links": found.links,
        "waiting_to_be_embedded": found.pending,
        "model": found.model,
        "language": found.language,
        "fields": [delimiters.label(name) for name in found.fields],
        "read_only": memory.read_only,
    }
    return json.dumps(content, ensure_ascii=False)
