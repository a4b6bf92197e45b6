"""The transports: stdin and stdout, or HTTP.

As with `trivet serve`, HTTP requires a key if other machines can reach the server or if the store has keys.
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

from trivet.engine.keys import Key, Keys, token_of
from trivet.errors import InputError, StoreError
from trivet.http import hosts
from trivet.http.config import is_loopback
from trivet.mcp.server import build

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from trivet.mcp.tools import Memory

PATH = "/mcp"
#: Names of this machine; any other name may be a web page's (DNS rebinding).
LOCAL_HOSTS = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


def log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="trivet mcp: %(levelname)s %(message)s")


def stdio(memory: Memory) -> None:
    """Serve until the client closes stdin or a signal arrives."""
    server = build(memory)
    # The thread that reads stdin cannot be interrupted, so Ctrl-C would wait for it. Every write so far is durable.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def http(memory: Memory, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until a signal arrives; call ``announce`` with the URL once it can be reached."""
    import uvicorn

    with Keys(memory.engine.url) as keys:
        local = is_loopback(host)
        if not local and not keys.any_in_use():
            raise InputError(
                f"host: {host} can be reached from other machines, and the store has no API key; create one with "
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
        # h11 limits the headers; the faster httptools does not, and uvicorn would use it if installed
        config = uvicorn.Config(guarded, http="h11", log_config=None, access_log=False, timeout_graceful_shutdown=5)
        with contextlib.closing(listening):
            announce(f"http://{f'[{host}]' if ':' in host else host}:{bound}{PATH}")
            uvicorn.Server(config).run(sockets=[listening])


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # before ``announce``: from now on a client waits and is not refused
    except (OSError, OverflowError) as error:
        made.close()
        raise StoreError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}") from None
    return made


class Guard:
    """ASGI middleware that checks Host, Origin and key before a message is read, and passes on the key's filter."""

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
        """Refuse a web page of another site, even with a key; pages of this machine may call a server on it."""
        if self._local and hosts.checked_host(headers) is None:
            return 421, "Host: use 127.0.0.1, localhost or [::1]"
        if hosts.is_foreign(headers) and not (self._local and hosts.is_local_page(headers)):
            return 403, "Origin: a web page of another origin is not allowed"
        return None

    def _checked(self, headers: dict[bytes, bytes]) -> Key | tuple[int, str] | None:
        """Return the key, None if none is needed, or the status and reason of a refusal."""
        token = token_of(headers)
        if token is None:
            needed = not self._local or self._keys.any()
            return (401, "send an API key as `Authorization: Bearer tvt_...`") if needed else None
        key = self._keys.find(token)
        if key is None:
            return 401, "the API key is unknown or was revoked"
        if not key.may(self._scope, self._collection):
            return 403, f"the key does not have the scope {self._scope!r} in this collection"
        return key


async def _refuse(send: Callable[[Any], Awaitable[None]], status: int, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b'Bearer realm="trivet"')]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode()})
