"""What does OpenAPI say of the service?

FastAPI's own description, with every failure under its real media type, how a key is sent and the ids of requests.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from trivet.surfaces.http.access import OPEN, SCHEMES
from trivet.surfaces.http.problems import MEDIA_TYPE

ABOUT = """Hybrid retrieval: documents found by their words and by their meaning, every hit explained.

Failures are RFC 9457 problem details (`application/problem+json`) with the field at fault and the id of the request,
under which the server's log tells more. Every answer has that id in `X-Request-ID`; send one to choose it."""


def describe(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=ABOUT, routes=app.routes, summary="trivet over HTTP"
        )
        schema["components"]["securitySchemes"] = SCHEMES
        for path, item in schema["paths"].items():
            for operation in item.values():
                if path not in OPEN:
                    operation["security"] = [{name: []} for name in SCHEMES]
                for status, response in operation["responses"].items():
                    _complete(int(status), response)
        schemas = schema.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own; ours are problems
            schemas.pop(name, None)
        app.openapi_schema = schema
    return app.openapi_schema


def _complete(status: int, response: dict[str, Any]) -> None:
    response.setdefault("headers", {})["X-Request-ID"] = {
        "description": "The id of the request, as in the log.",
        "schema": {"type": "string"},
    }
    content = response.get("content", {})
    if status >= 400 and "application/json" in content:
        content[MEDIA_TYPE] = content.pop("application/json")
