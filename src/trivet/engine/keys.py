"""API keys: made once, shown once, kept as a hash.

A key is ``tvt_<id>_<secret>``. The secret has 256 random bits, so one SHA-256 is all the stretching it needs; it is
compared in constant time, and an unknown id takes as long as a wrong secret. A revoked key stays in the table: a store
that once asked for a key never becomes an open one by taking the last key away.

A key may be bound to a filter: through it, only the documents that the filter allows can be seen and written. The hash
of such a key is of its filter and its secret. So a key whose filter was lost or changed is unknown, and so is every
bound key to a process of an older trivet, which reads no filters.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trivet.engine.validation import check_id
from trivet.errors import InputError, NotFoundError
from trivet.filters import Filter, check_binding, parse_filter, to_json
from trivet.stores import open_keys
from trivet.stores.contract import KeyRow

SCOPES = ("read", "write", "admin")  # each includes the ones before it
_KEY = re.compile(r"tvt_([0-9a-f]{12})_([0-9A-Za-z_-]{43})")
_NOBODY = hashlib.sha256(b"no such key").digest()
MAX_NAME = 64  # characters
BOUND = "bound:"  # before the scope of a key with a filter, as it is stored: no scope that an older trivet knows


@dataclass(frozen=True, slots=True)
class Key:
    """What is known of a key; the secret is not."""

    id: str
    name: str
    scope: str
    collections: tuple[str, ...]  # none: every collection
    created: datetime
    revoked: datetime | None = None
    where: Filter | None = None  # the documents it is bound to; None: all

    def may(self, scope: str, collection: str | None = None) -> bool:
        """Tell whether the key has this scope, in a collection or (None) in the whole store."""
        if self.scope not in SCOPES or SCOPES.index(scope) > SCOPES.index(self.scope):
            return False
        return not self.collections or (collection is not None and collection in self.collections)

    def sees(self, collection: str) -> bool:
        return not self.collections or collection in self.collections


class Keys:
    """The keys of one store. Safe to use from many threads; ``close`` it."""

    def __init__(self, path: str | Path) -> None:
        self._table = open_keys(path)

    def create(
        self, name: str, scope: str = "read", collections: Iterable[str] = (), where: Any = None
    ) -> tuple[Key, str]:
        """Make a key; return it and its text, which is not kept and cannot be shown again.

        ``where`` binds it to a filter (see ``Engine.within``); a bound key has the scope read or write.
        """
        if scope not in SCOPES:
            raise InputError(f"scope: {scope!r} is unknown; known: {', '.join(SCOPES)}")
        name = name.strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise InputError(f"name: {name!r} is not a name for a key; use 1 to {MAX_NAME} printable characters")
        bound = tuple(dict.fromkeys(check_id(item, "collection") for item in collections))
        within = None if where is None else _filter(where, scope)
        text = None if within is None else to_json(within)
        identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        moment, stored = time.time(), scope if text is None else f"{BOUND}{scope}"
        row = KeyRow(identifier, name, _hash(secret, text), stored, json.dumps(bound), moment, filter=text)
        self._table.add(row)
        return _key(row), f"tvt_{identifier}_{secret}"

    def list(self) -> list[Key]:
        """All of them, the revoked ones too, oldest first."""
        return [_key(row) for row in self._table.rows()]

    def revoke(self, id: str) -> Key:
        """The key with that id or name stops working with the next request."""
        found = [key for key in self.list() if id in (key.id, key.name) and key.revoked is None]
        if not found:
            raise NotFoundError(f"key: there is none in use with the id or name {id!r}; `trivet keys list` shows them")
        if len(found) > 1:
            raise InputError(f"key: {len(found)} keys are named {id!r}; name one by its id")
        self._table.revoke(found[0].id, time.time())
        return found[0]

    def any(self) -> bool:
        """Tell whether there ever was a key: then every caller needs one."""
        return self._table.any()

    def any_in_use(self) -> bool:
        return self._table.any_in_use()

    def find(self, text: str) -> Key | None:
        """Return the key with this text, or None if it is unknown or revoked."""
        parts = _KEY.fullmatch(text)
        identifier, secret = (parts[1], parts[2]) if parts else ("", "")
        row = self._table.find(identifier)
        same = hmac.compare_digest(_hash(secret, row.filter if row else None), row.hash if row else _NOBODY)
        return None if row is None or not same or row.revoked is not None else _key(row)

    def close(self) -> None:
        self._table.close()

    def __enter__(self) -> Keys:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def token_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The key that a request's headers hold, right or wrong; None where there is none."""
    said = headers.get(b"authorization", b"").decode("latin-1")
    if said[:7].lower() == "bearer ":
        return said[7:].strip()
    given = headers.get(b"x-api-key")
    return given.decode("latin-1").strip() if given is not None else None


def _filter(where: Any, scope: str) -> Filter:
    """Return the filter that a key is bound to, if it is one and the scope can be bound."""
    if scope == "admin":
        raise InputError("scope: a key with a filter cannot be admin, which concerns all documents; use read or write")
    found = parse_filter(where)
    if found is None:
        raise InputError("where: the filter is empty; name the fields this key is bound to, such as tenant=alice")
    return check_binding(found)


def _key(row: KeyRow) -> Key:
    bound, revoked = tuple(json.loads(row.collections)), None if row.revoked is None else _time(row.revoked)
    where = None if row.filter is None else parse_filter(json.loads(row.filter))
    scope = row.scope if where is None else row.scope.removeprefix(BOUND)
    return Key(row.id, row.name, scope, bound, _time(row.created), revoked, where)


def _hash(secret: str, filter: str | None = None) -> bytes:
    said = secret if filter is None else f"{BOUND}{filter}\0{secret}"
    return hashlib.sha256(said.encode()).digest()


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
