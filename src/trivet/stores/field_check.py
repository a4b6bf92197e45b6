"""The check that a filter names no field that no document has: a typing error would silently find nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trivet.errors import InputError
from trivet.filters import BUILT_IN_FIELDS, Filter, both, fields_of, split_field, unknown_field, without_field


def check_fields(
    where: Filter,
    within: Filter | None,
    has_field: Callable[[str, Filter | None], bool],
    any_document: Callable[[Filter | None], bool],
    fields: Callable[[Filter | None], Iterable[str]],
) -> None:
    """Raise ``InputError`` for a metadata key of ``where`` that no document within ``within`` has.

    ``has_field``, ``any_document`` and ``fields`` read the store. Where no document may be seen, nothing is refused.
    """
    for field, must_be_known in fields_of(where):
        built_in, name = split_field(field)
        if built_in or not must_be_known or has_field(name, within):
            continue
        if not any_document(within):
            return
        # only keys that the rest of the filter lets the caller see: a key may say as much as a value
        raise InputError(unknown_field(field, [*BUILT_IN_FIELDS, *fields(both(within, without_field(where, field)))]))
