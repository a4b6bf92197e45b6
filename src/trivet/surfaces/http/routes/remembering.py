"""What becomes of something that is told, perhaps again?

The same is reinforced and not stored twice, however many tell it at once; what says nearly the same is reported with a
suggestion.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.engine import Engine
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, metrics
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import BODY, COLLECTION, NAMED, Asked, Name, degraded, given, responses, shallow
from trivet.types import Remembered

router = APIRouter(tags=["documents"])


@router.post(
    f"{COLLECTION}/remember",
    responses={
        **responses(answers.RememberedMemory, *NAMED, *BODY, 409),
        201: {"model": answers.RememberedMemory, "description": "Stored"},
    },
    summary="Remember, unless it is known",
)
async def remember(name: Name, body: bodies.NewMemory, bridge: Asked, caller: Asking) -> Response:
    """201: stored. 200: the same is known (title and text up to case, width and white space, kind, metadata, validity),
    and was reinforced; its id is told."""
    asked = given(body)
    text, where = asked.pop("text"), shallow(asked.pop("where", None), bridge.config.max_filter_depth)

    def work(engine: Engine) -> Remembered:
        return engine.remember(text, where=where, **asked)

    found = await bridge.run(caller, "write", name, work)
    metrics.WRITTEN.inc(found.stored)
    told: dict[str, Any] = wire.plain(found)
    return reply({**told, "degraded": degraded(found.degraded)}, 201 if found.stored else 200)
