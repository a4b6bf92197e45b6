"""What does a store's URL say?

``postgresql://user:password@host:port/database?schema=trivet&pool=16`` is libpq's own form with a few options of ours,
which are taken out before libpq sees it. What is left (``sslmode``, ``connect_timeout``, several hosts…) is libpq's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from trivet.errors import InputError
from trivet.stores.postgres.parts import MOST

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_OURS = ("schema", "pool", "patience", "statement_timeout", "index", "spread")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the store is, and how to talk to it."""

    conninfo: str
    shown: str  # without the password
    schema: str = "trivet"
    pool: int = 16  # connections of this process at most
    patience: float = 10.0  # seconds to wait for a free connection, or for a server that restarts
    statement_timeout: float = 30.0  # seconds; a leg that needs longer is left out of the answer
    spread: int = 0  # parts that a collection made here is dealt out to; 0: it is one
    index: str = "vector"  # what the index over the vectors holds: "vector", or "halfvec" for half the memory

    @classmethod
    def parse(cls, url: str) -> Address:
        parts = urlsplit(url)
        if not parts.path.strip("/") and "dbname=" not in parts.query:
            raise InputError(f"store: {hidden(url)!r} names no database; write postgresql://user@host:5432/database")
        pairs = _pairs(parts.query)
        ours = {name: value for name, value in pairs if name in _OURS}
        rest = urlencode([pair for pair in pairs if pair[0] not in _OURS], quote_via=quote)
        conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, rest, ""))
        schema = ours.get("schema", "trivet")
        if not _NAME.fullmatch(schema):
            raise InputError(f"store: schema {schema!r} is not a name of lower-case letters, digits and _, 40 at most")
        index = ours.get("index", "vector")
        if index not in ("vector", "halfvec"):
            raise InputError(f"store: index {index!r} is unknown; known: vector, halfvec")
        return cls(
            conninfo,
            hidden(url),
            schema,
            int(_number("pool", ours.get("pool", "16"), 1, 1_000)),
            _number("patience", ours.get("patience", "10"), 0.1, 3_600),
            _number("statement_timeout", ours.get("statement_timeout", "30"), 0.01, 86_400),
            int(_number("spread", ours.get("spread", "0"), 0, MOST)),
            index,
        )


def hidden(url: str) -> str:
    """The URL without its password."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    kept = [(key, value) for key, value in _pairs(parts.query) if key != "password"]
    return urlunsplit((parts.scheme, f"{name}{at}{host}", parts.path, urlencode(kept, quote_via=quote), ""))


def _pairs(query: str) -> list[tuple[str, str]]:
    """As libpq reads them: a plus is a plus."""
    parts = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"store: {name} {text!r} is not a number from {low:g} to {high:g}")
    return value
