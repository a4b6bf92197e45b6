from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.stores.sqlite import term_numbers
from trivet.stores.sqlite.term_numbers import COMMON, by_frequency, packed, unpacked

LARGEST = COMMON + (0x10000 - COMMON) * COMMON - 1
NUMBERS = st.one_of(st.integers(0, 300), st.integers(COMMON - 2, COMMON + 2), st.integers(0, LARGEST))


@given(st.lists(st.lists(NUMBERS, max_size=6), max_size=6))
def test_lists_come_back_as_they_were(lists: list[list[int]]) -> None:
    numbers = np.array([number for each in lists for number in each], dtype=np.int32)
    ends = np.cumsum([len(each) for each in lists], dtype=np.int64)
    units, stops = packed(numbers, ends)
    again, found = unpacked(units, stops)
    assert again.tolist() == numbers.tolist() and found.tolist() == ends.tolist()
    starts = [0, *stops.tolist()[:-1]]
    for each, start, stop in zip(lists, starts, stops.tolist(), strict=False):  # and each by itself
        assert unpacked(units[start:stop], np.array([stop - start]))[0].tolist() == each


def test_a_frequent_term_takes_two_bytes_and_a_rare_one_four() -> None:
    units, ends = packed(np.array([0, COMMON - 1, COMMON, LARGEST], dtype=np.int32), np.array([2, 4]))
    assert units.dtype == np.uint16 and ends.tolist() == [2, 6]
    assert units.tolist() == [0, COMMON - 1, COMMON, 0, 0xFFFF, COMMON - 1]


def test_the_most_frequent_terms_have_the_lowest_numbers() -> None:
    assert by_frequency(np.array([2, 2, 2, 0, 3, 3], dtype=np.int32), 5).tolist() == [2, 3, 0, 1, 4]


@pytest.mark.parametrize("common", [2, 7])
def test_any_limit_works(common: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_numbers, "COMMON", common)
    numbers = np.arange(40, dtype=np.int32)
    assert unpacked(*packed(numbers, np.array([40])))[0].tolist() == numbers.tolist()
