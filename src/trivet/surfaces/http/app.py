"""What is the service made of?

``create`` puts the rings together: the gate around everything, the routes inside, one bridge to the engines.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match

from trivet._version import __version__
from trivet.errors import TrivetError
from trivet.surfaces.config import Config
from trivet.surfaces.http import gate, logs, problems, replies, validation
from trivet.surfaces.http.bridge import Bridge
from trivet.surfaces.http.openapi import describe
from trivet.surfaces.http.routes import (
    choices,
    collections,
    conversations,
    documents,
    evaluations,
    facets,
    health,
    judging,
    learning,
    moving,
    page,
    recent,
    remembering,
    searching,
    seeds,
    settings,
)

CONFIG_VARIABLE = "TRIVET_SERVE_CONFIG"  # how `trivet serve` tells its workers, as JSON
ROUTERS = (
    *(collections, documents, remembering, facets, searching, settings, judging, learning, moving),
    *(evaluations, choices, recent, health, conversations, seeds, page),
)
#: In the order in which they are tried.
ROUTES = tuple(route for module in ROUTERS for route in module.router.routes)


def create(config: Config) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.bridge = await anyio.to_thread.run_sync(Bridge, config)
        logs.event("ready", workers=config.workers, threads=config.threads)
        yield
        await anyio.to_thread.run_sync(app.state.bridge.close)
        logs.event("closed")

    app = FastAPI(
        title="trivet", version=__version__, lifespan=lifespan, redirect_slashes=False, docs_url=None, redoc_url=None
    )
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(TrivetError, _refused)  # in here, so that a web page may read it (CORS)
    app.add_exception_handler(RequestValidationError, _invalid)
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID"],
        )
    app.add_middleware(gate.Gate, config=config, routes=ROUTES)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def from_environment() -> FastAPI:
    """In a worker."""
    config = Config.from_json(os.environ[CONFIG_VARIABLE])
    logs.set_up(config.log_level, config.log_format)
    return create(config)


async def _answer(request: Request, found: problems.Problem) -> Response:
    problem = await gate.keyed(request.scope, found)
    body = replies.payload(problem.body(request.state.request_id))
    return Response(body, problem.status, dict(problem.headers), media_type=problems.MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> Response:
    found = gate.known(error)
    gate.report(found, error)
    if found.status == 405:  # starlette names the methods of one route; a path may have several
        found = replace(found, headers={"Allow": ", ".join(sorted(_methods(request)))})
    return await _answer(request, found)


def _methods(request: Request) -> set[str]:
    found: set[str] = set()
    for route in ROUTES:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return found


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found: list[Any] = list(error.errors())
    return await _answer(request, validation.problem(found, request.headers.get("content-type", "none")))
