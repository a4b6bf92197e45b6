"""What happens to every request, whatever it asks?

The outermost ring, plain ASGI: it gets an id, its body is counted (413) and waited for so long (408), its time is
measured and logged, and whatever goes wrong inside becomes a problem without a stack trace.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trivet.errors import TrivetError
from trivet.keys import token_of
from trivet.surfaces.http import logs, metrics, problems
from trivet.surfaces.http.access import OPEN, Caller, refuse_foreign
from trivet.surfaces.http.replies import payload

if TYPE_CHECKING:
    from trivet.surfaces.config import Config

_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
UNLIMITED = "/import"  # streams: each of its lines is limited instead
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
UNKNOWN = "unknown"  # a path that is no route's: not a label each


class Gate:
    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app, self._config, self._limit = app, config, config.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        asked = headers.get(b"x-request-id", b"").decode("latin-1")
        identifier = asked if _ID.fullmatch(asked) else secrets.token_hex(8)
        logs.request_id.set(identifier)
        scope.setdefault("state", {})["request_id"] = identifier
        status, started = 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", identifier.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        read, whole = 0, False
        unlimited = scope["path"].endswith(UNLIMITED)
        patience = self._config.body_seconds
        until = asyncio.get_running_loop().time() + patience

        async def receiving() -> Message:
            nonlocal read, whole, until
            if whole:  # all that can still come is that the client goes away, and that may take as long as it likes
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                told = f"body: not here after {patience:g} s; send it faster, or in several requests"
                raise problems.Refused("too-slow", told, "body", {"Connection": "close"}) from None
            whole = not message.get("more_body", False)
            if unlimited:
                until = asyncio.get_running_loop().time() + patience
            read += len(message.get("body", b""))
            if read > self._limit and not unlimited:
                raise problems.Refused(
                    "too-large", f"body: more than {self._limit:,} bytes; send less at a time", "body"
                )
            return message

        try:
            if scope["path"] not in OPEN:
                refuse_foreign(headers, scope["method"], self._config)
            said = headers.get(b"content-length", b"0")
            if said.isdigit() and int(said) > self._limit and not unlimited:
                raise problems.Refused(
                    "too-large", f"body: {int(said):,} bytes; at most {self._limit:,}, send less at a time", "body"
                )
            await self._app(scope, receiving, sending)
        except Exception as error:
            told = await keyed(scope, known(error))
            if told.status >= 500:
                logs.event("failed", logging.ERROR, error)
            if status:  # it is under way: all that is left is to end it
                raise
            await _send(sending, told, identifier)
        finally:
            _account(scope, status, time.perf_counter() - started)


_ASKED_WRONGLY = (400, 413, 415, 422)


async def keyed(scope: Scope, told: problems.Problem) -> problems.Problem:
    """Who needs a key and has none is told that, and nothing of what else is wrong with their request. The routes ask
    for the key together with their work; what fails before that comes here."""
    caller = scope.get("state", {}).get("caller") or Caller(token_of(dict(scope["headers"])))
    if told.status not in _ASKED_WRONGLY or caller.checked or scope["path"] in OPEN:
        return told
    try:
        await scope["app"].state.bridge.listed(caller, lambda: None)
    except TrivetError as error:
        return problems.of(error)
    return told


def known(error: Exception) -> problems.Problem:
    """Any exception as a problem; one nobody expected tells nothing of itself."""
    found: BaseException | None = error
    while found is not None:  # a framework may have wrapped ours
        if isinstance(found, TrivetError):
            return problems.of(found)
        found = found.__cause__ or found.__context__
    if isinstance(error, HTTPException):
        return of_status(error)
    return problems.Problem("failed", "an unexpected error; the log tells more under the request's id")


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
    caller = scope.get("state", {}).get("caller")
    if caller is not None and caller.key is not None:
        told["key"] = caller.key.name
    quiet = route in ("/healthz", "/readyz", "/metrics") or route.startswith("/assets/")
    level = logging.DEBUG if quiet else logging.INFO
    logs.event("request", level, **told)
