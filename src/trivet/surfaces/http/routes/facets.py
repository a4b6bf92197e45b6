"""What is in here, counted? (values of the fields, documents over time, what is superseded or said twice)"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from trivet.engine import Engine
from trivet.surfaces import wire
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import COLLECTION, NAMED, Asked, Name, Where, responses, shallow
from trivet.types import Facet

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


class PeriodCount(BaseModel):
    period: str
    documents: int


class TimelineCounts(BaseModel):
    field: str
    step: str
    periods: list[PeriodCount]


class Successor(BaseModel):
    id: str
    by: str


class StandingPairs(BaseModel):
    superseded: list[Successor]
    copies: list[list[str]]
    looked_at: int


@router.get(
    f"{COLLECTION}/facets", responses=responses(Facets, *NAMED), summary="The fields and their commonest values"
)
async def facets(
    name: Name,
    bridge: Asked,
    caller: Asking,
    where: Where = None,
    values: Annotated[int, Query(ge=1, le=1_000, description="Of each field.")] = 10,
) -> Response:
    """`kind` first, then the metadata; counted among what the filter allows."""
    asked = shallow(where, bridge.config.max_filter_depth)
    found = await bridge.run(caller, "read", name, lambda engine: engine.facets(asked, values))
    return reply({"facets": [_shown(facet) for facet in found]})


def _shown(facet: Facet) -> dict[str, Any]:
    values = [{"value": value, "documents": count} for value, count in facet.values]
    return {**wire.plain(facet), "values": values}


@router.get(f"{COLLECTION}/timeline", responses=responses(TimelineCounts, *NAMED), summary="How many documents when")
async def timeline(
    name: Name,
    bridge: Asked,
    caller: Asking,
    where: Where = None,
    field: Annotated[Moments, Query()] = "created",
    step: Annotated[Literal["day", "month", "year"] | None, Query(description="Else the one that fits.")] = None,
) -> Response:
    """Periods without documents are left out; their names are in UTC: `2026-03`."""
    asked = shallow(where, bridge.config.max_filter_depth)
    return reply(wire.plain(await bridge.run(caller, "read", name, lambda engine: engine.timeline(asked, field, step))))


@router.get(
    f"{COLLECTION}/standing", responses=responses(StandingPairs, *NAMED), summary="What is superseded, or a copy"
)
async def standing(
    name: Name,
    bridge: Asked,
    caller: Asking,
    id: Annotated[list[str] | None, Query(description="Only of these. Repeat for more.")] = None,
) -> Response:
    """At most 1,000 of each, the latest first; copies are looked for among the first 50,000 documents."""

    def work(engine: Engine) -> dict[str, Any]:
        found = engine.standing(id)
        pairs = [{"id": old, "by": new} for old, new in found.superseded]
        return {**wire.plain(found), "superseded": pairs}

    return reply(await bridge.run(caller, "read", name, work))
