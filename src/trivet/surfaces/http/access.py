"""Who asks, and may they?

A key comes as ``Authorization: Bearer tvt_…`` or ``X-API-Key: tvt_…``. One is asked for where the server listens to
other machines, where the configuration says so, and where the store has ever had one. Otherwise whoever reaches the
loopback address is the machine's own user and may everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from trivet.keys import Key, Keys
from trivet.surfaces import hosts
from trivet.surfaces.http.problems import Refused

if TYPE_CHECKING:
    from trivet.surfaces.config import Config

#: How a key may be sent, for the description.
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer tvt_…`"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
OPEN = ("/healthz", "/readyz")  # a load balancer has no key, and asks by any name
ANYWHERE = "\0"  # no collection's name: asks for nothing of any one
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="trivet"'}


@dataclass(slots=True)
class Caller:
    """Who sent the request; ``key`` is known once it was ``checked``."""

    token: str | None = None
    key: Key | None = None
    checked: bool = False

    @property
    def name(self) -> str:
        return self.key.name if self.key else "http"


async def caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


Asking = Annotated[Caller, Depends(caller)]


def check(keys: Keys, config: Config, token: str | None, scope: str, collection: str | None) -> Key | None:
    """The key, or None where none is needed; refuses who may not."""
    if token is None:
        if config.require_key or not config.loopback or keys.any():
            raise Refused("key-missing", "send a key as `Authorization: Bearer tvt_…`", headers=CHALLENGE)
        return None
    key = keys.find(token)
    if key is None:
        raise Refused("key-unknown", "the key is not known, or was revoked", headers=CHALLENGE)
    if collection != ANYWHERE and not key.may(scope, collection):
        where = f" in collection {collection!r}" if collection is not None else " on the whole store"
        raise Refused("not-allowed", f"the key {key.name!r} does not allow {scope}{where}")
    return key


def check_unbound(key: Key | None) -> None:
    """Refuse a key that is bound to some of the documents what concerns all of them."""
    if key is not None and key.where is not None:
        raise Refused("not-allowed", f"the key {key.name!r} is bound to some of the documents, and this concerns all")


def refuse_foreign(headers: Sequence[tuple[bytes, bytes]], method: str, config: Config) -> None:
    """Refuse a request by a web page that is not this server's own, whatever else it carries (``hosts``)."""
    if (config.loopback or config.allowed_hosts) and hosts.checked_host(headers, config.allowed_hosts) is None:
        told = "Host: ask by 127.0.0.1, localhost or [::1], or by a name that `allowed_hosts` allows"
        raise Refused("not-allowed", told, "Host")
    if method not in hosts.SAFE_METHODS and hosts.is_foreign(headers, config.cors_origins):
        told = "Origin: a web page of another origin may not write here; `cors_origins` allows it"
        raise Refused("not-allowed", told, "Origin")
