"""How are documents put in, read, changed, listed and taken out?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, metrics
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.problems import Refused
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import (
    BODY,
    COLLECTION,
    NAMED,
    Asked,
    Id,
    Name,
    Redact,
    Where,
    added,
    given,
    responses,
    shallow,
)

router = APIRouter(tags=["documents"])
DOCUMENTS, DOCUMENT = f"{COLLECTION}/documents", f"{COLLECTION}/documents/{{id:path}}"
MAX_PAGE = 1_000  # documents
Forget = Annotated[bool, Query(description="With the feedback on it, which otherwise stays: the id may come back.")]


def missing(id: str, engine: Engine) -> NotFoundError:
    return NotFoundError(f"id: there is no document {id!r} in collection {engine.name!r}")


def stored(engine: Engine, id: str) -> dict[str, Any]:
    document = engine.get(id)
    if document is None:
        raise missing(id, engine)
    return wire.document(document, engine.links(id))


@router.post(
    DOCUMENTS,
    status_code=201,
    responses=responses(answers.AddedDocuments, *NAMED, *BODY, 409, status=201),
    summary="Add one document or many",
)
async def add_documents(
    name: Name, body: bodies.OneOrMany, bridge: Asked, caller: Asking, redact: Redact = False
) -> Response:
    """All of them or none. An id that exists is replaced; the same text again changes nothing."""
    items: list[Any] = [body] if isinstance(body, bodies.NewDocument) else body.documents
    if len(items) > bridge.config.max_batch:
        raise Refused(
            "too-large",
            f"documents: {len(items):,}; at most {bridge.config.max_batch:,} at a time, or POST them to /import",
            "documents",
        )
    documents = [item if isinstance(item, str) else given(item) for item in items]
    found = await bridge.run(caller, "write", name, lambda engine: engine.add(documents, redact=redact))
    metrics.WRITTEN.inc(found.added + found.updated)
    return reply(added(found), 201)


@router.get(DOCUMENTS, responses=responses(answers.DocumentPage, *NAMED), summary="List documents")
async def list_documents(
    name: Name,
    bridge: Asked,
    caller: Asking,
    where: Where = None,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """In the order they were first added; a page never repeats or skips what was there when the list was begun."""
    asked = shallow(where, bridge.config.max_filter_depth)
    page = await bridge.run(caller, "read", name, lambda engine: engine.page(asked, after, limit))
    return reply({"documents": [wire.document(item) for item in page.documents], "next": page.next})


@router.delete(DOCUMENTS, responses=responses(answers.Deleted, *NAMED), summary="Delete by filter or by ids")
async def delete_documents(
    name: Name,
    bridge: Asked,
    caller: Asking,
    where: Where = None,
    id: Annotated[list[str] | None, Query(description="Repeat for more.")] = None,
    forget: Forget = False,
) -> Response:
    if bool(where) == bool(id):
        raise InputError("where: give a filter or ids, one of the two")
    asked = shallow(where, bridge.config.max_filter_depth)

    def work(engine: Engine) -> int:
        chosen: dict[str, Any] = {"where": asked} if asked else {"ids": id}
        return engine.forget(**chosen).documents if forget else engine.delete(**chosen)

    return reply({"deleted": await bridge.run(caller, "write", name, work)})


@router.get(DOCUMENT, responses=responses(answers.DocumentWithLinks, *NAMED), summary="Read a document")
async def get_document(name: Name, id: Id, bridge: Asked, caller: Asking) -> Response:
    return reply(await bridge.run(caller, "read", name, lambda engine: stored(engine, id)))


@router.put(
    DOCUMENT,
    responses={
        **responses(answers.AddedDocuments, *NAMED, *BODY, 409),
        201: {"model": answers.AddedDocuments, "description": "It is new"},
    },
    summary="Add or replace a document",
)
async def put_document(
    name: Name, id: Id, body: bodies.Replacement, bridge: Asked, caller: Asking, redact: Redact = False
) -> Response:
    document = given(body)
    if document.setdefault("id", id) != id:
        raise InputError(f"id: {document['id']!r} in the body is not {id!r} in the path; leave it out of the body")
    found = await bridge.run(caller, "write", name, lambda engine: engine.add([document], redact=redact))
    metrics.WRITTEN.inc(found.added + found.updated)
    return reply(added(found), 201 if found.added else 200)


@router.patch(DOCUMENT, responses=responses(answers.DocumentWithLinks, *NAMED, *BODY), summary="Change some fields")
async def patch_document(name: Name, id: Id, body: bodies.Changes, bridge: Asked, caller: Asking) -> Response:
    changes = given(body)

    def work(engine: Engine) -> dict[str, Any]:
        engine.patch(id, **changes)
        return stored(engine, id)

    return reply(await bridge.run(caller, "write", name, work))


@router.delete(DOCUMENT, responses=responses(answers.Deleted, *NAMED), summary="Delete a document")
async def delete_document(name: Name, id: Id, bridge: Asked, caller: Asking, forget: Forget = False) -> Response:
    def work(engine: Engine) -> int:
        count: int = engine.forget(id).documents if forget else engine.delete(id)
        if not count:
            raise missing(id, engine)
        return count

    return reply({"deleted": await bridge.run(caller, "write", name, work)})
