"""Checks of the headers Host and Origin: whether a request comes from this machine or from an allowed site.

A web page can reach a server on its visitor's machine in two ways: with a cross-origin request (``Origin`` names the
page), and with a name of its own that resolves to 127.0.0.1 (``Host`` has that name; DNS rebinding). Both headers are
checked even if a request has a key, because a page can set ``Authorization``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")  # they change nothing; CORS decides whether a page may read the response
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAME = r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?"
_HOST = re.compile(rf"({_NAME})(?::([1-9][0-9]{{0,4}}))?", re.ASCII)
_ORIGIN = re.compile(rf"(https?)://({_NAME})(?::([1-9][0-9]{{0,4}}))?", re.ASCII)


class Host(NamedTuple):
    """A host name in lower case without a final dot, and its port; None is the default port."""

    name: str
    port: int | None


class Origin(NamedTuple):
    scheme: str
    name: str
    port: int


def host(text: str) -> Host | None:
    """Return the host in ``text``, or None if it is not exactly one."""
    found = _HOST.fullmatch(text.lower())
    port = _port(found[2]) if found else 0
    return None if found is None or port == 0 else Host(found[1].removesuffix("."), port)


def origin(text: str) -> Origin | None:
    """Return the origin in ``text`` with its port; None for ``null`` and anything else."""
    found = _ORIGIN.fullmatch(text.lower())
    port = _port(found[3]) if found else 0
    if found is None or port == 0:
        return None
    return Origin(found[1], found[2].removesuffix("."), port or DEFAULT_PORTS[found[1]])


def _port(digits: str | None) -> int | None:
    """Return the port, None without one, 0 for an impossible one."""
    number = None if digits is None else int(digits)
    return 0 if number is not None and number > 65_535 else number


def is_loopback(requested: Host) -> bool:
    """Return whether the name is ``localhost``, ``127.x.x.x`` in four decimal parts, or ``[::1]``."""
    if requested.name in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(requested.name).is_loopback
    except ValueError:
        return False


def is_allowed(requested: Host, allowed: Iterable[str]) -> bool:
    """Return whether the name is one of ``allowed``; an entry without a port allows every port."""
    entries = [entry for entry in map(host, allowed) if entry is not None]
    return any(entry.name == requested.name and entry.port in (None, requested.port) for entry in entries)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """Return all values of a header; a request may repeat one that must appear once."""
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def checked_host(headers: Sequence[tuple[bytes, bytes]], allowed: Iterable[str] = ()) -> Host | None:
    """Return the host of the request, if there is exactly one and it is this machine or allowed."""
    named = header(headers, b"host")
    found = host(named[0]) if len(named) == 1 else None
    return found if found is not None and (is_loopback(found) or is_allowed(found, allowed)) else None


def is_foreign(headers: Sequence[tuple[bytes, bytes]], allowed: Sequence[str] = ()) -> bool:
    """Return whether the request has an origin that is neither its own host nor allowed; ``*`` allows all."""
    named = header(headers, b"origin")
    if not named or (len(named) == 1 and "*" in allowed):
        return False
    found = origin(named[0]) if len(named) == 1 else None
    return found is None or not (found in map(origin, allowed) or _is_same(found, header(headers, b"host")))


def is_local_page(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether the request has exactly one origin and that is on this machine."""
    named = header(headers, b"origin")
    found = origin(named[0]) if len(named) == 1 else None
    return found is not None and is_loopback(Host(found.name, found.port))


def _is_same(found: Origin, named: Sequence[str]) -> bool:
    requested = host(named[0]) if len(named) == 1 else None
    return requested is not None and found[1:] == (requested.name, requested.port or DEFAULT_PORTS[found.scheme])
