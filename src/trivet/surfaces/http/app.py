"""What is the service made of?

``create`` puts the rings together: the gate around everything, the routes inside, one bridge to the engines.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from trivet._version import __version__
from trivet.engine import Engine
from trivet.surfaces.config import Config
from trivet.surfaces.http import gate, logs, problems, replies, validation
from trivet.surfaces.http.access import Caller, caller
from trivet.surfaces.http.bridge import Bridge
from trivet.surfaces.http.openapi import describe
from trivet.surfaces.http.routes import collections, documents, health, judging, moving, searching, seeds, settings

CONFIG_VARIABLE = "TRIVET_SERVE_CONFIG"  # how `trivet serve` tells its workers, as JSON
ROUTERS = (collections, documents, searching, settings, judging, moving, health, seeds)
READING = ("GET", "HEAD", "OPTIONS")


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
    if (chat := _chat(app, config)) is not None:
        app.include_router(chat, dependencies=[Depends(_chat_guard)])
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID"],
        )
    app.add_middleware(gate.Gate, config=config)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def from_environment() -> FastAPI:
    """In a worker."""
    config = Config.from_json(os.environ[CONFIG_VARIABLE])
    logs.set_up(config.log_level, config.log_format)
    return create(config)


def _chat(app: FastAPI, config: Config) -> APIRouter | None:
    """The conversations' routes, where that part is there."""
    try:
        routes = importlib.import_module("trivet.chat.routes")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("trivet.chat"):
            return None
        raise

    def engine_for(collection: str | None = None) -> Engine:
        bridge: Bridge = app.state.bridge
        return bridge.ask(collection or config.collection, _alive)

    found: APIRouter = routes.router(engine_for, routes.ChatSettings.resolve(table=config.chat))
    return found


def _alive(engine: Engine) -> Engine:
    """Raises where another process dropped the collection, so that it is looked up anew."""
    assert engine.settings is not None
    return engine


async def _chat_guard(request: Request, asking: Caller = Depends(caller)) -> None:  # noqa: B008
    """Reading needs a key that reads the collection, everything else one that writes it."""
    bridge: Bridge = request.app.state.bridge
    named = request.path_params.get("collection") or request.query_params.get("collection")
    scope = "read" if request.method in READING else "write"
    await bridge.store(asking, scope, lambda: None, named or bridge.config.collection)


def _answer(request: Request, problem: problems.Problem) -> Response:
    body = replies.payload(problem.body(request.state.request_id))
    return Response(body, problem.status, dict(problem.headers), media_type=problems.MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> Response:
    return _answer(request, gate.known(error))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found: list[Any] = list(error.errors())
    return _answer(request, validation.problem(found, request.headers.get("content-type", "none")))
