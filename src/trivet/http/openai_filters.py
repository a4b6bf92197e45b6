"""The filters of OpenAI's vector stores as filters of trivet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trivet.errors import InputError
from trivet.filters import And, Filter, Not, Or, parse_filter
from trivet.http.routes.parameters import checked_filter

COMPOUND: dict[str, Callable[[tuple[Filter, ...]], Filter]] = {"and": And, "or": Or}
COMPARISONS = ("eq", "gt", "gte", "lt", "lte", "in")
NEGATED = {"ne": "eq", "nin": "in"}


def translated(given: Any, limit: int, depth: int = 0) -> Filter:
    """Return the filter; refuse one with more than ``limit`` levels."""
    if depth > limit:
        raise InputError(f"filters: nested more than {limit} levels deep")
    match given:
        case {"type": "and" | "or" as kind, "filters": [_, *_] as parts, **rest} if not rest:
            return COMPOUND[kind](tuple(translated(part, limit, depth + 1) for part in parts))
        case {"type": str(kind), "key": str(key), "value": value, **rest} if not rest and not key.startswith("$"):
            return _comparison(kind, key, value)
    raise InputError(
        "filters: expected {type, key, value}, or {type: and|or, filters: […]} with at least one filter in the list"
    )


def _comparison(kind: str, key: str, value: Any) -> Filter:
    operator = NEGATED.get(kind, kind)
    if operator not in COMPARISONS:
        raise InputError(f"filters: the type {kind!r} is unknown; known: {', '.join((*COMPARISONS, *NEGATED))}")
    found = parse_filter({key: {operator: checked_filter(value, 0)}})
    if found is None:
        raise InputError(f"filters: the comparison of {key!r} is empty")
    return Not(found) if kind in NEGATED else found
