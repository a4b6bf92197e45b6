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

#: In the order of the page at /docs.
TAGS = {
    "collections": "Create, list and drop collections; their counts; the shipped profiles.",
    "documents": "Add, remember, read, change, list and delete documents; facets, timeline, superseded documents.",
    "search": "Search a collection, and explain the rank of a document.",
    "settings": "Change how a collection is searched; the history of the changes, and how to go back.",
    "feedback": "Judge hits, export the judgements, and learn from them in a background job.",
    "links": "Connect documents; the graph leg follows the connections.",
    "import and export": "Whole collections as NDJSON, and files of every kind that `trivet import` reads.",
    "conversations": "Projects, sessions and episodes, and a chat that recalls them.",
    "operation": "Health, metrics, saved evaluations, and what this server offers.",
    "openai": "Embeddings, files and vector stores for OpenAI's SDK.",
    "compatibility": "The routes of two earlier services.",
}
SERVERS = (
    {"url": "/", "description": "The server that sent this document."},
    {"url": "http://127.0.0.1:8787", "description": "A server with the default settings, for generated clients."},
)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of ``app``, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=ABOUT,
            routes=app.routes,
            summary="trivet over HTTP",
            tags=[{"name": name, "description": text} for name, text in TAGS.items()],
            servers=list(SERVERS),
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
