"""Unknown fields in a filter (``trivet.stores.field_check``)."""

from __future__ import annotations

import pytest

from trivet.errors import InputError
from trivet.filters import Eq, Exists, Filter, Not
from trivet.stores.field_check import check_fields

KEYS = {"place", "colour"}


def is_refused(where: Filter, documents: bool = True) -> bool:
    try:
        check_fields(where, None, lambda key, _: key in KEYS, lambda _: documents, lambda _: sorted(KEYS))
    except InputError as error:
        assert "did you mean 'place'" in str(error)
        return True
    return False


def test_a_key_that_no_document_has_is_refused_with_the_nearest() -> None:
    assert is_refused(Eq("plaec", "hill"))


@pytest.mark.parametrize("where", [Eq("place", "hill"), Eq("kind", "note"), Not(Exists("plaec"))])
def test_known_keys_and_built_in_fields_are_accepted(where: Filter) -> None:
    assert not is_refused(where)


def test_where_there_is_no_document_nothing_is_refused() -> None:
    assert not is_refused(Eq("plaec", "hill"), documents=False)
