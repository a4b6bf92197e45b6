"""The web page and its assets.

The files of the package are read and compressed once. The URL of an asset contains a digest of all assets, so browsers
may cache it for ever; the page itself is checked each time and costs a 304 if unchanged. It needs no key, because it
contains no data.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.exceptions import HTTPException
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

PAGE = "index.html"
ASSETS = "{{assets}}"  # placeholder in the page for the URL of the assets
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}
COMPRESSED = ("html", "css", "js", "svg", "txt")  # a font is compressed already
#: Scripts, styles and data from this origin only, nothing inline; trusted types keep text from becoming markup.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
ALWAYS = {"Referrer-Policy": "no-referrer", "Vary": "Accept-Encoding"}
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    compressed: bytes | None
    kind: str
    tag: str


@cache
def assets() -> tuple[str, dict[str, Asset]]:
    """Return the digest of all assets, and the assets by name."""
    found = {
        item.name: item.read_bytes()
        for item in files("trivet").joinpath("web").iterdir()
        if item.is_file() and item.name.rpartition(".")[2] in KINDS
    }
    digest = _digest(b"".join(name.encode() + body for name, body in sorted(found.items())))
    found[PAGE] = found[PAGE].replace(ASSETS.encode(), f"/assets/{digest}".encode())
    return digest, {name: _asset(name, body) for name, body in found.items()}


def _asset(name: str, body: bytes) -> Asset:
    ending = name.rpartition(".")[2]
    compressed = gzip.compress(body, 9, mtime=0) if ending in COMPRESSED else None
    return Asset(body, compressed, KINDS[ending], f'"{_digest(body)}"')


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


Encodings = Annotated[str, Header(alias="accept-encoding")]
Known = Annotated[str, Header(alias="if-none-match")]


@router.get("/")
async def page(encodings: Encodings = "", known: Known = "") -> Response:
    return _respond(assets()[1][PAGE], encodings, known, "no-cache")


@router.get("/assets/{digest}/{name}")
async def asset(digest: str, name: str, encodings: Encodings = "", known: Known = "") -> Response:
    current, found = assets()
    if digest != current or name not in found or name == PAGE:
        raise HTTPException(404)
    return _respond(found[name], encodings, known, FOR_EVER)


def _respond(found: Asset, encodings: str, known: str, keep: str) -> Response:
    headers = {**ALWAYS, "ETag": found.tag, "Cache-Control": keep, "Content-Security-Policy": POLICY}
    if found.tag in known:
        return Response(status_code=304, headers=headers)
    if found.compressed is not None and "gzip" in encodings:
        return Response(found.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.body, headers=headers, media_type=found.kind)
