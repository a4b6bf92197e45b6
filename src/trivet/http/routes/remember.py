"""Remember a document: store it, or reinforce the one that says the same; near-duplicates are reported."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from trivet.engine import Engine
from trivet.http import metrics
from trivet.http.json_response import json_response, with_degraded
from trivet.http.request_models import NewMemory
from trivet.http.response_models import NOT_FOUND, WITH_BODY, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name, checked_filter, fields_set
from trivet.types import Remembered

router = APIRouter(tags=["documents"])


@router.post(
    f"{COLLECTION}/remember",
    responses={
        **responses(Remembered, *NOT_FOUND, *WITH_BODY, 409),
        201: {"model": Remembered, "description": "Stored"},
    },
    summary="Remember a document, unless it is known",
)
async def remember(name: Name, body: NewMemory, access: Access) -> Response:
    """201: stored. 200: a document with the same title, text, kind, metadata and validity exists (case, width and white
    space do not count) and was reinforced; the response has its id."""
    fields = fields_set(body)
    text, where = fields.pop("text"), checked_filter(fields.pop("where", None), access.config.max_filter_depth)

    def work(engine: Engine) -> Remembered:
        return engine.remember(text, where=where, **fields)

    found = await access.run("write", name, work)
    metrics.WRITTEN.inc(found.stored)
    return json_response(with_degraded(found), 201 if found.stored else 200)
