"""Which documents can a client read, and under which address?

Every document is a resource; ``trivet://collection`` tells what there is and which fields can be filtered by.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import mcp_types as types

from trivet.errors import InputError, NotFoundError
from trivet.surfaces.mcp import fence
from trivet.surfaces.mcp.addresses import COLLECTION, TEMPLATE, address, id_of

if TYPE_CHECKING:
    from trivet.surfaces.mcp.tools import Memory
    from trivet.types import Document

PAGE = 100  # resources in one answer; the rest by cursor

TEMPLATES = [
    types.ResourceTemplate(
        name="document",
        title="A remembered document",
        uri_template=TEMPLATE,
        description="The whole text of one document, fenced as recalled data. The id is percent-encoded.",
        mime_type="text/plain",
    )
]


def page(memory: Memory, cursor: str | None) -> types.ListResourcesResult:
    """The collection, then its documents in the order they were added."""
    found = memory.engine.page(after=cursor, limit=PAGE)
    listed = [_listed(document) for document in found]
    return types.ListResourcesResult(
        resources=[_COLLECTION, *listed] if cursor is None else listed, next_cursor=found.next
    )


_COLLECTION = types.Resource(
    name="collection",
    title="The collection",
    uri=COLLECTION,
    description="How many documents there are, and the metadata fields to filter by.",
    mime_type="application/json",
)


def _listed(document: Document) -> types.Resource:
    return types.Resource(
        name=fence.label(document.id),
        title=fence.line(document.title) or None,
        uri=address(document.id),
        description=fence.label(document.kind),
        mime_type="text/plain",
        annotations=types.Annotations(
            priority=document.importance,
            last_modified=document.updated.isoformat() if document.updated else None,
        ),
    )


def text_of(memory: Memory, uri: str) -> types.TextResourceContents:
    if uri == COLLECTION:
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=_collection(memory))
    id = id_of(uri)
    if id is None:
        raise InputError(f"uri: {uri!r} is none of ours; there are {COLLECTION} and {TEMPLATE}")
    document = memory.engine.get(id)
    if document is None:
        raise NotFoundError(f"there is no document {id!r} in collection {memory.engine.name!r}")
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=_whole(document))


def _whole(document: Document) -> str:
    title = f"title: {fence.quote(document.title)}" if document.title else ""
    said = "\n".join(part for part in (title, document.text) if part)
    return fence.fenced([(f"{fence.quote(document.id)} · {fence.quote(document.kind)}", said)])


def _collection(memory: Memory) -> str:
    found = memory.engine.stats()
    told = {
        "untrusted": True,
        "collection": fence.label(found.collection),
        "documents": found.documents,
        "links": found.links,
        "waiting_to_be_embedded": found.pending,
        "model": found.model,
        "language": found.language,
        "fields": [fence.label(name) for name in found.fields],
        "read_only": memory.read_only,
    }
    return json.dumps(told, ensure_ascii=False)
