"""Collections: list, create, drop; their statistics; the shipped profiles."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.errors import without_paths
from trivet.http import problem_details
from trivet.http.access import ANYWHERE
from trivet.http.json_response import json_response
from trivet.http.request_models import NewCollection
from trivet.http.response_models import NOT_FOUND, WITH_BODY, Collections, CollectionStats, Profiles, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name, fields_set
from trivet.profile import PROFILES

router = APIRouter(tags=["collections"])


def stats_of(engine: Engine) -> dict[str, Any]:
    """Return the statistics of a collection, without paths."""
    found = serialize.plain(engine.stats())
    del found["path"]
    found["embed_error"] = without_paths(found["embed_error"])
    found["model"] = without_paths(found["model"]) if found["model"] else None
    return {**found, "fields": list(found["fields"])}


@router.get("/v1/collections", responses=responses(Collections), summary="List the collections")
async def list_collections(access: Access) -> Response:
    def work() -> list[str]:
        key = access.caller.key
        return [name for name in access.dispatcher.engines.names() if key is None or key.sees(name)]

    names = await access.resume("read", ANYWHERE, work)
    return json_response({"collections": names})


@router.put(
    COLLECTION,
    responses={**responses(CollectionStats, *WITH_BODY), 201: {"model": CollectionStats, "description": "Created"}},
    summary="Create a collection",
)
async def create_collection(name: Name, access: Access, body: NewCollection | None = None) -> Response:
    """An existing collection is returned as it is; other options than those it was created with are refused."""
    options = fields_set(body) if body else {}

    def work() -> tuple[dict[str, Any], bool]:
        engine, new = access.dispatcher.engines.create(name, **options)
        return stats_of(engine), new

    found, new = await access.run_on_store("admin", work, name)
    return json_response(found, 201 if new else 200)


@router.get(COLLECTION, responses=responses(CollectionStats, *NOT_FOUND), summary="Get a collection")
async def get_collection(name: Name, access: Access) -> Response:
    return json_response(await access.run("read", name, stats_of))


@router.get(f"{COLLECTION}/stats", responses=responses(CollectionStats, *NOT_FOUND), summary="Get counts and sizes")
async def get_stats(
    name: Name,
    access: Access,
    space: Annotated[
        bool, Query(description="Say what the bytes on disk are for, by part; this reads the whole file.")
    ] = False,
) -> Response:
    def work(engine: Engine) -> dict[str, Any]:
        return {**stats_of(engine), "space": engine.space()} if space else stats_of(engine)

    return json_response(await access.run("admin" if space else "read", name, work))


@router.delete(
    COLLECTION,
    status_code=204,
    responses=responses(None, 404, 409, status=204),
    summary="Drop a collection and everything in it",
)
async def drop_collection(name: Name, access: Access) -> Response:
    def work() -> None:
        if name == access.config.collection:
            raise problem_details.Refused(
                "conflict",
                f"collection: {name!r} is the default collection of the server and cannot be dropped",
                "collection",
            )
        access.dispatcher.engines.get(name).drop()
        access.dispatcher.engines.forget(name)
        access.dispatcher.jobs.forget(name)

    await access.run_on_store("admin", work, name)
    return Response(status_code=204)


@router.get("/v1/profiles", responses=responses(Profiles), summary="List the shipped profiles")
async def list_profiles(access: Access) -> Response:
    found = [{**profile.to_dict(), "identity": profile.identity} for profile in PROFILES.values()]
    await access.authorize()
    return json_response({"profiles": found})
