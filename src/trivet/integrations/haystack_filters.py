"""The filters of Haystack in the filter language of trivet.

Dates are compared as the text that they are stored as, so those of one field need one format. A condition on a list is
met by any of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from trivet.errors import InputError
from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, parse_filter
from trivet.integrations.engine import EVERY_DOCUMENT, missing_extra

try:
    from haystack.errors import FilterError
except ImportError as error:
    raise missing_extra("haystack", error) from error

_NONE = Not(EVERY_DOCUMENT)
_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_LOGIC: dict[str, Callable[[tuple[Filter, ...]], Filter]] = {
    "AND": And,
    "OR": Or,
    "NOT": lambda parts: Not(And(parts)),
}
_UNFILTERED = ("content", "blob", "score", "embedding", "sparse_embedding")


def translated(filters: Mapping[str, Any] | None) -> Filter | None:
    """Return the filter; None if there is none. A malformed one is a ``FilterError``, as in every Haystack store."""
    if not filters:
        return None
    if not isinstance(filters, Mapping):
        raise FilterError(f"filters: {filters!r} is not a dictionary with 'field' or 'conditions'")
    try:
        return parse_filter(_filter(filters))
    except InputError as error:
        raise FilterError(str(error)) from error


def _filter(item: Any) -> Filter:
    if not isinstance(item, Mapping):
        raise FilterError(f"filters: {item!r} is not a dictionary with 'field' or 'conditions'")
    if "field" in item:
        return _comparison(item)
    operator = _needed(item, "operator")
    if operator not in _LOGIC:
        raise FilterError(f"filters: unknown operator {operator!r}; known: {', '.join(_LOGIC)}")
    return _LOGIC[operator](tuple(_filter(part) for part in _needed(item, "conditions")))


def _needed(item: Mapping[str, Any], key: str) -> Any:
    if key not in item:
        raise FilterError(f"filters: {dict(item)!r} has no {key!r}")
    return item[key]


def _comparison(item: Mapping[str, Any]) -> Filter:
    field, operator, value = _field(item["field"]), _needed(item, "operator"), _needed(item, "value")
    if operator in _BOUNDS:
        return _NONE if value is None else Range(field, **{_BOUNDS[operator]: _bound(field, operator, value)})
    if operator not in _EQUALITY:
        known = ", ".join((*_BOUNDS, *_EQUALITY))
        raise FilterError(f"filters: unknown operator {operator!r} on {field!r}; known: {known}")
    return _EQUALITY[operator](field, value)


def _field(name: str) -> str:
    """Return the name in trivet; one without ``meta.`` is metadata too, except the id."""
    if name in _UNFILTERED:
        raise FilterError(f"filters: {name!r} cannot be filtered; use the id or a field of the metadata")
    return name if name == "id" or name.startswith("meta.") else f"meta.{name}"


def _bound(field: str, operator: str, value: Any) -> Any:
    """Return a number or a date; Haystack compares no other text."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise FilterError(
                f"filters: {operator} on {field!r} takes a number or an ISO date, not {value!r}"
            ) from None
    return value


def _equal(field: str, value: Any) -> Filter:
    return Not(Exists(field)) if value is None else Eq(field, value)


def _one_of(field: str, values: Any) -> Filter:
    if not isinstance(values, list):
        raise FilterError(f"filters: 'in' on {field!r} takes a list, not {values!r}")
    given = tuple(value for value in values if value is not None)
    found: Filter = In(field, given) if given else _NONE
    return found if len(given) == len(values) else Or((found, Not(Exists(field))))


_EQUALITY: dict[str, Callable[[str, Any], Filter]] = {
    "==": _equal,
    "!=": lambda field, value: Not(_equal(field, value)),
    "in": _one_of,
    "not in": lambda field, values: Not(_one_of(field, values)),
}
