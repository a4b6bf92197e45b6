"""What does the address of a Qdrant store say?

``qdrant://host:6333?words=…`` is a server (``qdrants://`` with TLS), ``qdrant+local:FOLDER`` the client's local mode.
Qdrant has the vectors; documents, words and everything else are in a companion store, a file or PostgreSQL, which
``words`` names: as in seed 000, where Qdrant answers by meaning and SQLite by words.
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
class Place:
    client: dict[str, Any]  # what makes the client
    words: str  # the companion
    shown: str
    local: bool = False
    prefix: str = "trivet"
    tenant: str | None = None  # a metadata field whose values are kept together on a server
    collection: dict[str, Any] = field(default_factory=dict)  # what every collection is made with

    @classmethod
    def parse(cls, url: str) -> Place:
        if url.startswith("qdrant+local:"):
            folder, _, query = url.removeprefix("qdrant+local:").partition("?")
            folder = folder.removeprefix("//") if folder.startswith("///") else folder
            if not folder:
                raise InputError("store: qdrant+local: names no folder; write qdrant+local:memory")
            options = _options(query)
            words = options.get("words") or str(Path(folder) / "words.db")
            place: dict[str, Any] = {"path": str(Path(folder) / "qdrant")}
            return cls(place, words, f"qdrant+local:{folder}", True, **_common(options))
        parts = urlsplit(url)
        options = _options(parts.query)
        if not parts.hostname:
            raise InputError("store: qdrant:// names no host; write qdrant://localhost:6333?words=memory.db")
        if not options.get("words"):
            mend = "name a file or a PostgreSQL store for them: qdrant://host:6333?words=memory.db"
            raise InputError(f"store: {parts.hostname!r}: Qdrant keeps vectors, not words and documents; {mend}")
        scheme = "https" if parts.scheme == "qdrants" else "http"
        address = f"{scheme}://{parts.hostname}:{parts.port or 6333}{parts.path.rstrip('/')}"
        client: dict[str, Any] = {
            "url": address,
            "check_compatibility": False,
            "timeout": int(_number("timeout", options.get("timeout", "10"))),
        }
        client["prefer_grpc"] = options.get("grpc", "no") in ("yes", "true", "1")
        if options.get("api_key"):
            client["api_key"] = options["api_key"]
        shown = f"{parts.scheme}://{parts.hostname}:{parts.port or 6333}"
        return cls(client, options["words"], shown, **_common(options))


def companion_of(url: str) -> str:
    """Where the words and the documents are."""
    return Place.parse(url).words


def _common(options: dict[str, str]) -> dict[str, Any]:
    collection: dict[str, Any] = {
        name: int(_number(said, options[said])) for said, name in _CLUSTER.items() if said in options
    }
    if options.get("on_disk", "no") in ("yes", "true", "1"):
        collection["on_disk_payload"] = True
    return {"prefix": options.get("prefix", "trivet"), "tenant": options.get("tenant"), "collection": collection}


def _options(query: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in query.split("&") if part]
    options = {unquote(name): unquote(value) for name, _, value in pairs}  # a plus is a plus, also in a path
    if strange := [name for name in options if name not in _KNOWN]:
        raise InputError(f"store: unknown option {strange[0]!r}; known: {', '.join(_KNOWN)}")
    return options


def _number(name: str, text: str) -> float:
    if not text.isdigit() or not int(text):
        raise InputError(f"store: {name} {text!r} is not a whole number from 1 up")
    return int(text)
