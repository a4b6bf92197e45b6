"""Files for vector stores: upload, list, read and delete, as OpenAI's API does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.http import metrics, uploads
from trivet.http.dispatch import CallerAccess
from trivet.http.json_response import json_response
from trivet.http.openai_models import DeletedObject, UploadedFile, UploadedFiles
from trivet.http.problem_details import Refused
from trivet.http.response_models import NOT_FOUND, WITH_BODY, responses
from trivet.http.routes.parameters import Access
from trivet.types import Document

T = TypeVar("T")

router = APIRouter(tags=["openai"])
FORM = "multipart/form-data"
MAX_FIELDS = 10  # of the form, the file not counted
FileId = Annotated[str, Path(alias="id", description="The id of a file.", examples=["5f0c1d2e3a4b5c6d"])]
After = Annotated[str | None, Query(description="The id of the last file of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=100)]
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "examples": ["The side door sticks."]},
        "purpose": {"type": "string", "description": "Kept and returned; it has no effect."},
    },
}


async def on_uploads(access: CallerAccess, scope: str, work: Callable[[Engine], T]) -> T:
    """Run ``work`` on the uploads, for a key with ``scope`` in the default collection; create them if they are new."""

    def call() -> T:
        key = access.check_key(scope, access.config.collection)
        return in_uploads(access, work, key.where if key else None)

    return await access.dispatcher.in_pool(call)


def in_uploads(access: CallerAccess, work: Callable[[Engine], T], where: Any) -> T:
    """Run ``work`` on the uploads, bound to a filter; the caller's key was checked."""
    engines = access.dispatcher.engines
    if uploads.COLLECTION not in engines.names():
        engines.create(uploads.COLLECTION, words_only=True)
    return access.dispatcher.call(uploads.COLLECTION, work, where)


def _object(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "object": "file",
        "bytes": uploads.size(document),
        "created_at": uploads.seconds(document),
        "filename": uploads.filename(document),
        "purpose": str(document.meta.get("purpose", "")),
        "status": "processed",
    }


@router.post(
    "/v1/files",
    responses=responses(UploadedFile, *WITH_BODY),
    openapi_extra={"requestBody": {"required": True, "content": {FORM: {"schema": _FORM}}}},
    summary="Upload a file",
)
async def upload_file(request: Request, access: Access) -> Response:
    """Text, or any format that an import reads. It is searched once it is attached to a vector store."""
    await access.authorize("write", access.config.collection)
    content, name, purpose = await _form(request)
    found = await on_uploads(access, "write", lambda engine: uploads.store(engine, content, name, purpose))
    metrics.WRITTEN.inc()
    return json_response(_object(found))


async def _form(request: Request) -> tuple[bytes, str, str]:
    """Return the content and the name of the file, and the purpose."""
    if not request.headers.get("content-type", "").startswith(FORM):
        raise Refused("media-type", f"the body must be a form; send Content-Type: {FORM}")
    try:
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            file, purpose = form.get("file"), form.get("purpose")
            if not isinstance(file, UploadFile) or not file.filename:
                raise InputError("file: missing; send a file with its name")
            return await file.read(), file.filename, purpose if isinstance(purpose, str) else ""
    except HTTPException as error:
        raise Refused("malformed", f"body: {error.detail}", "body") from None


@router.get("/v1/files", responses=responses(UploadedFiles, 404), summary="List uploaded files")
async def list_files(access: Access, after: After = None, limit: Limit = 100) -> Response:
    found, more = await on_uploads(access, "read", lambda engine: uploads.page(engine, after, limit))
    return json_response({"object": "list", "data": [_object(item) for item in found], "has_more": more})


@router.get("/v1/files/{id}", responses=responses(UploadedFile, *NOT_FOUND), summary="Get an uploaded file")
async def get_file(id: FileId, access: Access) -> Response:
    return json_response(_object(await on_uploads(access, "read", lambda engine: uploads.first(engine, id))))


@router.delete("/v1/files/{id}", responses=responses(DeletedObject, *NOT_FOUND), summary="Delete an uploaded file")
async def delete_file(id: FileId, access: Access) -> Response:
    """Vector stores that it is attached to keep it."""
    await on_uploads(access, "write", lambda engine: uploads.remove(engine, id))
    return json_response({"id": id, "object": "file", "deleted": True})
