"""Validation errors of pydantic as problem details."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trivet.http.problem_details import Problem

_PLACES = ("body", "query", "path", "header")
_UNION_MEMBERS = (
    "one",
    "many",
    "str",
    "int",
    "float",
    "list[any]",
    "dict[str,any]",
)  # pydantic's names for the members of a union
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_MESSAGES = {"missing": "missing", "extra_forbidden": "unknown field"}  # clearer than those of pydantic
SHOWN = 20  # errors in one response


def problem(errors: Sequence[Mapping[str, Any]], media_type: str = "") -> Problem:
    """Return a problem with the wrong fields and what each should be; the values sent are not repeated."""
    if media_type and not _JSON.match(media_type) and any(error["loc"][:1] == ("body",) for error in errors):
        return Problem("media-type", "the body must be JSON; send Content-Type: application/json")
    if any(error["type"] == "json_invalid" for error in errors):
        place = errors[0]["loc"][-1]
        return Problem("malformed", f"the body is not valid JSON (at character {place})")
    found = [
        {"field": _field(error["loc"]), "message": _MESSAGES.get(error["type"], str(error["msg"]))}
        for error in errors[:SHOWN]
    ]
    # all of them: a misspelt field is a missing one and an unknown one
    return Problem("invalid", "; ".join(f"{one['field']}: {one['message']}" for one in found), found)


def _field(loc: Sequence[Any]) -> str:
    """Return the field as the caller knows it: ``documents.0.text``, without ``body`` and our class names."""
    parts = [str(part) for part in loc]
    place, parts = (parts[0], parts[1:]) if parts and parts[0] in _PLACES else ("body", parts)
    shown = [part for part in parts if not part[:1].isupper() and part not in _UNION_MEMBERS]
    return ".".join(shown) or place
