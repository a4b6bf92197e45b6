"""Documents: add, read, change, list and delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.http import metrics
from trivet.http.json_response import json_response, with_degraded
from trivet.http.problem_details import Refused
from trivet.http.request_models import Changes, NewDocument, OneOrMany, Replacement
from trivet.http.response_models import NOT_FOUND, WITH_BODY, Deleted, DocumentWithLinks, responses
from trivet.http.routes.parameters import COLLECTION, Access, Id, Name, Redact, Where, checked_filter, fields_set
from trivet.types import Added, Page

router = APIRouter(tags=["documents"])
DOCUMENTS, DOCUMENT = f"{COLLECTION}/documents", f"{COLLECTION}/documents/{{id:path}}"
MAX_PAGE = 1_000  # documents
Forget = Annotated[
    bool, Query(description="Delete the feedback on it too. It is kept otherwise, because the id may be used again.")
]


def not_found(id: str, engine: Engine) -> NotFoundError:
    return NotFoundError(f"id: document {id!r} not found in collection {engine.name!r}")


def _document(engine: Engine, id: str) -> dict[str, Any]:
    document = engine.get(id)
    if document is None:
        raise not_found(id, engine)
    return serialize.document(document, engine.links(id))


@router.post(
    DOCUMENTS,
    status_code=201,
    responses=responses(Added, *NOT_FOUND, *WITH_BODY, 409, status=201),
    summary="Add one document or many",
)
async def add_documents(name: Name, body: OneOrMany, access: Access, redact: Redact = False) -> Response:
    """Adds all documents or none. A document with the same id is replaced; the same content changes nothing."""
    items: list[Any] = [body] if isinstance(body, NewDocument) else body.documents
    if len(items) > access.config.max_batch:
        raise Refused(
            "too-large",
            f"documents: {len(items):,} given; at most {access.config.max_batch:,} are allowed, or use /import",
            "documents",
        )
    documents = [item if isinstance(item, str) else fields_set(item) for item in items]
    found = await access.run("write", name, lambda engine: engine.add(documents, redact=redact))
    metrics.WRITTEN.inc(found.added + found.updated)
    return json_response(with_degraded(found), 201)


@router.get(DOCUMENTS, responses=responses(Page, *NOT_FOUND), summary="List documents")
async def list_documents(
    name: Name,
    access: Access,
    where: Where = None,
    after: Annotated[str | None, Query(description="The value of `next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """In the order they were added. Pages never repeat or skip a document that existed at the first page."""
    condition = checked_filter(where, access.config.max_filter_depth)
    page = await access.run("read", name, lambda engine: engine.page(condition, after, limit))
    return json_response({"documents": [serialize.document(item) for item in page.documents], "next": page.next})


@router.delete(DOCUMENTS, responses=responses(Deleted, *NOT_FOUND), summary="Delete documents by filter or by id")
async def delete_documents(
    name: Name,
    access: Access,
    where: Where = None,
    id: Annotated[list[str] | None, Query(description="A document's id. Repeat it for more documents.")] = None,
    forget: Forget = False,
) -> Response:
    if bool(where) == bool(id):
        raise InputError("where: give either a filter or ids")
    condition = checked_filter(where, access.config.max_filter_depth)

    def work(engine: Engine) -> int:
        chosen: dict[str, Any] = {"where": condition} if condition else {"ids": id}
        return engine.forget(**chosen).documents if forget else engine.delete(**chosen)

    return json_response({"deleted": await access.run("write", name, work)})


@router.get(DOCUMENT, responses=responses(DocumentWithLinks, *NOT_FOUND), summary="Read a document")
async def get_document(name: Name, id: Id, access: Access) -> Response:
    return json_response(await access.run("read", name, lambda engine: _document(engine, id)))


@router.put(
    DOCUMENT,
    responses={**responses(Added, *NOT_FOUND, *WITH_BODY, 409), 201: {"model": Added, "description": "Created"}},
    summary="Add or replace a document",
)
async def put_document(name: Name, id: Id, body: Replacement, access: Access, redact: Redact = False) -> Response:
    document = fields_set(body)
    if document.setdefault("id", id) != id:
        raise InputError(
            f"id: {document['id']!r} in the body differs from {id!r} in the path; leave it out of the body"
        )
    found = await access.run("write", name, lambda engine: engine.add([document], redact=redact))
    metrics.WRITTEN.inc(found.added + found.updated)
    return json_response(with_degraded(found), 201 if found.added else 200)


@router.patch(
    DOCUMENT, responses=responses(DocumentWithLinks, *NOT_FOUND, *WITH_BODY), summary="Change fields of a document"
)
async def change_document(name: Name, id: Id, body: Changes, access: Access) -> Response:
    changes = fields_set(body)

    def work(engine: Engine) -> dict[str, Any]:
        engine.patch(id, **changes)
        return _document(engine, id)

    return json_response(await access.run("write", name, work))


@router.delete(DOCUMENT, responses=responses(Deleted, *NOT_FOUND), summary="Delete a document")
async def delete_document(name: Name, id: Id, access: Access, forget: Forget = False) -> Response:
    def work(engine: Engine) -> int:
        count: int = engine.forget(id).documents if forget else engine.delete(id)
        if not count:
            raise not_found(id, engine)
        return count

    return json_response({"deleted": await access.run("write", name, work)})
