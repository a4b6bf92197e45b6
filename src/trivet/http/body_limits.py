"""Limits on the body of a request, by the route that it is for.

``BODIES`` lists every route that reads a body, with the scope that the key needs before a byte of it is read. The body
of any other request is never read. An import is streamed: each of its lines is limited, not the whole.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope

from trivet.http.hosts import header
from trivet.http.problem_details import Refused
from trivet.http.routes.parameters import COLLECTION

if TYPE_CHECKING:
    from trivet.http.config import Config

NO_BODY_BYTES = 65_536  # the limit of a route without a body; uvicorn buffers as much before it stops reading
#: After an early response the rest of the body is read and thrown away, up to these limits. Without that the client
#: never sees the response: closing a socket with unread data resets the connection (nginx: lingering_close).
LINGER_BYTES, LINGER_SECONDS = 16_000_000, 2.0
CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class Body:
    """The scope that a key needs before the body is read, and whether the body is streamed."""

    scope: str
    streams: bool = False


BODIES: dict[tuple[str, str], Body] = {
    ("PUT", COLLECTION): Body("admin"),
    ("POST", f"{COLLECTION}/documents"): Body("write"),
    ("PUT", f"{COLLECTION}/documents/{{id:path}}"): Body("write"),
    ("PATCH", f"{COLLECTION}/documents/{{id:path}}"): Body("write"),
    ("POST", f"{COLLECTION}/remember"): Body("write"),
    ("POST", f"{COLLECTION}/import"): Body("write", streams=True),
    ("POST", f"{COLLECTION}/search"): Body("read"),
    ("POST", f"{COLLECTION}/explain"): Body("read"),
    ("PATCH", f"{COLLECTION}/settings"): Body("write"),
    ("POST", f"{COLLECTION}/settings/revert"): Body("write"),
    ("POST", f"{COLLECTION}/feedback"): Body("write"),
    ("POST", f"{COLLECTION}/jobs"): Body("write"),
    ("POST", f"{COLLECTION}/links"): Body("write"),
    ("PATCH", "/settings"): Body("write"),
    ("POST", "/projects"): Body("write"),
    ("POST", "/sessions"): Body("write"),
    ("POST", "/sessions/{id}/episodes"): Body("write"),
    ("POST", "/sessions/{id}/chat"): Body("write"),
    ("POST", "/v1/embeddings"): Body("read"),
    ("POST", "/v1/files"): Body("write"),
    ("POST", "/v1/vector_stores"): Body("admin"),
    ("POST", "/v1/vector_stores/{collection}/files"): Body("write"),
    ("POST", "/v1/vector_stores/{collection}/search"): Body("read"),
}


@dataclass(frozen=True, slots=True)
class RouteBody:
    """What is known about the body of a request from its route."""

    known: bool  # false: no route has this path
    body: Body | None = None
    collection: str = ""


def route_body(scope: Scope, routes: Sequence[BaseRoute], config: Config) -> RouteBody:
    """Return what the first matching route says about the body of the request."""
    for route in routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            body = BODIES.get((scope["method"], getattr(route, "path", "")))
            named = found.get("path_params", {}).get("collection") or QueryParams(scope["query_string"]).get(
                "collection"
            )
            return RouteBody(True, body, named or config.collection)
    return RouteBody(False)


class Incoming:
    """The body of one request as it arrives, limited in bytes (413) and in time (408)."""

    def __init__(self, receive: Receive, headers: Sequence[tuple[bytes, bytes]], config: Config) -> None:
        self._receive, self._seconds = receive, config.body_seconds
        self._until = asyncio.get_running_loop().time() + self._seconds
        self._limit: int | None = config.max_body_bytes
        self._read, self._whole = 0, False
        #: Checks the key. Runs inside CORS, so that a page of an allowed origin may read the refusal.
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        lengths = header(headers, b"content-length")
        self._length = _number(lengths[0]) if lengths else 0
        self._chunked = bool(header(headers, b"transfer-encoding"))
        self._encoding = ", ".join(header(headers, b"content-encoding")).strip().lower()

    @property
    def is_announced(self) -> bool:
        return self._chunked or self._length > 0

    @property
    def is_abandoned(self) -> bool:
        """Return whether too much of the body is left to keep the connection."""
        return not self._whole and (self._chunked or self._length > NO_BODY_BYTES)

    def limit(self, route: RouteBody, config: Config) -> None:
        """Apply the limits of the route; refuse a larger Content-Length before anything is read."""
        self._limit = config.max_body_bytes
        if route.known and route.body is None:
            self._limit = min(NO_BODY_BYTES, self._limit)
        elif route.body is not None and route.body.streams:
            self._limit = None
        if self._limit is not None and self._length > self._limit:
            detail = f"body: {self._length:,} bytes; at most {self._limit:,} are allowed, send several requests"
            raise Refused("too-large", detail, "body", CLOSE)
        if route.body is not None and self._encoding not in ("", "identity"):
            detail = f"Content-Encoding: {self._encoding[:40]!r} is not supported; send the body without it"
            raise Refused("media-type", detail, "Content-Encoding")

    async def receive(self) -> Message:
        if self.before_reading is not None:
            check, self.before_reading = self.before_reading, None
            await check()
        if self._whole:  # only a disconnect can follow; that may take any time
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            detail = f"body: not complete after {self._seconds:g} s; send it faster, or in several requests"
            raise Refused("too-slow", detail, "body", CLOSE) from None
        self._whole = not message.get("more_body", False)
        self._read += len(message.get("body", b""))
        if self._limit is None:
            self._until = asyncio.get_running_loop().time() + self._seconds
        elif self._read > self._limit:
            raise Refused("too-large", f"body: more than {self._limit:,} bytes; send several requests", "body", CLOSE)
        return message

    async def drain(self) -> None:
        """Read and throw away the rest of the body for a short time, while the response is sent."""
        left = LINGER_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0 and not self._whole:
                    message = await self._receive()
                    self._whole = not message.get("more_body", False)  # also true of a disconnect
                    left -= len(message.get("body", b""))


def _number(text: str) -> int:
    """Return the length; 15 digits are more than any limit has."""
    return int(text[:15]) if text.isascii() and text.isdigit() else 0
