"""What happens to every request, whatever it asks?

The outermost ring, plain ASGI: it gets an id, its body is counted (413) and waited for so long (408), its time is
measured and logged, and whatever goes wrong inside becomes a problem without a stack trace.
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

from trivet.errors import TrivetError
from trivet.keys import token_of
from trivet.surfaces.http import limits, logs, metrics, problems
from trivet.surfaces.http.access import OPEN, Caller, refuse_foreign
from trivet.surfaces.http.replies import payload

if TYPE_CHECKING:
    from trivet.surfaces.config import Config

_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NO_SNIFFING = (b"x-content-type-options", b"nosniff")
UNKNOWN = "unknown"  # a path that is no route's: not a label each


class Gate:
    def __init__(self, app: ASGIApp, config: Config, routes: Sequence[BaseRoute]) -> None:
        self._app, self._config, self._routes = app, config, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        asked = headers.get(b"x-request-id", b"").decode("latin-1")
        identifier = asked if _ID.fullmatch(asked) else secrets.token_hex(8)
        logs.request_id.set(identifier)
        caller = Caller(token_of(headers))
        scope.setdefault("state", {}).update(request_id=identifier, caller=caller)
        status, started = 0, time.perf_counter()
        incoming = limits.Incoming(receive, scope["headers"], self._config)

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
                route = limits.asked(scope, self._routes, self._config)
                incoming.limit(route, self._config)
                if route.body is not None:
                    permit = scope["app"].state.bridge.permit
                    incoming.before_reading = partial(permit, caller, route.body.scope, route.collection)
            await self._app(scope, incoming.receive, sending)
        except Exception as error:
            told = await keyed(scope, known(error))
            report(told, error)
            if status:  # it is under way: all that is left is to end it
                raise
            await _send(sending, told, identifier)
        finally:
            _account(scope, status, time.perf_counter() - started)


def _refuse_unreadable(scope: Scope) -> None:
    """A path that is not UTF-8 would be read as another one: every wrong byte as the same sign."""
    raw = scope.get("raw_path") or b""
    if b"%" in raw:
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise problems.Refused(
                "malformed", "path: it is not UTF-8; encode the name as UTF-8 first", "path"
            ) from None


_ASKED_WRONGLY = (400, 413, 415, 422)


async def keyed(scope: Scope, told: problems.Problem) -> problems.Problem:
    """Who needs a key and has none is told that, and nothing of what else is wrong with their request. The routes ask
    for the key together with their work; what fails before that comes here."""
    caller: Caller = scope["state"]["caller"]
    if told.status not in _ASKED_WRONGLY or caller.checked or scope["path"] in OPEN:
        return told
    try:
        await scope["app"].state.bridge.listed(caller, lambda: None)
    except TrivetError as error:
        return problems.of(error)
    return told


def report(told: problems.Problem, error: Exception) -> None:
    """Log a failure with its stack; a request that took too long is not one of the code."""
    if told.kind == "timeout":
        logs.event("timed out", logging.WARNING)
    elif told.status >= 500:
        logs.event("failed", logging.ERROR, error)


def known(error: Exception) -> problems.Problem:
    """Any exception as a problem; one nobody expected tells nothing of itself."""
    found: BaseException | None = error
    while found is not None:  # a framework may have wrapped ours
        if isinstance(found, TrivetError):
            return problems.of(found)
        found = found.__cause__ or found.__context__
    if isinstance(error, HTTPException):
        return unreadable(error) or of_status(error)
    return problems.Problem("failed", "an unexpected error; the log tells more under the request's id")


def unreadable(error: HTTPException) -> problems.Problem | None:
    """Say why a body could not be parsed, where its parser said so."""
    cause = error.__cause__
    if isinstance(cause, RecursionError):
        told = "body: it is nested too deeply; send it flatter"
    elif isinstance(cause, UnicodeDecodeError):
        told = "body: it is not UTF-8; encode it as UTF-8 first"
    elif isinstance(cause, ValueError) and "digits" in str(cause):
        told = "body: a number in it has too many digits; send it as text"
    else:
        return None
    return problems.Problem("malformed", told, problems.named("body", told))


_BY_STATUS = {400: "malformed", 404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "media-type"}


def of_status(error: HTTPException) -> problems.Problem:
    """What the framework itself refuses."""
    kind = _BY_STATUS.get(error.status_code, "invalid" if error.status_code < 500 else "failed")
    detail = {
        "malformed": "the body is not JSON that can be read",
        "not-found": "there is no such route; GET /openapi.json lists them",
    }.get(kind, problems.KINDS[kind][1])
    return problems.Problem(kind, detail, headers=dict(error.headers or {}))


async def _send(send: Send, problem: problems.Problem, identifier: str) -> None:
    body = payload(problem.body(identifier))
    headers = [(b"content-type", problems.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _account(scope: Scope, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", UNKNOWN)
    method = scope["method"] if scope["method"] in _METHODS else "other"  # a client may make up any number
    metrics.REQUESTS.labels(method, route, str(status)).inc()
    metrics.SECONDS.labels(route).observe(seconds)
    told: dict[str, Any] = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 2)}
    caller = scope["state"]["caller"]
    if caller.key is not None:
        told["key"] = caller.key.name
    quiet = route in ("/healthz", "/readyz", "/metrics") or route.startswith("/assets/")
    level = logging.DEBUG if quiet else logging.INFO
    logs.event("request", level, **told)
