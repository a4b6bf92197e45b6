"""What does an answer look like outside Python?

The nouns as JSON-ready data, the same for every surface: dataclasses become objects under their own field names,
times become ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.types import Document, Hit, Link, Results


_AS_IT_IS = (str, float, int, bool, type(None))


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, none of another type; an answer has a thousand values, so a type is looked at once."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]


def plain(value: Any) -> Any:
    """Any of the nouns as JSON-ready data."""
    kind = type(value)
    if kind in _AS_IT_IS:
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


def results(found: Results) -> dict[str, Any]:
    """Everything a search says: the hits with their accounts, what made them, the time and what was left out."""
    said = {field.name: plain(getattr(found, field.name)) for field in fields(found) if field.name != "hits"}
    return {**said, "hits": [hit(item) for item in found.hits], "ms": total_ms(found)}


def hit(item: Hit) -> dict[str, Any]:
    """``text`` is the passage that answers; ``document`` holds the whole."""
    return {**plain(item), "title": item.document.title, "text": item.text}


def document(item: Document, links: list[Link] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = plain(item)
    return found if links is None else {**found, "links": plain(links)}


def total_ms(found: Results) -> float:
    return next((stage.ms for stage in found.trace if stage.name == "total"), 0.0)
