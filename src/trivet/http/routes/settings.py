"""Settings of a collection: read, change, history, revert."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.http import setting_aliases
from trivet.http.dispatch import CallerAccess
from trivet.http.json_response import json_response
from trivet.http.request_models import Revert, SettingsChanges
from trivet.http.response_models import NOT_FOUND, WITH_BODY, SettingsHistory, SettingsInForce, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name
from trivet.profile import Profile, named

router = APIRouter(tags=["settings"])


def settings_of(profile: Profile) -> dict[str, Any]:
    """Return a profile for a response, with the two weights under their other names too."""
    weights = {"semanticWeight": profile.weights["dense"], "keywordWeight": profile.weights["lexical"]}
    return {**profile.to_dict(), "identity": profile.identity, **weights}


async def change(access: CallerAccess, collection: str, body: SettingsChanges) -> Response:
    fields = body.model_dump(exclude_unset=True)
    profile = fields.pop("profile", None)
    start = named(profile) if profile is not None else None
    changes = setting_aliases.canonical(fields)
    if start is None and not changes:
        raise InputError("settings: nothing to change; give a setting such as keywordWeight")

    def work(engine: Engine) -> Profile:
        (start or engine.settings).with_changes(changes)  # refuses invalid changes before anything is written
        return engine.update_settings(start, by=access.caller.name, **changes)

    return json_response(settings_of(await access.run_unbound("write", collection, work)))


@router.get(f"{COLLECTION}/settings", responses=responses(SettingsInForce, *NOT_FOUND), summary="Get the settings")
async def get_settings(name: Name, access: Access) -> Response:
    return json_response(settings_of(await access.run("read", name, lambda engine: engine.settings)))


@router.patch(
    f"{COLLECTION}/settings",
    responses=responses(SettingsInForce, *NOT_FOUND, *WITH_BODY),
    summary="Change the settings",
)
async def change_settings(name: Name, body: SettingsChanges, access: Access) -> Response:
    """The next request uses them, in every worker and every process."""
    return await change(access, name, body)


@router.get(
    f"{COLLECTION}/settings/history",
    responses=responses(SettingsHistory, *NOT_FOUND),
    summary="List the changes of the settings",
)
async def list_settings_changes(
    name: Name, access: Access, limit: Annotated[int, Query(ge=1, le=1_000)] = 20
) -> Response:
    """The latest first, each with its author and time."""
    found = await access.run_unbound("read", name, lambda engine: engine.settings_history(limit))
    changes = [
        {
            "number": item.number,
            "at": serialize.plain(item.at),
            "by": item.by,
            "settings": settings_of(item.profile),
            "previous": settings_of(item.previous) if item.previous else None,
        }
        for item in found
    ]
    return json_response({"changes": changes})


@router.post(
    f"{COLLECTION}/settings/revert",
    responses=responses(SettingsInForce, *NOT_FOUND, *WITH_BODY),
    summary="Revert the settings",
)
async def revert_settings(name: Name, body: Revert, access: Access) -> Response:
    """Apply the settings that change number `to` made again; the revert is recorded as a change."""
    found = await access.run_unbound(
        "write", name, lambda engine: engine.revert_settings(body.to, by=access.caller.name)
    )
    return json_response(settings_of(found))
