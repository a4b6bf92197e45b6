"""Links between documents: list, create and remove."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.errors import NotFoundError
from trivet.http.json_response import json_response
from trivet.http.request_models import NewLink
from trivet.http.response_models import NOT_FOUND, WITH_BODY, Links, Removed, responses
from trivet.http.routes.documents import not_found
from trivet.http.routes.parameters import COLLECTION, Access, Name
from trivet.types import Link

router = APIRouter(tags=["links"])
LINKS = f"{COLLECTION}/links"


@router.get(LINKS, responses=responses(Links, *NOT_FOUND), summary="List links")
async def list_links(
    name: Name,
    access: Access,
    id: Annotated[str | None, Query(description="Only the links of this document.", examples=["door-7"])] = None,
) -> Response:
    """Of one document or of the whole collection."""

    def work(engine: Engine) -> Any:
        if id is not None and engine.get(id) is None:
            raise not_found(id, engine)
        return serialize.plain(engine.links(id))

    return json_response({"links": await access.run("read", name, work)})


@router.post(
    LINKS, status_code=201, responses=responses(Link, *NOT_FOUND, *WITH_BODY, status=201), summary="Link two documents"
)
async def create_link(name: Name, body: NewLink, access: Access) -> Response:
    created = await access.run(
        "write", name, lambda engine: engine.link(body.source, body.target, body.type, body.weight)
    )
    return json_response(serialize.plain(created), 201)


@router.delete(LINKS, responses=responses(Removed, *NOT_FOUND), summary="Remove a link")
async def remove_link(
    name: Name,
    access: Access,
    source: Annotated[str, Query()],
    target: Annotated[str, Query()],
    type: Annotated[str | None, Query(description="All links between the two if left out.")] = None,
) -> Response:
    def work(engine: Engine) -> int:
        count: int = engine.unlink(source, target, type)
        if not count:
            raise NotFoundError(f"link: none from {source!r} to {target!r} in collection {engine.name!r}")
        return count

    return json_response({"removed": await access.run("write", name, work)})
