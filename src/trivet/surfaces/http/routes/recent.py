"""How long did the last searches take, stage by stage, and what was missing?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from trivet.surfaces.http import answers
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.recent import KEPT
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import COLLECTION, NAMED, Asked, Name, responses

router = APIRouter(tags=["operation"])


class RecentSearch(BaseModel):
    at: str
    ms: float
    stages: dict[str, float]
    hits: int
    degraded: list[answers.DegradedPart]


class RecentSearches(BaseModel):
    worker: str
    workers: int
    searches: list[RecentSearch]


@router.get(f"{COLLECTION}/recent", responses=responses(RecentSearches, *NAMED), summary="The last searches, timed")
async def recent(
    name: Name, bridge: Asked, caller: Asking, limit: Annotated[int, Query(ge=1, le=KEPT)] = 500
) -> Response:
    """Of the one worker that answers this; `worker` says which. The latest last, and no question among it."""
    found = await bridge.whole(caller, "read", name, lambda engine: bridge.recent.of(engine.name, limit))
    return reply({"worker": bridge.recent.worker, "workers": bridge.config.workers, "searches": found})
