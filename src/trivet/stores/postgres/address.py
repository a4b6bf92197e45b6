"""The address of a PostgreSQL store.

``postgresql://user:password@host:port/database?schema=trivet&pool=16`` is the form of libpq with a few options of own.
The others (``sslmode``, ``connect_timeout``, several hosts…) are passed on to libpq.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlencode, urlsplit

from trivet.errors import InputError
from trivet.stores.postgres.tables import MAX_PARTS

_MEMORY = re.compile(r"[0-9]+(kB|MB|GB|TB)")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_OPTIONS = (
    "schema", "pool", "patience", "statement_timeout", "index", "distribute", "shards",
    "maintenance_work_mem", "pooler",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """Where the store is, and how to connect to it."""

    conninfo: str
    shown: str  # without the password
    schema: str = "trivet"
    pool: int = 16  # connections of this process at most
    patience: float = 10.0  # seconds to wait for a free connection, or for a server that restarts
    statement_timeout: float = 30.0  # seconds; a leg that takes longer is skipped
    distribute: str = "collections"  # how a collection that is created here is divided; or by its "documents"
    shards: int | None = None  # of the tables by document, which are made with the store; None: a few (schema.py)
    index: str = "vector"  # type in the HNSW index: "vector", or "halfvec" for half the memory
    maintenance_work_mem: str | None = None  # to build an index; None: as the server has it
    pooler: bool = False  # whether there is a connection pooler that cannot be recognised

    def qualified(self, name: str) -> str:
        """Return the name of a table or index with the schema: without it, one in ``public`` may be meant."""
        return f'"{self.schema}".{name}'

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read a URL; ``InputError`` names what is wrong with it."""
        parts = urlsplit(url)
        if not parts.path.strip("/") and "dbname=" not in parts.query:
            raise InputError(f"store: {hidden(url)!r} names no database; write postgresql://user@host:5432/database")
        pairs = _pairs(parts.query)
        own = {name: value for name, value in pairs if name in _OPTIONS}
        rest = urlencode([pair for pair in pairs if pair[0] not in _OPTIONS], quote_via=quote)
        # not urlunsplit, which drops the slashes where the host is among the options, as that of a socket is
        conninfo = f"postgresql://{parts.netloc}{parts.path}{'?' if rest else ''}{rest}"
        schema = own.get("schema", "trivet")
        if not _NAME.fullmatch(schema):
            raise InputError(f"store: schema {schema!r} is not a name of lower-case letters, digits and _, 40 at most")
        index = own.get("index", "vector")
        if index not in ("vector", "halfvec"):
            raise InputError(f"store: index {index!r} is unknown; known: vector, halfvec")
        distribute = own.get("distribute", "collections")
        if distribute not in ("collections", "documents"):
            raise InputError(f"store: distribute {distribute!r} is unknown; known: collections, documents")
        if any(name == "spread" for name, _ in pairs):
            raise InputError("store: spread is no option any more; distribute=documents takes its place")
        return cls(
            conninfo,
            hidden(url),
            schema,
            int(_number("pool", own.get("pool", "16"), 1, 1_000)),
            _number("patience", own.get("patience", "10"), 0.1, 3_600),
            _number("statement_timeout", own.get("statement_timeout", "30"), 0.01, 86_400),
            distribute,
            int(_number("shards", own["shards"], 1, MAX_PARTS)) if "shards" in own else None,
            index,
            _memory(own.get("maintenance_work_mem")),
            _flag("pooler", own.get("pooler", "no")),
        )


def hidden(url: str) -> str:
    """Return the URL without its password."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    kept = [(key, value) for key, value in _pairs(parts.query) if key != "password"]
    query = urlencode(kept, quote_via=quote)
    return f"{parts.scheme}://{name}{at}{host}{parts.path}{'?' if query else ''}{query}"


def _pairs(query: str) -> list[tuple[str, str]]:
    """Split a query string as libpq does: a plus is a plus."""
    parts = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _memory(text: str | None) -> str | None:
    if text is not None and not _MEMORY.fullmatch(text):
        raise InputError(f"store: maintenance_work_mem {text!r} is not a size such as 512MB or 8GB")
    return text


def _flag(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise InputError(f"store: {name} {text!r} is neither yes nor no")
    return text == "yes"


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"store: {name} {text!r} is not a number from {low:g} to {high:g}")
    return value
