"""How are questions answered here, who changed that, and how is it taken back?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.profile import Profile, named
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, naming
from trivet.surfaces.http.access import Asking, Caller
from trivet.surfaces.http.bridge import Bridge
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import BODY, COLLECTION, NAMED, Asked, Name, responses

router = APIRouter(tags=["settings"])


def shown(profile: Profile) -> dict[str, Any]:
    weights = {"semanticWeight": profile.weights["dense"], "keywordWeight": profile.weights["lexical"]}
    return {**profile.to_dict(), "identity": profile.identity, **weights}


async def change(bridge: Bridge, caller: Caller, collection: str, body: bodies.SettingsChanges) -> Response:
    said = body.model_dump(exclude_unset=True)
    start = named(said.pop("profile")) if said.get("profile") is not None else None
    said.pop("profile", None)
    changes = naming.settings(said)
    if start is None and not changes:
        raise InputError("settings: nothing to change; name one such as keywordWeight")

    def work(engine: Engine) -> Profile:
        (start or engine.settings).with_changes(changes)  # by the profile's own checks, before anything is written
        return engine.update_settings(start, by=caller.name, **changes)

    return reply(shown(await bridge.whole(caller, "write", collection, work)))


@router.get(
    f"{COLLECTION}/settings", responses=responses(answers.SettingsInForce, *NAMED), summary="The settings in force"
)
async def get_settings(name: Name, bridge: Asked, caller: Asking) -> Response:
    return reply(shown(await bridge.run(caller, "read", name, lambda engine: engine.settings)))


@router.patch(
    f"{COLLECTION}/settings", responses=responses(answers.SettingsInForce, *NAMED, *BODY), summary="Change the settings"
)
async def patch_settings(name: Name, body: bodies.SettingsChanges, bridge: Asked, caller: Asking) -> Response:
    """In force for the next request of every worker and every process."""
    return await change(bridge, caller, name, body)


@router.get(
    f"{COLLECTION}/settings/history",
    responses=responses(answers.SettingsHistory, *NAMED),
    summary="Who changed what, when",
)
async def history(
    name: Name, bridge: Asked, caller: Asking, limit: Annotated[int, Query(ge=1, le=1_000)] = 20
) -> Response:
    """The latest first."""
    found = await bridge.whole(caller, "read", name, lambda engine: engine.settings_history(limit))
    changes = [
        {
            "number": item.number,
            "at": wire.plain(item.at),
            "by": item.by,
            "settings": shown(item.profile),
            "previous": shown(item.previous) if item.previous else None,
        }
        for item in found
    ]
    return reply({"changes": changes})


@router.post(
    f"{COLLECTION}/settings/revert",
    responses=responses(answers.SettingsInForce, *NAMED, *BODY),
    summary="Take a change back",
)
async def revert(name: Name, body: bodies.Revert, bridge: Asked, caller: Asking) -> Response:
    """The settings that change number ``to`` made come into force again; that is a change too."""
    found = await bridge.whole(caller, "write", name, lambda engine: engine.revert_settings(body.to, by=caller.name))
    return reply(shown(found))
