"""What do the routes have in common?

The collection in the path, the bridge behind the app, and which problems each route may answer with.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from trivet.errors import InputError, without_paths
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, problems
from trivet.surfaces.http.bridge import Bridge

Where = Annotated[
    list[str] | None,
    Query(description="A filter: `kind=note`, `year>=2020`, `tags=a,b`, or JSON. Repeat: all must hold."),
]
Redact = Annotated[bool, Query(description="Take secrets of known shapes out before anything is stored.")]
Name = Annotated[str, Path(alias="collection", description="The collection.", examples=["default"], min_length=1)]
Id = Annotated[str, Path(alias="id", description="The document's id; it may hold slashes.", examples=["door-7"])]

COLLECTION = "/v1/collections/{collection}"
#: The problems every route may answer with; 404 where something is named, 408, 413 and 415 where there is a body.
ALWAYS = (400, 401, 403, 405, 422, 429, 500, 503, 504)


async def bridge_of(request: Request) -> Bridge:
    found: Bridge = request.app.state.bridge
    return found


Asked = Annotated[Bridge, Depends(bridge_of)]


def responses(model: Any, *more: int, status: int = 200, example: Any = None) -> dict[int | str, dict[str, Any]]:
    """What a route may answer, for OpenAPI."""
    good: dict[str, Any] = {"description": "Done"}
    if model is not None:
        good["model"] = model
    if example is not None:
        good["content"] = {"application/json": {"example": example}}
    found: dict[int | str, dict[str, Any]] = {status: good}
    titles = dict(reversed(problems.KINDS.values()))
    for code in sorted({*ALWAYS, *more}):
        found[code] = {"description": titles[code], "model": answers.ProblemDetails}
    return found


MAX_VALUES = 10_000  # of an `in` list in a request; the engine itself takes any number
NAMED, BODY = (404,), (408, 413, 415)


def given(body: bodies.Body) -> dict[str, Any]:
    """What the caller said, and nothing they did not."""
    return body.model_dump(exclude_unset=True)


def shallow(where: Any, limit: int, depth: int = 0) -> Any:
    """The filter, if it is not nested deeper or longer than this server allows."""
    if depth > limit:
        raise InputError(f"where: nested more than {limit} levels deep")
    count = where.count(",") if isinstance(where, str) else len(where) if isinstance(where, list) else 0
    if count > MAX_VALUES:
        raise InputError(f"where: a list of {count:,} values; at most {MAX_VALUES:,}, ask in several requests")
    if isinstance(where, dict):
        for key, value in where.items():
            shallow(value, limit, depth + key.startswith("$"))
    elif isinstance(where, list):
        for item in where:
            shallow(item, limit, depth)
    return where


def degraded(items: Any) -> list[dict[str, str]]:
    """A reason may quote a path of a model: not to the world."""
    return [{"part": item.part, "reason": without_paths(item.reason)} for item in items]


def added(found: Any) -> dict[str, Any]:
    return {**wire.plain(found), "degraded": degraded(found.degraded)}
