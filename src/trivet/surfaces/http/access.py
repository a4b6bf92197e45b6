"""Who asks, and may they?

A key comes as ``Authorization: Bearer tvt_…`` or ``X-API-Key: tvt_…``. One is asked for where the server listens to
other machines, where the configuration says so, and where the store has ever had one. Otherwise whoever reaches the
loopback address is the machine's own user and may everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from trivet.keys import Key, Keys, token_of
from trivet.surfaces.config import is_loopback
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
    found = Caller(token_of(dict(request.scope["headers"])))
    request.state.caller = found
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


def refuse_foreign(headers: Mapping[bytes, bytes], method: str, config: Config) -> None:
    """A web page must not use its visitor's machine: neither by a form it posts here (another ``Origin``) nor by a name
    of its own that it lets point at 127.0.0.1 (another ``Host``). Who has a key has no need of either."""
    if b"authorization" in headers or b"x-api-key" in headers:
        return
    host = headers.get(b"host", b"").decode("latin-1")
    if config.loopback and not is_loopback(_name(host)):
        raise Refused("not-allowed", "without a key, ask by this machine's own name: 127.0.0.1 or localhost")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin or method in ("GET", "HEAD", "OPTIONS"):  # reading is what CORS is for
        return
    allowed = origin in config.cors_origins or "*" in config.cors_origins
    if not allowed and origin.partition("://")[2] != host:
        raise Refused("not-allowed", "a web page of another origin may not write here; `cors_origins` allows it")


def _name(host: str) -> str:
    """Without the port."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
