"""Builds the FastAPI application: the middleware, the routes, the error handlers and the dispatcher."""

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

from trivet import __version__
from trivet.errors import TrivetError
from trivet.http import json_response, logs, middleware, problem_details, validation
from trivet.http.config import Config
from trivet.http.dispatch import Dispatcher
from trivet.http.openapi import describe
from trivet.http.routes import (
    collections,
    compatibility,
    conversations,
    documents,
    embeddings,
    evaluations,
    facets,
    feedback,
    files,
    health,
    import_export,
    jobs,
    links,
    recent_searches,
    reference,
    remember,
    search,
    service_info,
    settings,
    vector_stores,
    web_page,
)

CONFIG_VARIABLE = "TRIVET_SERVE_CONFIG"  # passes the configuration to the workers, as JSON
ROUTERS = (
    *(collections, documents, remember, facets, search, settings, feedback, links, jobs, import_export),
    *(evaluations, service_info, recent_searches, health, conversations, compatibility, web_page),
    *(embeddings, files, vector_stores, reference),
)
#: In the order in which the router tries them.
ROUTES = tuple(route for module in ROUTERS for route in module.router.routes)


def create(config: Config) -> FastAPI:
    """Return the application of one worker process."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.dispatcher = await anyio.to_thread.run_sync(Dispatcher, config)
        logs.event("ready", workers=config.workers, threads=config.threads)
        yield
        await anyio.to_thread.run_sync(app.state.dispatcher.close)
        logs.event("closed")

    app = FastAPI(
        title="trivet",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,  # the name of a method in a generated client
    )
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(TrivetError, _refused)  # inside CORS, so that a web page of an allowed origin may read it
    app.add_exception_handler(RequestValidationError, _invalid)
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID"],
        )
    app.add_middleware(middleware.RequestMiddleware, config=config, routes=ROUTES)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def from_environment() -> FastAPI:
    """Return the application of a worker that ``server.serve`` started."""
    config = Config.from_json(os.environ[CONFIG_VARIABLE])
    logs.set_up(config.log_level, config.log_format)
    return create(config)


async def _respond(request: Request, found: problem_details.Problem) -> Response:
    problem = await middleware.hidden_without_key(request.scope, found)
    body = json_response.to_bytes(problem.body(request.state.request_id, request.url.path))
    return Response(body, problem.status, dict(problem.headers), media_type=problem_details.MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> Response:
    found = middleware.problem_of(error)
    middleware.log_failure(found, error)
    if found.status == 405:  # Starlette lists the methods of one route only
        found = replace(found, headers={"Allow": ", ".join(sorted(_methods(request)))})
    return await _respond(request, found)


def _methods(request: Request) -> set[str]:
    found: set[str] = set()
    for route in ROUTES:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return found


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found: list[Any] = list(error.errors())
    return await _respond(request, validation.problem(found, request.headers.get("content-type", "none")))
