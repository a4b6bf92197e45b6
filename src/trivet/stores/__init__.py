"""Stores by address: a path is a SQLite store, and the scheme of a URL names another one in the registry ``STORES``.

A package adds a scheme with an entry point of the group ``trivet.stores`` (docs/how-to/add-a-store.md). The drivers of
servers are extras; they are imported when an address needs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import InputError, MissingExtraError
from trivet.plugins import Registry

if TYPE_CHECKING:
    from trivet.stores.contract import KeyTable, Store


@dataclass(frozen=True, slots=True)
class StoreType:
    """What is registered under a scheme: functions that take the whole address."""

    open: Callable[[str], Store]  # creates the store where it is new
    exists: Callable[[str], bool]  # creates nothing; ``StoreError`` where a server cannot be reached
    keys: Callable[[str], KeyTable]


_POSTGRES = "trivet.stores.postgres.store:STORE"
_QDRANT = "trivet.stores.qdrant.store:STORE"
STORES: Registry[StoreType] = Registry(
    "store",
    "trivet.stores",
    {
        "postgresql": _POSTGRES,
        "postgres": _POSTGRES,
        "qdrant": _QDRANT,
        "qdrants": _QDRANT,
        "qdrant+local": _QDRANT,
    },
)
#: The package that a built-in scheme imports, and the extra that installs it.
_EXTRAS = {
    **dict.fromkeys(("postgresql", "postgres"), ("psycopg", "postgres")),
    **dict.fromkeys(("qdrant", "qdrants", "qdrant+local"), ("qdrant_client", "qdrant")),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_SECRET = re.compile(r":[^/?#@]*(?=@)|(?<=[?&])(password|api_key)=[^&]*&?")
_LOCAL = "qdrant+local"  # the one scheme that a path follows without slashes


def address(path: str | Path) -> str:
    """Return the address as a text; a ``Path`` made of a URL has lost a slash."""
    text = str(path)
    if text.startswith(f"{_LOCAL}:"):  # a folder follows, which has lost nothing
        return text
    if isinstance(path, Path) and (found := _SCHEME.match(text)) and not text.startswith("//", found.end() - 1):
        return f"{text[: found.end()]}/{text[found.end() :]}" if scheme_of(text) else text
    return text


def scheme_of(path: str | Path) -> str:
    """Return the registered scheme of an address; empty for a path. ``InputError`` for a URL of an unknown scheme."""
    text = str(path)
    if text.startswith(f"{_LOCAL}:"):
        return _LOCAL
    found = _SCHEME.match(text)
    if found is None:
        return ""
    scheme = found[1].lower()
    if scheme in STORES:
        return scheme
    if isinstance(path, str) and text.startswith("//", found.end() - 1):
        known = ", ".join(f"{name}:PATH" if name == _LOCAL else f"{name}://…" for name in STORES)
        raise InputError(f"store: {scheme}:// is not an address of a store; give a path, {known}")
    return ""


def shown(path: str | Path) -> str:
    """Return the address as a message may show it: a URL without its password and API key."""
    text = address(path)
    return _SECRET.sub("", text) if is_server(path) else text


def is_server(path: str | Path) -> bool:
    """Tell whether an address is a URL rather than a path."""
    return bool(scheme_of(path))


def _type_of(path: str | Path) -> StoreType:
    scheme = scheme_of(path)
    if not scheme:
        return _sqlite()
    module, extra = _EXTRAS.get(scheme, ("", ""))
    if module and find_spec(module) is None:
        raise MissingExtraError(f"store: {scheme}: needs the extra {extra!r}; run `pip install 'trivet[{extra}]'`")
    return STORES[scheme]


def _sqlite() -> StoreType:
    from trivet.stores.sqlite.keys import SqliteKeys
    from trivet.stores.sqlite.location import resolved
    from trivet.stores.sqlite.store import SqliteStore

    def exists(path: str) -> bool:
        file = resolved(path)
        return file.exists() and file.stat().st_size > 0

    return StoreType(SqliteStore, exists, lambda path: SqliteKeys(Path(path)))


def open_store(path: str | Path) -> Store:
    """Open the store at an address; create it if it is new."""
    return _type_of(path).open(address(path))


def is_there(path: str | Path) -> bool:
    """Tell whether there is a store at an address; ``StoreError`` where its server cannot be reached."""
    return _type_of(path).exists(address(path))


def open_keys(path: str | Path) -> KeyTable:
    """Open the API keys of the store at an address."""
    return _type_of(path).keys(address(path))


def names_in(path: str | Path) -> list[str]:
    """Return the collections at an address, without creating anything; none where there is no store."""
    if not is_there(path):
        return []
    store = open_store(path)
    try:
        return store.names()
    finally:
        store.close()


def restore_store(
    backup: str | Path, path: str | Path, progress: Callable[[int, int], None] | None = None
) -> tuple[int, bool]:
    """Replace the store at a path by a backup; return its bytes, and whether there was a store."""
    if is_server(backup) or is_server(path):
        raise InputError("restore: only the file of a store; a server has its own backups, and `trivet copy`")
    from trivet.stores.sqlite.restore import restore

    return restore(Path(backup), Path(path), progress)
