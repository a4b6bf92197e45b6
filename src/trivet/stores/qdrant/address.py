"""The address of a Qdrant store.

``qdrant://host:6333?words=…`` is a server (``qdrants://`` with TLS), ``qdrant+local:FOLDER`` the local mode of the
client. Qdrant has the vectors; everything else is in a record store, a file or PostgreSQL, that ``words`` names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trivet.errors import InputError

_CLUSTER = {"shards": "shard_number", "replicas": "replication_factor", "consistency": "write_consistency_factor"}
_KNOWN = ("words", "prefix", "api_key", "timeout", "grpc", "tenant", "on_disk", *_CLUSTER)


@dataclass(frozen=True, slots=True)
class Address:
    """Where Qdrant and the record store are, and how to connect to them."""

    client: dict[str, Any]  # arguments of the client
    records: str  # the address of the record store
    shown: str  # without the API key
    local: bool = False
    prefix: str = "trivet"
    tenant: str | None = None  # a metadata field whose values are kept together on a server
    on_disk: bool = False  # whether the server keeps vectors and payloads on disk
    collection: dict[str, Any] = field(default_factory=dict)  # arguments of every new Qdrant collection

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read a URL; ``InputError`` names what is wrong with it."""
        if url.startswith("qdrant+local:"):
            folder, _, query = url.removeprefix("qdrant+local:").partition("?")
            folder = folder.removeprefix("//") if folder.startswith("///") else folder
            if not folder:
                raise InputError("store: qdrant+local: names no folder; write qdrant+local:memory")
            options = _options(query)
            records = options.get("words") or str(Path(folder) / "words.db")
            client: dict[str, Any] = {"path": str(Path(folder) / "qdrant")}
            return cls(client, records, f"qdrant+local:{folder}", True, **_shared(options))
        parts = urlsplit(url)
        options = _options(parts.query)
        if not parts.hostname:
            raise InputError("store: qdrant:// names no host; write qdrant://localhost:6333?words=memory.db")
        if not options.get("words"):
            raise InputError(
                f"store: {parts.hostname!r}: Qdrant keeps vectors, not words and documents; "
                "name a file or a PostgreSQL store for them: qdrant://host:6333?words=memory.db"
            )
        scheme = "https" if parts.scheme == "qdrants" else "http"
        address = f"{scheme}://{parts.hostname}:{parts.port or 6333}{parts.path.rstrip('/')}"
        client = {
            "url": address,
            "check_compatibility": False,
            "timeout": _number("timeout", options.get("timeout", "10")),
            "prefer_grpc": _is_yes(options.get("grpc", "no")),
        }
        if options.get("api_key"):
            client["api_key"] = options["api_key"]
        shown = f"{parts.scheme}://{parts.hostname}:{parts.port or 6333}"
        return cls(client, options["words"], shown, **_shared(options))


def _shared(options: dict[str, str]) -> dict[str, Any]:
    collection: dict[str, Any] = {
        name: _number(option, options[option]) for option, name in _CLUSTER.items() if option in options
    }
    on_disk = _is_yes(options.get("on_disk", "no"))
    if on_disk:
        collection["on_disk_payload"] = True
    prefix, tenant = options.get("prefix", "trivet"), options.get("tenant")
    return {"prefix": prefix, "tenant": tenant, "on_disk": on_disk, "collection": collection}


def _options(query: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in query.split("&") if part]
    options = {unquote(name): unquote(value) for name, _, value in pairs}  # a plus is a plus, also in a path
    if unknown := [name for name in options if name not in _KNOWN]:
        raise InputError(f"store: unknown option {unknown[0]!r}; known: {', '.join(_KNOWN)}")
    return options


def _is_yes(text: str) -> bool:
    return text in ("yes", "true", "1")


def _number(name: str, text: str) -> int:
    if not text.isdigit() or not int(text):
        raise InputError(f"store: {name} {text!r} is not a whole number from 1 up")
    return int(text)
