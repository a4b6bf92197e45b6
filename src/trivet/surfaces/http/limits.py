"""Limits on the body of a request, by the route that it is for.

``BODIES`` names every route that reads a body, and what a key must allow before a byte of it is read. Every other path
never has its body read. An import streams: its lines are limited one by one, and the key is checked first all the same.
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

from trivet.surfaces.hosts import header
from trivet.surfaces.http.problems import Refused
from trivet.surfaces.http.routes.shared import COLLECTION

if TYPE_CHECKING:
    from trivet.surfaces.config import Config

NO_BODY_BYTES = 65_536  # for a route that takes none; as much as uvicorn holds before it stops to read
#: What is still taken from a client that was answered while it sent, and thrown away. One that is cut off at once does
#: not read the answer: a socket that is closed with something unread resets the connection (nginx: lingering_close).
LINGER_BYTES, LINGER_SECONDS = 16_000_000, 2.0
CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class Body:
    """What a key must allow before the body is read, and whether it is read as it comes."""

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
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The route that a request is for, as far as its body is concerned."""

    known: bool  # is it a route at all?
    body: Body | None = None
    collection: str = ""


def asked(scope: Scope, routes: Sequence[BaseRoute], config: Config) -> Asked:
    """Return what the request's route says of its body; the first route that matches, as the router finds it."""
    for route in routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            body = BODIES.get((scope["method"], getattr(route, "path", "")))
            named = found.get("path_params", {}).get("collection") or QueryParams(scope["query_string"]).get(
                "collection"
            )
            return Asked(True, body, named or config.collection)
    return Asked(False)


class Incoming:
    """The body of one request as it arrives: counted (413), and waited for only so long (408)."""

    def __init__(self, receive: Receive, headers: Sequence[tuple[bytes, bytes]], config: Config) -> None:
        self._receive, self._patience = receive, config.body_seconds
        self._until = asyncio.get_running_loop().time() + self._patience
        self._limit: int | None = config.max_body_bytes
        self._read, self._whole = 0, False
        #: Refuses who may not, in there where a page of an allowed origin may read the answer (CORS).
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
        """Is so much of it left that the connection is better closed than read to its end?"""
        return not self._whole and (self._chunked or self._length > NO_BODY_BYTES)

    def limit(self, route: Asked, config: Config) -> None:
        """Take the limit of the route; refuse what is announced beyond it, before any of it is read."""
        self._limit = config.max_body_bytes
        if route.known and route.body is None:
            self._limit = min(NO_BODY_BYTES, self._limit)
        elif route.body is not None and route.body.streams:
            self._limit = None
        if self._limit is not None and self._length > self._limit:
            told = f"body: {self._length:,} bytes; at most {self._limit:,}, send less at a time"
            raise Refused("too-large", told, "body", CLOSE)
        if route.body is not None and self._encoding not in ("", "identity"):
            told = f"Content-Encoding: {self._encoding[:40]!r} is not understood; send the body as it is"
            raise Refused("media-type", told, "Content-Encoding")

    async def receive(self) -> Message:
        if self.before_reading is not None:
            check, self.before_reading = self.before_reading, None
            await check()
        if self._whole:  # all that can still come is that the client goes away, and that may take as long as it likes
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            told = f"body: not here after {self._patience:g} s; send it faster, or in several requests"
            raise Refused("too-slow", told, "body", CLOSE) from None
        self._whole = not message.get("more_body", False)
        self._read += len(message.get("body", b""))
        if self._limit is None:
            self._until = asyncio.get_running_loop().time() + self._patience
        elif self._read > self._limit:
            raise Refused("too-large", f"body: more than {self._limit:,} bytes; send less at a time", "body", CLOSE)
        return message

    async def drain(self) -> None:
        """Throw away what still comes, for a moment; the answer is on its way."""
        left = LINGER_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0 and not self._whole:
                    message = await self._receive()
                    self._whole = not message.get("more_body", False)  # also when the client is gone
                    left -= len(message.get("body", b""))


def _number(text: str) -> int:
    """The length; one of more digits than any limit has is as good as any other."""
    return int(text[:15]) if text.isascii() and text.isdigit() else 0
