"""The URIs of documents and of the collection."""

from __future__ import annotations

from urllib.parse import quote, unquote

DOCUMENT = "trivet://document/"
TEMPLATE = DOCUMENT + "{id}"
COLLECTION = "trivet://collection"


def uri_of(id: str) -> str:
    return DOCUMENT + quote(id, safe="")


def id_of(uri: str) -> str | None:
    """Return the id of the document that ``uri`` names, or None."""
    name = uri.removeprefix(DOCUMENT)
    return unquote(name) if name and name != uri else None
