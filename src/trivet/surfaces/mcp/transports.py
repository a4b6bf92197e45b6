"""How do messages reach the server?

Over stdin and stdout, where stdout carries the protocol and nothing else, or over HTTP on this machine. Whoever can be
reached from other machines asks for a key, as `trivet serve` does; so does a store that has keys.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from trivet.errors import InputError, StoreError
from trivet.keys import Key, Keys, token_of
from trivet.surfaces import hosts
from trivet.surfaces.config import is_loopback
from trivet.surfaces.mcp.server import build

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from trivet.surfaces.mcp.tools import Memory

PATH = "/mcp"
#: A page in a browser must not reach a server on this machine under a name of its own (DNS rebinding).
LOCAL_HOSTS = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


def log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="trivet mcp: %(levelname)s %(message)s")


def stdio(memory: Memory) -> None:
    """Until the client closes our stdin, or a signal ends it."""
    server = build(memory)
    # The thread that waits for stdin cannot be interrupted: Ctrl-C would wait for it. What was answered is durable.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def http(memory: Memory, host: str, port: int, told: Callable[[str], None]) -> None:
    """Until a signal ends it; ``told`` hears the address, once it can be reached."""
    import uvicorn

    with Keys(memory.engine.url) as keys:
        local = is_loopback(host)
        if not local and not keys.any_in_use():
            raise InputError(
                f"host: {host} can be reached from other machines, and the store has no key; make one with "
                "`trivet keys create NAME --scope write`, or listen on 127.0.0.1"
            )
        listening = _socket(host, port)
        bound = listening.getsockname()[1]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=local,
            allowed_hosts=LOCAL_HOSTS,
            allowed_origins=[f"http://{name}" for name in LOCAL_HOSTS],
        )
        app = build(memory, keyed=True).streamable_http_app(
            streamable_http_path=PATH, transport_security=security, host=host
        )
        guarded = Guard(app, keys, memory, local)
        # h11 limits the headers; what is faster (httptools) does not, and would be taken where it is installed
        config = uvicorn.Config(guarded, http="h11", log_config=None, access_log=False, timeout_graceful_shutdown=5)
        with contextlib.closing(listening):
            told(f"http://{f'[{host}]' if ':' in host else host}:{bound}{PATH}")
            uvicorn.Server(config).run(sockets=[listening])


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(
            128
        )  # from here on a client waits in line; before, it would be refused after it was told the address
    except (OSError, OverflowError) as error:
        made.close()
        raise StoreError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}") from None
    return made


class Guard:
    """Checks where a request comes from, and asks for a key wherever one is needed, before a message is read; hands the
    filter of the key on with the request."""

    def __init__(self, app: ASGIApp, keys: Keys, memory: Memory, local: bool) -> None:
        self._app, self._keys, self._local = app, keys, local
        self._collection = memory.engine.name
        self._scope = "read" if memory.read_only else "write"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = self._foreign(scope["headers"])
            found = None if refused else await anyio.to_thread.run_sync(self._checked, dict(scope["headers"]))
            refused = refused or (found if isinstance(found, tuple) else None)
            if refused is not None:
                await _refuse(send, *refused)
                return
            scope.setdefault("state", {})["where"] = found.where if isinstance(found, Key) else None
        await self._app(scope, receive, send)

    def _foreign(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Refuse a web page from elsewhere, with or without a key; pages of this machine may ask a server on it."""
        if self._local and hosts.checked_host(headers) is None:
            return 421, "Host: ask by 127.0.0.1, localhost or [::1]"
        if hosts.is_foreign(headers) and not (self._local and hosts.is_local_page(headers)):
            return 403, "Origin: a web page of another origin may not ask here"
        return None

    def _checked(self, headers: dict[bytes, bytes]) -> Key | tuple[int, str] | None:
        """The key, None where none is needed, or why the request is refused."""
        token = token_of(headers)
        if token is None:
            needed = not self._local or self._keys.any()
            return (401, "send a key as `Authorization: Bearer tvt_...`") if needed else None
        key = self._keys.find(token)
        if key is None:
            return 401, "the key is not known, or was revoked"
        if not key.may(self._scope, self._collection):
            return 403, f"the key does not allow {self._scope} in this collection"
        return key


async def _refuse(send: Callable[[Any], Awaitable[None]], status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b'Bearer realm="trivet"')]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode()})
