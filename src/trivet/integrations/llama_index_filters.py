"""The metadata filters of LlamaIndex in the filter language of trivet. They can be nested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trivet.errors import InputError
from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range
from trivet.integrations.engine import missing_extra

try:
    from llama_index.core.vector_stores.types import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
    )
except ImportError as error:
    raise missing_extra("llama-index", error) from error


def translated(filters: MetadataFilters | None) -> Filter | None:
    """Return the filter; None if there is no condition."""
    if filters is None or not filters.filters:
        return None
    read = [translated(each) if isinstance(each, MetadataFilters) else _comparison(each) for each in filters.filters]
    parts = tuple(each for each in read if each is not None)
    return _CONDITIONS[filters.condition or FilterCondition.AND](parts) if parts else None


def _comparison(item: MetadataFilter) -> Filter:
    make = _OPERATORS.get(item.operator)
    if make is None:
        known = ", ".join(operator.value for operator in _OPERATORS)
        raise InputError(f"filters: {item.operator.value!r} on {item.key!r} is no filter of trivet; known: {known}")
    return make(f"meta.{item.key}", item.value)


def _equal(field: str, value: Any) -> Filter:
    return Not(Exists(field)) if value is None else Eq(field, value)


def _one_of(field: str, values: Any) -> Filter:
    if not isinstance(values, list):
        raise InputError(f"filters: {field.removeprefix('meta.')!r} takes a list, got {values!r}")
    return In(field, tuple(values))


_CONDITIONS: dict[FilterCondition, Callable[[tuple[Filter, ...]], Filter]] = {
    FilterCondition.AND: And,
    FilterCondition.OR: Or,
    FilterCondition.NOT: lambda parts: Not(Or(parts)),  # none of them
}
#: A condition on a list is met by any of its elements, so CONTAINS is equality.
_OPERATORS: dict[FilterOperator, Callable[[str, Any], Filter]] = {
    FilterOperator.EQ: _equal,
    FilterOperator.NE: lambda field, value: Not(_equal(field, value)),
    FilterOperator.GT: lambda field, value: Range(field, gt=value),
    FilterOperator.GTE: lambda field, value: Range(field, gte=value),
    FilterOperator.LT: lambda field, value: Range(field, lt=value),
    FilterOperator.LTE: lambda field, value: Range(field, lte=value),
    FilterOperator.IN: _one_of,
    FilterOperator.NIN: lambda field, values: Not(_one_of(field, values)),
    FilterOperator.ANY: _one_of,
    FilterOperator.ALL: lambda field, values: And(tuple(Eq(field, value) for value in values)),
    FilterOperator.CONTAINS: _equal,
    FilterOperator.IS_EMPTY: lambda field, _: Or((Not(Exists(field)), Eq(field, ""))),
}
