"""Lengths of passages, rounded as tantivy does."""

from __future__ import annotations

import numpy as np

from trivet.stores.bm25 import rounded, rounded_length

#: Lengths and what Lucene's ``SmallFloat.byte4ToInt(intToByte4(length))`` makes of them.
KNOWN = {0: 0, 5: 5, 40: 40, 41: 40, 42: 42, 57: 56, 59: 56, 60: 60, 87: 84, 88: 88, 119: 112, 1_000: 984}


def test_lengths_are_rounded_down_to_those_that_a_byte_can_say() -> None:
    assert rounded(np.array(list(KNOWN))).tolist() == list(KNOWN.values())
    assert {length: rounded_length(length) for length in KNOWN} == KNOWN


def test_one_length_is_rounded_as_an_array_is() -> None:
    lengths = [*range(3_000), 2**24 - 1, 2**24, 2_000_000_000]
    assert rounded(np.array(lengths)).tolist() == [rounded_length(length) for length in lengths]
    assert len({rounded_length(length) for length in lengths[:-1]}) < 256
