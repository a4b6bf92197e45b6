"""Access control by API keys and by the origin of a request.

A key is sent as ``Authorization: Bearer tvt_…`` or ``X-API-Key: tvt_…``. It is required if the server can be reached
from other machines, if the configuration requires it, or if the store has ever had a key. Otherwise every caller on the
loopback address has full access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivet.engine.keys import Key, Keys
from trivet.http import hosts
from trivet.http.problem_details import Refused

if TYPE_CHECKING:
    from trivet.http.config import Config

#: The ways to send a key, for OpenAPI.
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer tvt_…`"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
OPEN = ("/healthz", "/readyz")  # a load balancer has no key and may send any Host
ANYWHERE = "\0"  # not a valid name: no access to a certain collection is needed
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="trivet"'}


@dataclass(slots=True)
class Caller:
    """The sender of a request; ``key`` is known once ``checked`` is true."""

    token: str | None = None
    key: Key | None = None
    checked: bool = False

    @property
    def name(self) -> str:
        return self.key.name if self.key else "http"


def check(keys: Keys, config: Config, token: str | None, scope: str, collection: str | None) -> Key | None:
    """Return the key, or None where none is needed; refuse a caller without access."""
    if token is None:
        if config.require_key or not config.loopback or keys.any():
            raise Refused("key-missing", "send an API key as `Authorization: Bearer tvt_…`", headers=CHALLENGE)
        return None
    key = keys.find(token)
    if key is None:
        raise Refused("key-unknown", "the API key is unknown or was revoked", headers=CHALLENGE)
    if collection != ANYWHERE and not key.may(scope, collection):
        where = f" in collection {collection!r}" if collection is not None else " on the whole store"
        raise Refused("not-allowed", f"the key {key.name!r} does not have the scope {scope!r}{where}")
    return key


def check_unbound(key: Key | None) -> None:
    """Refuse a key that is bound to a filter; the request concerns all documents."""
    if key is not None and key.where is not None:
        raise Refused("not-allowed", f"the key {key.name!r} is bound to a filter, and this concerns all documents")


def refuse_foreign(headers: Sequence[tuple[bytes, bytes]], method: str, config: Config) -> None:
    """Refuse a request of a web page from another site, even with a valid key (see ``hosts``)."""
    if (config.loopback or config.allowed_hosts) and hosts.checked_host(headers, config.allowed_hosts) is None:
        detail = "Host: use 127.0.0.1, localhost or [::1], or add the name to `allowed_hosts`"
        raise Refused("not-allowed", detail, "Host")
    if method not in hosts.SAFE_METHODS and hosts.is_foreign(headers, config.cors_origins):
        detail = "Origin: a web page of another origin may not write; add it to `cors_origins` to allow it"
        raise Refused("not-allowed", detail, "Origin")
