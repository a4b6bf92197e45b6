"""Which answers were good, and which documents belong together? (feedback and links)"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import NotFoundError
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.documents import missing
from trivet.surfaces.http.routes.shared import BODY, COLLECTION, NAMED, Asked, Name, responses

router = APIRouter()
FEEDBACK, LINKS = f"{COLLECTION}/feedback", f"{COLLECTION}/links"


@router.post(
    FEEDBACK,
    tags=["feedback"],
    status_code=201,
    responses=responses(answers.GivenFeedback, *NAMED, *BODY, status=201),
    summary="Say how good an answer was",
)
async def give_feedback(name: Name, body: bodies.Verdict, bridge: Asked, caller: Asking) -> Response:
    """Said again, the later verdict counts."""
    found = await bridge.run(caller, "write", name, lambda engine: engine.feedback(body.query, body.id, body.good))
    return reply(wire.plain(found), 201)


@router.get(
    FEEDBACK, tags=["feedback"], responses=responses(answers.Feedbacks, *NAMED), summary="Everything that was said"
)
async def list_feedback(name: Name, bridge: Asked, caller: Asking) -> Response:
    return reply({"feedback": wire.plain(await bridge.run(caller, "read", name, lambda engine: engine.feedbacks()))})


@router.delete(
    FEEDBACK, tags=["feedback"], responses=responses(answers.Forgotten, *NAMED), summary="Take feedback back"
)
async def forget_feedback(
    name: Name,
    bridge: Asked,
    caller: Asking,
    query: Annotated[str | None, Query()] = None,
    id: Annotated[str | None, Query()] = None,
) -> Response:
    """Of a question, of a document, or of one for the other; without either, all of it."""
    found = await bridge.run(caller, "write", name, lambda engine: engine.forget_feedback(query, id))
    return reply({"forgotten": found})


@router.get(LINKS, tags=["links"], responses=responses(answers.Links, *NAMED), summary="Links of a document, or all")
async def list_links(
    name: Name, bridge: Asked, caller: Asking, id: Annotated[str | None, Query(examples=["door-7"])] = None
) -> Response:
    def work(engine: Engine) -> Any:
        if id is not None and engine.get(id) is None:
            raise missing(id, engine)
        return wire.plain(engine.links(id))

    return reply({"links": await bridge.run(caller, "read", name, work)})


@router.post(
    LINKS,
    tags=["links"],
    status_code=201,
    responses=responses(answers.StoredLink, *NAMED, *BODY, status=201),
    summary="Connect two documents",
)
async def make_link(name: Name, body: bodies.NewLink, bridge: Asked, caller: Asking) -> Response:
    found = await bridge.run(
        caller, "write", name, lambda engine: engine.link(body.source, body.target, body.type, body.weight)
    )
    return reply(wire.plain(found), 201)


@router.delete(LINKS, tags=["links"], responses=responses(answers.Removed, *NAMED), summary="Take a link away")
async def remove_link(
    name: Name,
    bridge: Asked,
    caller: Asking,
    source: Annotated[str, Query()],
    target: Annotated[str, Query()],
    type: Annotated[str | None, Query(description="Without it, all links between the two.")] = None,
) -> Response:
    def work(engine: Engine) -> int:
        count: int = engine.unlink(source, target, type)
        if not count:
            raise NotFoundError(f"link: there is none from {source!r} to {target!r}")
        return count

    return reply({"removed": await bridge.run(caller, "write", name, work)})
