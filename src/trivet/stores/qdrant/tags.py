"""Filters for Qdrant.

Every point has the metadata of its document as tags, ``place=s:harbour``, in one indexed field. Qdrant applies what
tags can express (equal, one of, exists; and, or, not of those), which excludes ranges and parts of texts. The record
store decides in the end: a filter given to Qdrant may allow too much, but never too little.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from qdrant_client import models

from trivet.filters import (
    And,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Prefix,
    Range,
    Value,
    flatten,
    is_text,
    split_field,
)
from trivet.types import Document

FIELD = "tags"
BLANK = "@blank"  # tag of a point that no query may find: its vector is all zeros, or it is the marker
LONGEST = 200  # characters of a value; a longer one is replaced by its hash


def tags_of(document: Document) -> list[str]:
    """Return the tags of a document."""
    found = [tag(f"@{name}", getattr(document, name)) for name in ("id", "kind", "title")]
    for key, value in flatten(document.meta):
        found += [key_tag(key), tag(key, value)]
    return list(dict.fromkeys(found))


def key_tag(key: str) -> str:
    """Return the tag that says that a key exists."""
    return f"{key}?"


def tag(key: str, value: Value) -> str:
    """Return the tag of a value; equal numbers have equal tags."""
    if not is_text(value):
        number = float(value)
        return f"{key}=n:{int(value) if number == int(value) else number!r}"
    text = str(value)
    return f"{key}=s:{text if len(text) <= LONGEST else blake2b(text.encode(), digest_size=16).hexdigest()}"


def compile_filter(where: Filter) -> tuple[models.Filter | None, bool]:
    """Return what Qdrant can apply, None for nothing, and whether that is the whole filter."""
    match where:
        case And(parts):
            compiled = [compile_filter(part) for part in parts]
            return _all(found for found, _ in compiled if found is not None), all(exact for _, exact in compiled)
        case Or(parts):
            compiled = [compile_filter(part) for part in parts]
            exact = all(exact for _, exact in compiled)
            if any(found is None for found, _ in compiled):
                return None, exact
            return models.Filter(should=[found for found, _ in compiled if found is not None]), exact
        case Not(part):
            found, exact = compile_filter(part)
            return (models.Filter(must_not=[found]), True) if found is not None and exact else (None, False)
        case Exists(field):
            built_in, name = split_field(field)
            return (None, False) if built_in else (_tagged([key_tag(name)]), True)
        case Eq(field, value):
            return _any_of(field, (value,))
        case In(field, values):
            return _any_of(field, values)
        case Range() | Prefix() | Contains():
            return None, False


def _any_of(field: str, values: tuple[Value, ...]) -> tuple[models.Filter | None, bool]:
    built_in, name = split_field(field)
    if not built_in:
        return _tagged([tag(name, value) for value in values]), True
    if name not in ("id", "kind", "title"):
        return None, False
    return _tagged([tag(f"@{name}", value) for value in values if is_text(value)]), True


def _tagged(wanted: list[str]) -> models.Filter:
    return models.Filter(must=[models.FieldCondition(key=FIELD, match=models.MatchAny(any=wanted))])


def _all(parts: Iterable[models.Filter]) -> models.Filter | None:
    found: list[Any] = list(parts)
    return models.Filter(must=found) if found else None


def only(did: int) -> models.Filter:
    """Return the filter for one document."""
    return models.Filter(must=[models.FieldCondition(key="did", match=models.MatchValue(value=did))])


def without_blank(where: models.Filter | None) -> models.Filter:
    """Return the filter without points that no query may find."""
    blank = models.FieldCondition(key=FIELD, match=models.MatchValue(value=BLANK))
    return models.Filter(must=[where] if where is not None else None, must_not=[blank])
