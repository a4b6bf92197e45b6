"""The OpenAPI document: FastAPI's own, with problem media types, API keys and request ids added."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from trivet import types
from trivet.http import response_models
from trivet.http.access import OPEN, SCHEMES
from trivet.http.problem_details import MEDIA_TYPE

ABOUT = """Hybrid retrieval: finds documents by their words and by their meaning, and explains every hit.

Errors are RFC 9457 problem details (`application/problem+json`). They name the field that is wrong and the id of the
request, under which the server's log has more. Every response carries that id in `X-Request-ID`; send that header to
choose the id yourself."""


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of ``app``, made once."""
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
                    _complete_response(int(status), response)
        _complete_schemas(schema["components"]["schemas"])
        app.openapi_schema = schema
    return app.openapi_schema


def _complete_response(status: int, response: dict[str, Any]) -> None:
    response.setdefault("headers", {})["X-Request-ID"] = {
        "description": "The id of the request, as in the log.",
        "schema": {"type": "string"},
    }
    content = response.get("content", {})
    if status >= 400 and "application/json" in content:
        content[MEDIA_TYPE] = content.pop("application/json")


def _complete_schemas(schemas: dict[str, Any]) -> None:
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own; ours are problem details
        schemas.pop(name, None)
    for name, schema in schemas.items():
        kind = getattr(types, name, getattr(response_models, name, None))
        if isinstance(kind, type) and is_dataclass(kind):  # a field with a default is written too
            schema["required"] = [field.name for field in fields(kind)]
        for field, text in response_models.DESCRIPTIONS.get(name, {}).items():
            schema["properties"][field]["description"] = text
