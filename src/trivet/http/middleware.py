"""The outermost ASGI middleware.

It gives every request an id, limits the size of its body (413) and the time until it has arrived (408), measures and
logs the request, and turns every error into problem details without a stack trace.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trivet.engine.keys import token_of
from trivet.errors import TrivetError
from trivet.http import body_limits, logs, metrics, problem_details
from trivet.http.access import OPEN, Caller, refuse_foreign
from trivet.http.dispatch import CallerAccess
from trivet.http.json_response import to_bytes

if TYPE_CHECKING:
    from trivet.http.config import Config

_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NO_SNIFFING = (b"x-content-type-options", b"nosniff")
UNKNOWN = "unknown"  # one label for all paths without a route


class RequestMiddleware:
    """Wraps the application; see the module."""

    def __init__(self, app: ASGIApp, config: Config, routes: Sequence[BaseRoute]) -> None:
        self._app, self._config, self._routes = app, config, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        identifier = given if _ID.fullmatch(given) else secrets.token_hex(8)
        logs.request_id.set(identifier)
        caller = Caller(token_of(headers))
        scope.setdefault("state", {}).update(request_id=identifier, caller=caller)
        status, started = 0, time.perf_counter()
        incoming = body_limits.Incoming(receive, scope["headers"], self._config)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = [*message.get("headers", ()), (b"x-request-id", identifier.encode()), NO_SNIFFING]
                if cut_off():
                    named = [item for item in named if item[0] != b"connection"] + [(b"connection", b"close")]
                message["headers"] = named
            elif cut_off() and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await incoming.drain()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        def cut_off() -> bool:
            return status >= 400 and incoming.is_abandoned

        try:
            if scope["path"] not in OPEN:
                refuse_foreign(scope["headers"], scope["method"], self._config)
            _refuse_unreadable(scope)
            if incoming.is_announced:
                route = body_limits.route_body(scope, self._routes, self._config)
                incoming.limit(route, self._config)
                if route.body is not None:
                    incoming.before_reading = partial(_access(scope).authorize, route.body.scope, route.collection)
            await self._app(scope, incoming.receive, sending)
        except Exception as error:
            problem = await hidden_without_key(scope, problem_of(error))
            log_failure(problem, error)
            if status:  # the response has begun; it can only be cut off
                raise
            await _send(sending, problem, identifier, scope["path"])
        finally:
            _log_request(scope, status, time.perf_counter() - started)


def _refuse_unreadable(scope: Scope) -> None:
    """Refuse a path that is not UTF-8: each wrong byte would be read as the same character."""
    raw = scope.get("raw_path") or b""
    if b"%" in raw:
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise problem_details.Refused(
                "malformed", "path: not UTF-8; percent-encode the UTF-8 bytes of the name", "path"
            ) from None


_BAD_REQUEST = (400, 413, 415, 422)


def _access(scope: Scope) -> CallerAccess:
    return CallerAccess(scope["app"].state.dispatcher, scope["state"]["caller"])


async def hidden_without_key(scope: Scope, problem: problem_details.Problem) -> problem_details.Problem:
    """Return ``problem``, or the missing key for a caller who needs one and has none.

    The routes check the key together with their work, so what fails before that has not been checked yet.
    """
    caller: Caller = scope["state"]["caller"]
    if problem.status not in _BAD_REQUEST or caller.checked or scope["path"] in OPEN:
        return problem
    try:
        await _access(scope).authorize()
    except TrivetError as error:
        return problem_details.of(error)
    return problem


def log_failure(problem: problem_details.Problem, error: Exception) -> None:
    """Log a failure with its stack trace; a timeout is not an error in the code."""
    if problem.kind == "timeout":
        logs.event("timed out", logging.WARNING)
    elif problem.status >= 500:
        logs.event("failed", logging.ERROR, error)


def problem_of(error: Exception) -> problem_details.Problem:
    """Return the problem details of any exception; an unexpected one is described in the log only."""
    found: BaseException | None = error
    while found is not None:  # the framework may have wrapped an error of ours
        if isinstance(found, TrivetError):
            return problem_details.of(found)
        found = found.__cause__ or found.__context__
    if isinstance(error, HTTPException):
        return unreadable(error) or of_status(error)
    return problem_details.Problem("failed", "an unexpected error; see the log under the request's id")


def unreadable(error: HTTPException) -> problem_details.Problem | None:
    """Return why the body could not be parsed, if its parser gave a reason."""
    cause = error.__cause__
    if isinstance(cause, RecursionError):
        detail = "body: nested too deeply; use fewer levels"
    elif isinstance(cause, UnicodeDecodeError):
        detail = "body: not UTF-8; encode it as UTF-8"
    elif isinstance(cause, ValueError) and "digits" in str(cause):
        detail = "body: a number has too many digits; send it as text"
    else:
        return None
    return problem_details.Problem("malformed", detail, problem_details.field_errors("body", detail))


_BY_STATUS = {400: "malformed", 404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "media-type"}


def of_status(error: HTTPException) -> problem_details.Problem:
    """Return the problem details of what the framework refused."""
    kind = _BY_STATUS.get(error.status_code, "invalid" if error.status_code < 500 else "failed")
    detail = {
        "malformed": "the body is not valid JSON",
        "not-found": "no such route; GET /openapi.json lists all routes",
    }.get(kind, problem_details.KINDS[kind][1])
    return problem_details.Problem(kind, detail, headers=dict(error.headers or {}))


async def _send(send: Send, problem: problem_details.Problem, identifier: str, path: str) -> None:
    body = to_bytes(problem.body(identifier, path))
    headers = [(b"content-type", problem_details.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", UNKNOWN)
    method = scope["method"] if scope["method"] in _METHODS else "other"  # a client can invent any number of methods
    metrics.REQUESTS.labels(method, route, str(status)).inc()
    metrics.SECONDS.labels(route).observe(seconds)
    details: dict[str, Any] = {
        "method": scope["method"],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 2),
    }
    caller = scope["state"]["caller"]
    if caller.key is not None:
        details["key"] = caller.key.name
    quiet = route in ("/healthz", "/readyz", "/metrics") or route.startswith("/assets/")
    level = logging.DEBUG if quiet else logging.INFO
    logs.event("request", level, **details)
