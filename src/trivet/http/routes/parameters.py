"""Path and query parameters that several routes have, and the check of filters."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.openapi.models import Example

from trivet.errors import InputError
from trivet.http import request_models
from trivet.http.dispatch import CallerAccess

Where = Annotated[
    list[str] | None,
    Query(description="A filter: `kind=note`, `year>=2020`, `tags=a,b`, or JSON. Repeat it to combine with AND."),
]
Redact = Annotated[bool, Query(description="Remove secrets of known formats before anything is stored.")]


def example(value: str) -> dict[str, Example]:
    """Return the example of a parameter; the page at ``/docs`` fills it in."""
    return {value: {"value": value}}


Name = Annotated[
    str, Path(alias="collection", description="The collection.", openapi_examples=example("default"), min_length=1)
]
Id = Annotated[
    str,
    Path(alias="id", description="The document's id; it may contain slashes.", openapi_examples=example("door-7")),
]
OtherCollection = Annotated[
    str | None, Query(alias="collection", description="A collection; the server's default if left out.", min_length=1)
]

COLLECTION = "/v1/collections/{collection}"
MAX_VALUES = 10_000  # of an `in` list in a request; the engine itself has no limit


async def caller_access(request: Request) -> CallerAccess:
    route = request.scope["route"]
    if route.path.startswith(COLLECTION):  # clients of other services send parameters that have no meaning here
        _refuse_unknown(request, [field.alias for field in route.dependant.query_params])
    return CallerAccess(request.app.state.dispatcher, request.state.caller)


def _refuse_unknown(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"{name}: unknown parameter; {hint}known: {', '.join(known) or 'none'}")


Access = Annotated[CallerAccess, Depends(caller_access)]


def fields_set(body: request_models.Body) -> dict[str, Any]:
    """Return the fields that the caller sent, without defaults."""
    return body.model_dump(exclude_unset=True)


def checked_filter(where: Any, limit: int, depth: int = 0) -> Any:
    """Return the filter; refuse one with more than ``limit`` levels or a list of more than ``MAX_VALUES`` values."""
    if depth > limit:
        raise InputError(f"where: nested more than {limit} levels deep")
    count = where.count(",") if isinstance(where, str) else len(where) if isinstance(where, list) else 0
    if count > MAX_VALUES:
        raise InputError(
            f"where: a list of {count:,} values; at most {MAX_VALUES:,} are allowed, send several requests"
        )
    if isinstance(where, dict):
        for key, value in where.items():
            checked_filter(value, limit, depth + key.startswith("$"))
    elif isinstance(where, list):
        for item in where:
            checked_filter(item, limit, depth)
    return where
