"""The routes of two earlier services, over the default collection or the one that ``collection`` names.

``/settings`` and ``/episodes/search`` come from a chat service with live weights, ``/search`` from a documentation
search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.filters import BUILT_IN_FIELDS
from trivet.http.request_models import SettingsChanges
from trivet.http.response_models import NOT_FOUND, WITH_BODY, Found, SettingsInForce, responses
from trivet.http.routes import search, settings
from trivet.http.routes.parameters import Access, OtherCollection

router = APIRouter(tags=["compatibility"])
Condition = Callable[[Engine], dict[str, Any]]
# the metadata fields that hold what the earlier services kept in columns; ``trivet.chat`` writes ``session``
SESSION, REPOSITORY, VERSION = ("session", "session_id"), ("repository_id", "repositoryId"), ("version_id", "versionId")


@router.get("/settings", responses=responses(SettingsInForce, *NOT_FOUND), summary="Get the settings (chat service)")
async def get_default_settings(access: Access, collection: OtherCollection = None) -> Response:
    return await settings.get_settings(collection or access.config.collection, access)


@router.patch(
    "/settings",
    responses=responses(SettingsInForce, *NOT_FOUND, *WITH_BODY),
    summary="Change the weights (chat service)",
)
async def change_default_settings(
    body: SettingsChanges, access: Access, collection: OtherCollection = None
) -> Response:
    return await settings.change(access, collection or access.config.collection, body)


@router.get(
    "/episodes/search",
    responses=responses(Found, *NOT_FOUND),
    summary="Search the episodes of some sessions (chat service)",
)
async def search_episodes(
    access: Access,
    q: Annotated[str, Query(description="The query.", examples=["hello"])],
    session_ids: Annotated[
        str | None, Query(alias="sessionIds", description="Ids of sessions, separated by commas.", examples=["1,2,3"])
    ] = None,
    limit: Annotated[int | None, Query(description="Number of hits.")] = None,
    collection: OtherCollection = None,
) -> Response:
    conditions = [any_of(("kind",), ["episode"])]
    if session_ids is not None:
        conditions.append(any_of(SESSION, session_ids.split(",")))
    request = {"query": q, "k": limit, "where": conditions}
    return await search.respond(access, collection or access.config.collection, request)


@router.get(
    "/search",
    responses=responses(Found, *NOT_FOUND),
    summary="Search the snippets of a repository (documentation search)",
)
async def search_snippets(
    access: Access,
    q: Annotated[str, Query(description="The query.", examples=["how is the door opened"])],
    repository_id: Annotated[str | None, Query(alias="repositoryId")] = None,
    version_id: Annotated[str | None, Query(alias="versionId")] = None,
    type: Annotated[str | None, Query(description="The kind of snippet: code or info.")] = None,
    limit: Annotated[int | None, Query(description="Number of hits.")] = None,
    alpha: Annotated[float | None, Query(description="0: lexical leg only, 1: dense leg only.")] = None,
    collection: OtherCollection = None,
) -> Response:
    where = [
        any_of(fields, [value])
        for fields, value in ((REPOSITORY, repository_id), (VERSION, version_id), (("kind",), type))
        if value is not None
    ]
    request = {"query": q, "k": limit, "where": where or None, "overrides": search.without_none(alpha=alpha)}
    return await search.respond(access, collection or access.config.collection, request)


def any_of(fields: tuple[str, ...], values: list[str]) -> Condition:
    """Return a filter on ids from a query string, which may be stored as text or as a number.

    A field that the collection does not have matches nothing.
    """
    accepted: list[str | int] = []
    for value in (value.strip() for value in values):
        accepted.append(value)
        if value.isdecimal() and len(value) < 19:
            accepted.append(int(value))

    def condition(engine: Engine) -> dict[str, Any]:
        known = {*BUILT_IN_FIELDS, *engine.stats().fields}
        parts = [{field: {"in": accepted}} for field in fields if field in known]
        return {"$or": parts} if parts else {"id": {"in": []}}

    return condition
