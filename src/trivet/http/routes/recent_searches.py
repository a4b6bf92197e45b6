"""Times of the last searches, stage by stage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from trivet.http.json_response import json_response
from trivet.http.recent_searches import KEPT
from trivet.http.response_models import NOT_FOUND, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name
from trivet.types import Degraded

router = APIRouter(tags=["operation"])


class RecentSearch(BaseModel):
    at: str
    ms: float
    stages: dict[str, float]
    hits: int
    degraded: list[Degraded]


class RecentSearches(BaseModel):
    worker: str
    workers: int
    searches: list[RecentSearch]


@router.get(
    f"{COLLECTION}/recent",
    responses=responses(RecentSearches, *NOT_FOUND),
    summary="List the times of the last searches",
)
async def list_recent_searches(
    name: Name, access: Access, limit: Annotated[int, Query(ge=1, le=KEPT)] = 500
) -> Response:
    """Searches of the worker that handles this request (`worker`), the latest last, without their queries."""
    found = await access.run_unbound("read", name, lambda engine: access.dispatcher.recent.of(engine.name, limit))
    return json_response(
        {"worker": access.dispatcher.recent.worker, "workers": access.config.workers, "searches": found}
    )
