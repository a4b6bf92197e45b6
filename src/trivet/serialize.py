"""JSON-ready data from the value types, the same for every surface.

A dataclass becomes an object with its field names, a time becomes ISO 8601 text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.types import Document, Hit, Link, Results

#: What a hit has besides the fields of its class.
ADDED = ("title", "confidence", "location", "text")

_SCALARS = (str, float, int, bool, type(None))


@cache  # a response has a thousand values of a few types
def _names(kind: type) -> tuple[str, ...]:
    """Return the field names of a dataclass; none for another type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def plain(value: Any) -> Any:
    """Return a value of ``trivet.types`` as JSON-ready data."""
    kind: Any = type(value)
    if kind in _SCALARS:
        return value
    if names := _names(kind):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def results(found: Results, full: bool = False, keys: Collection[str] = ()) -> dict[str, Any]:
    """Return the results of a search with all hits and their explanations; ``full`` and ``keys`` as in ``hit``."""
    rest = {field.name: plain(getattr(found, field.name)) for field in fields(found) if field.name != "hits"}
    return {**rest, "hits": [hit(item, full, keys) for item in found.hits], "ms": total_ms(found)}


def hit(item: Hit, full: bool = False, keys: Collection[str] = ()) -> dict[str, Any]:
    """Return a hit, or only these keys of it. ``text`` is the text of the passage.

    With ``full``, ``document`` and ``passage`` have their texts too: the whole document, and the passage once more.
    """
    whole = {**plain(item), "title": item.document.title, **{name: getattr(item, name) for name in ADDED[1:]}}
    if not full:
        for part in ("document", "passage"):
            del whole[part]["text"]
    return {name: whole[name] for name in keys} if keys else whole


def check_keys(keys: Collection[str]) -> Collection[str]:
    """Return the keys of a hit that a caller asks for; refuse one that a hit does not have."""
    from trivet.types import Hit

    known = (*_names(Hit), *ADDED)
    for name in keys:
        if name not in known:
            raise InputError(f"fields: a hit has no {name!r}; known: {', '.join(known)}")
    return keys


def document(item: Document, links: list[Link] | None = None) -> dict[str, Any]:
    """Return a document, with its links if they are given."""
    found: dict[str, Any] = plain(item)
    return found if links is None else {**found, "links": plain(links)}


def total_ms(found: Results) -> float:
    """Return how long the search took, in milliseconds."""
    return next((stage.ms for stage in found.trace if stage.name == "total"), 0.0)
