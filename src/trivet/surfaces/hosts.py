"""Parse the headers Host and Origin, and decide whether a request comes from this machine or from an allowed site.

A web page can reach a server on its visitor's machine in two ways: by a request that a browser sends across origins
(``Origin`` names the page), and by a name of its own that it lets point at 127.0.0.1 (``Host`` names it; DNS
rebinding). Both headers are checked whatever else a request carries: a page may set ``Authorization`` to anything.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")  # they change nothing; what a page may read of them is CORS' matter
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAME = r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?"
_HOST = re.compile(rf"({_NAME})(?::([1-9][0-9]{{0,4}}))?", re.ASCII)
_ORIGIN = re.compile(rf"(https?)://({_NAME})(?::([1-9][0-9]{{0,4}}))?", re.ASCII)


class Host(NamedTuple):
    """A name or address as a header writes it, in lower case and without a final dot; None is the default port."""

    name: str
    port: int | None


class Origin(NamedTuple):
    scheme: str
    name: str
    port: int


def host(text: str) -> Host | None:
    """Return the host that ``text`` names, or None where it is not exactly one."""
    found = _HOST.fullmatch(text.lower())
    port = _port(found[2]) if found else 0
    return None if found is None or port == 0 else Host(found[1].removesuffix("."), port)


def origin(text: str) -> Origin | None:
    """Return the origin that ``text`` names, its port written out; None for ``null`` and whatever else is none."""
    found = _ORIGIN.fullmatch(text.lower())
    port = _port(found[3]) if found else 0
    if found is None or port == 0:
        return None
    return Origin(found[1], found[2].removesuffix("."), port or DEFAULT_PORTS[found[1]])


def _port(digits: str | None) -> int | None:
    """The port, None where there is none, 0 where there cannot be such a one."""
    number = None if digits is None else int(digits)
    return 0 if number is not None and number > 65_535 else number


def is_loopback(asked: Host) -> bool:
    """Is it ``localhost``, an address 127.x.x.x in four decimal parts, or ``[::1]``?"""
    if asked.name in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(asked.name).is_loopback
    except ValueError:
        return False


def is_allowed(asked: Host, allowed: Iterable[str]) -> bool:
    """Is it one of the configured names? A name without a port is allowed with any."""
    entries = [entry for entry in map(host, allowed) if entry is not None]
    return any(entry.name == asked.name and entry.port in (None, asked.port) for entry in entries)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """Return every value of a header: a request may repeat one that must be there once."""
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def checked_host(headers: Sequence[tuple[bytes, bytes]], allowed: Iterable[str] = ()) -> Host | None:
    """Return the host that the request names, if it names one only and that is this machine's or allowed."""
    named = header(headers, b"host")
    found = host(named[0]) if len(named) == 1 else None
    return found if found is not None and (is_loopback(found) or is_allowed(found, allowed)) else None


def is_foreign(headers: Sequence[tuple[bytes, bytes]], allowed: Sequence[str] = ()) -> bool:
    """Does the request name an origin that is neither its own host nor allowed? ``*`` allows every one."""
    named = header(headers, b"origin")
    if not named or (len(named) == 1 and "*" in allowed):
        return False
    found = origin(named[0]) if len(named) == 1 else None
    return found is None or not (found in map(origin, allowed) or _is_same(found, header(headers, b"host")))


def is_local_page(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Does the request name one origin, and is that a page of this machine?"""
    named = header(headers, b"origin")
    found = origin(named[0]) if len(named) == 1 else None
    return found is not None and is_loopback(Host(found.name, found.port))


def _is_same(found: Origin, named: Sequence[str]) -> bool:
    asked = host(named[0]) if len(named) == 1 else None
    return asked is not None and found[1:] == (asked.name, asked.port or DEFAULT_PORTS[found.scheme])
