"""How did the seeds' own services ask?

The routes of seed 000 (episodes with live weights) and the options of seed 004 (a documentation search), as written
there, over the server's own collection or the one that ``collection`` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.filters import BUILT_IN_FIELDS
from trivet.surfaces.http import answers, bodies
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.routes import searching, settings
from trivet.surfaces.http.routes.shared import BODY, NAMED, Asked, responses

router = APIRouter(tags=["seeds"])
Collection = Annotated[str | None, Query(description="Another than the server's own.", min_length=1)]
Condition = Callable[[Engine], dict[str, Any]]
# the metadata that the seeds' columns become; `session` is what trivet.chat calls it
SESSION, REPOSITORY, VERSION = ("session", "session_id"), ("repository_id", "repositoryId"), ("version_id", "versionId")


@router.get("/settings", responses=responses(answers.SettingsInForce, *NAMED), summary="Seed 000: the settings")
async def get_settings(bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    return await settings.get_settings(collection or bridge.config.collection, bridge, caller)


@router.patch(
    "/settings", responses=responses(answers.SettingsInForce, *NAMED, *BODY), summary="Seed 000: change the weights"
)
async def patch_settings(
    body: bodies.SettingsChanges, bridge: Asked, caller: Asking, collection: Collection = None
) -> Response:
    return await settings.change(bridge, caller, collection or bridge.config.collection, body)


@router.get(
    "/episodes/search", responses=responses(answers.Found, *NAMED), summary="Seed 000: episodes of some sessions"
)
async def search_episodes(
    bridge: Asked,
    caller: Asking,
    q: Annotated[str, Query(examples=["hello"])],
    session_ids: Annotated[str | None, Query(alias="sessionIds", description="`1,2,3`", examples=["1,2,3"])] = None,
    limit: Annotated[int | None, Query()] = None,
    collection: Collection = None,
) -> Response:
    conditions = [any_of(("kind",), ["episode"])]
    if session_ids is not None:
        conditions.append(any_of(SESSION, session_ids.split(",")))
    asked = {"query": q, "k": limit, "where": conditions}
    return await searching.ask(bridge, caller, collection or bridge.config.collection, asked)


@router.get("/search", responses=responses(answers.Found, *NAMED), summary="Seed 004: snippets of a repository")
async def search_snippets(
    bridge: Asked,
    caller: Asking,
    q: Annotated[str, Query(examples=["how is the door opened"])],
    repository_id: Annotated[str | None, Query(alias="repositoryId")] = None,
    version_id: Annotated[str | None, Query(alias="versionId")] = None,
    type: Annotated[str | None, Query(description="The snippet's kind: code or info.")] = None,
    limit: Annotated[int | None, Query()] = None,
    alpha: Annotated[float | None, Query(description="0: words alone, 1: meaning alone.")] = None,
    collection: Collection = None,
) -> Response:
    where = [
        any_of(fields, [value])
        for fields, value in ((REPOSITORY, repository_id), (VERSION, version_id), (("kind",), type))
        if value is not None
    ]
    asked = {"query": q, "k": limit, "where": where or None, "overrides": searching.said(alpha=alpha)}
    return await searching.ask(bridge, caller, collection or bridge.config.collection, asked)


def any_of(fields: tuple[str, ...], values: list[str]) -> Condition:
    """An id in an address may be the number or the text: both are looked for. A field nobody has matches nothing."""
    wanted: list[str | int] = []
    for value in (value.strip() for value in values):
        wanted.append(value)
        if value.isdecimal() and len(value) < 19:
            wanted.append(int(value))

    def condition(engine: Engine) -> dict[str, Any]:
        known = {*BUILT_IN_FIELDS, *engine.stats().fields}
        parts = [{field: {"in": wanted}} for field in fields if field in known]
        return {"$or": parts} if parts else {"id": {"in": []}}

    return condition
