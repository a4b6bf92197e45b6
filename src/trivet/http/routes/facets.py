"""Counts over a collection: field values, documents over time, superseded documents and duplicates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.http.json_response import json_response
from trivet.http.response_models import NOT_FOUND, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name, Where, checked_filter
from trivet.types import Facet, Timeline

router = APIRouter(tags=["documents"])
Moments = Literal["created", "updated", "accessed", "valid_from", "valid_to", "expires"]


class FieldValue(BaseModel):
    value: Any
    documents: int


class FieldFacet(BaseModel):
    field: str
    documents: int
    distinct: int
    values: list[FieldValue]


class Facets(BaseModel):
    facets: list[FieldFacet]


class Successor(BaseModel):
    id: str
    by: str


class RedundantDocuments(BaseModel):
    superseded: list[Successor]
    copies: list[list[str]]
    looked_at: int


@router.get(
    f"{COLLECTION}/facets", responses=responses(Facets, *NOT_FOUND), summary="List fields and their most common values"
)
async def list_facets(
    name: Name,
    access: Access,
    where: Where = None,
    values: Annotated[int, Query(ge=1, le=1_000, description="Number of values for each field.")] = 10,
) -> Response:
    """`kind` first, then the metadata, counted over the documents that match the filter."""
    condition = checked_filter(where, access.config.max_filter_depth)
    found = await access.run("read", name, lambda engine: engine.facets(condition, values))
    return json_response({"facets": [_facet(facet) for facet in found]})


def _facet(facet: Facet) -> dict[str, Any]:
    values = [{"value": value, "documents": count} for value, count in facet.values]
    return {**serialize.plain(facet), "values": values}


@router.get(f"{COLLECTION}/timeline", responses=responses(Timeline, *NOT_FOUND), summary="Count documents over time")
async def get_timeline(
    name: Name,
    access: Access,
    where: Where = None,
    field: Annotated[Moments, Query()] = "created",
    step: Annotated[Literal["day", "month", "year"] | None, Query(description="Chosen to fit if left out.")] = None,
) -> Response:
    """Periods are in UTC, such as `2026-03`; those without documents are left out."""
    condition = checked_filter(where, access.config.max_filter_depth)
    return json_response(
        serialize.plain(await access.run("read", name, lambda engine: engine.timeline(condition, field, step)))
    )


@router.get(
    f"{COLLECTION}/standing",
    responses=responses(RedundantDocuments, *NOT_FOUND),
    summary="List superseded documents and duplicates",
)
async def list_redundant(
    name: Name,
    access: Access,
    id: Annotated[list[str] | None, Query(description="Only these documents. Repeat it for more.")] = None,
) -> Response:
    """At most 1,000 of each, the latest first; duplicates are searched for in the first 50,000 documents."""

    def work(engine: Engine) -> dict[str, Any]:
        found = engine.redundant(id)
        pairs = [{"id": old, "by": new} for old, new in found.superseded]
        return {**serialize.plain(found), "superseded": pairs}

    return json_response(await access.run("read", name, work))
