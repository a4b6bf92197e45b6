"""Where is it kept? The one place that picks a store by its address.

A path is an embedded store; ``postgresql://…`` and ``qdrant://…`` are servers, whose drivers are extras and are
imported here, when an address asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from trivet.stores.contract import KeyTable, Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_POSTGRES = ("postgresql", "postgres")
_QDRANT = ("qdrant", "qdrants", "qdrant+local")


def address(path: str | Path) -> str:
    """The address as it was meant: a ``Path`` made of a URL has lost a slash."""
    text = str(path)
    if isinstance(path, Path) and (found := _SCHEME.match(text)) and not text.startswith("//", found.end() - 1):
        return f"{text[: found.end()]}/{text[found.end() :]}" if scheme_of(text) else text
    return text


def scheme_of(path: str | Path) -> str:
    """``postgresql``, ``qdrant``, ``qdrants`` or ``qdrant+local``; empty for a path. Another scheme is refused."""
    text = str(path)
    if text.startswith("qdrant+local:"):
        return "qdrant+local"
    found = _SCHEME.match(text)
    if found is None:
        return ""
    scheme = found[1].lower()
    if scheme in _POSTGRES:
        return "postgresql"
    if scheme in _QDRANT:
        return scheme
    if isinstance(path, str) and text.startswith("//", found.end() - 1):
        known = "a path, postgresql://…, qdrant://…, qdrants://… or qdrant+local:PATH"
        raise InputError(f"store: {scheme}:// is not an address of a store; give {known}")
    return ""


def is_server(path: str | Path) -> bool:
    return bool(scheme_of(path))


def open_store(path: str | Path) -> Store:
    """The store at an address, made if it is new."""
    scheme = scheme_of(path)
    if scheme == "postgresql":
        _need("psycopg", "postgres")
        from trivet.stores.postgres.store import PostgresStore

        return PostgresStore(address(path))
    if scheme:
        _need("qdrant_client", "qdrant")
        from trivet.stores.qdrant.store import QdrantStore

        return QdrantStore(address(path))
    from trivet.stores.sqlite.store import SqliteStore

    return SqliteStore(str(path))


def restore_store(
    backup: str | Path, path: str | Path, progress: Callable[[int, int], None] | None = None
) -> tuple[int, bool]:
    """Put a backup in the place of the store at a path; its bytes, and whether there was a store."""
    if is_server(backup) or is_server(path):
        raise InputError("restore: only the file of a store; a server has its own backups, and `trivet copy`")
    from trivet.stores.sqlite.restore import restore

    return restore(Path(backup), Path(path), progress)


def names_in(path: str | Path) -> list[str]:
    """The collections at an address, without making or changing anything; none where there is no store."""
    if not is_there(path):
        return []
    store = open_store(path)
    try:
        return store.names()
    finally:
        store.close()


def is_there(path: str | Path) -> bool:
    """Is there a store? One on a server that cannot be reached is an error, not a no."""
    scheme = scheme_of(path)
    if scheme == "postgresql":
        _need("psycopg", "postgres")
        from trivet.stores.postgres.database import is_store

        return is_store(address(path))
    if scheme:
        _need("qdrant_client", "qdrant")
        from trivet.stores.qdrant.place import companion_of

        return is_there(companion_of(address(path)))
    from trivet.stores.sqlite.location import resolved

    file = resolved(path)
    return file.exists() and file.stat().st_size > 0


def open_keys(path: str | Path) -> KeyTable:
    """The API keys of the store at an address."""
    scheme = scheme_of(path)
    if scheme == "postgresql":
        _need("psycopg", "postgres")
        from trivet.stores.postgres.keys import PostgresKeys

        return PostgresKeys(address(path))
    if scheme:
        _need("qdrant_client", "qdrant")
        from trivet.stores.qdrant.place import companion_of

        return open_keys(companion_of(address(path)))
    from trivet.stores.sqlite.keys import SqliteKeys

    return SqliteKeys(Path(path))


def _need(module: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtraError(f"store: this address needs an extra; run `pip install 'trivet[{extra}]'`")
