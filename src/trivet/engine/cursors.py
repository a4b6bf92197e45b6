"""Cursors that do not tell the row number they stand for.

A row number says how many documents a collection has had. A caller who is bound to a filter gets it masked: eight
random bytes, then the number under a mask of them, then a tag that only the store can make.
"""

from __future__ import annotations

import base64
import secrets
from hashlib import blake2b

from trivet.errors import InputError

_PART = 8  # bytes of the salt, of the number and of the tag


def cursor(row: int, key: bytes, collection: str) -> str:
    """Return the row number as text that only ``row`` can read, with the same key."""
    salt, number = secrets.token_bytes(_PART), row.to_bytes(_PART, "big")
    body = bytes(one ^ other for one, other in zip(number, _made(b"mask", salt, key, collection), strict=True))
    return base64.urlsafe_b64encode(salt + body + _made(b"tag", salt + number, key, collection)).decode()


def row(text: str, key: bytes, collection: str) -> int:
    """Return the row number that a cursor stands for; refuse what this store did not make."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True) if isinstance(text, str) else b""
    except ValueError:
        raw = b""
    salt, body, tag = raw[:_PART], raw[_PART : 2 * _PART], raw[2 * _PART :]
    if len(raw) == 3 * _PART:
        number = bytes(one ^ other for one, other in zip(body, _made(b"mask", salt, key, collection), strict=True))
        if secrets.compare_digest(tag, _made(b"tag", salt + number, key, collection)):
            return int.from_bytes(number, "big")
    raise InputError(f"after: {text!r} is not the `next` of a page; leave it out to begin at the first")


def _made(use: bytes, given: bytes, key: bytes, collection: str) -> bytes:
    named = blake2b(collection.encode("utf-8", "surrogatepass"), key=key[:64]).digest()
    return blake2b(given, key=named, person=use, digest_size=_PART).digest()
