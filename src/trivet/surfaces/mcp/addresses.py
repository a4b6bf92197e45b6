"""What is a document's address?"""

from __future__ import annotations

from urllib.parse import quote, unquote

DOCUMENT = "trivet://document/"
TEMPLATE = DOCUMENT + "{id}"
COLLECTION = "trivet://collection"


def address(id: str) -> str:
    return DOCUMENT + quote(id, safe="")


def id_of(uri: str) -> str | None:
    """The document an address is of, if it is one's."""
    name = uri.removeprefix(DOCUMENT)
    return unquote(name) if name and name != uri else None
