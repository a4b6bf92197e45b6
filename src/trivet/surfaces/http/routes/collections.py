"""Which collections are there, and how is one made and dropped?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import without_paths
from trivet.profile import PROFILES
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, problems
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import BODY, COLLECTION, NAMED, Asked, Name, given, responses

router = APIRouter(tags=["collections"])


def stats_of(engine: Engine) -> dict[str, Any]:
    found = wire.plain(engine.stats())
    del found["path"]
    found["embed_error"] = without_paths(found["embed_error"])
    found["model"] = without_paths(found["model"]) if found["model"] else None
    return {**found, "fields": list(found["fields"])}


@router.get("/v1/collections", responses=responses(answers.Collections), summary="List the collections")
async def list_collections(bridge: Asked, caller: Asking) -> Response:
    def work() -> list[str]:
        key = caller.key
        return [name for name in bridge.engines.names() if key is None or key.sees(name)]

    # a key bound to some collections may list those
    names = await bridge.listed(caller, work)
    return reply({"collections": names})


@router.put(
    COLLECTION,
    responses={
        **responses(answers.CollectionStats, *BODY),
        201: {"model": answers.CollectionStats, "description": "Made"},
    },
    summary="Make a collection",
)
async def make_collection(
    name: Name, bridge: Asked, caller: Asking, body: bodies.NewCollection | None = None
) -> Response:
    """Made if it is new; one that is there is answered as it is, and refused if it was made otherwise."""
    options = given(body) if body else {}

    def work() -> tuple[dict[str, Any], bool]:
        engine, new = bridge.engines.make(name, **options)
        return stats_of(engine), new

    found, new = await bridge.store(caller, "admin", work, name)
    return reply(found, 201 if new else 200)


@router.get(COLLECTION, responses=responses(answers.CollectionStats, *NAMED), summary="What is in it")
async def get_collection(name: Name, bridge: Asked, caller: Asking) -> Response:
    return reply(await bridge.run(caller, "read", name, stats_of))


@router.get(f"{COLLECTION}/stats", responses=responses(answers.CollectionStats, *NAMED), summary="Counts and sizes")
async def stats(name: Name, bridge: Asked, caller: Asking) -> Response:
    return reply(await bridge.run(caller, "read", name, stats_of))


@router.delete(
    COLLECTION,
    status_code=204,
    responses=responses(None, 404, 409, status=204),
    summary="Drop it with all that is in it",
)
async def drop_collection(name: Name, bridge: Asked, caller: Asking) -> Response:
    def work() -> None:
        if name == bridge.config.collection:
            raise problems.Refused(
                "conflict", "this is the server's own collection; it cannot be dropped", "collection"
            )
        bridge.engines.get(name).drop()
        bridge.engines.forget(name)
        bridge.jobs.forget(name)

    await bridge.store(caller, "admin", work, name)
    return Response(status_code=204)


@router.get("/v1/profiles", responses=responses(answers.Profiles), summary="The shipped profiles")
async def profiles(bridge: Asked, caller: Asking) -> Response:
    found = [{**profile.to_dict(), "identity": profile.identity} for profile in PROFILES.values()]
    await bridge.listed(caller, lambda: None)
    return reply({"profiles": found})
