"""Cursors that tell no row number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.engine.cursors import cursor, row
from trivet.errors import InputError

KEY = b"k" * 32


@given(st.integers(0, 2**63 - 1), st.text(max_size=20))
def test_a_number_comes_back(number: int, collection: str) -> None:
    assert row(cursor(number, KEY, collection), KEY, collection) == number


@given(st.text(max_size=40) | st.binary(max_size=30).map(lambda raw: raw.hex()))
def test_what_was_not_made_here_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"after: .* is not the `next` of a page"):
        row(text, KEY, "notes")


def test_another_key_collection_or_letter_reads_nothing() -> None:
    made = cursor(7, KEY, "notes")
    changed = [made[:at] + ("A" if made[at] != "A" else "B") + made[at + 1 :] for at in range(len(made))]
    for text, key, collection in (
        (made, b"other", "notes"),
        (made, KEY, "other"),
        *((one, KEY, "notes") for one in changed),
    ):
        with pytest.raises(InputError):
            row(text, key, collection)


def test_two_of_the_same_number_differ() -> None:
    assert len({cursor(7, KEY, "notes") for _ in range(100)}) == 100
