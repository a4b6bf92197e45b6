"""Numbers of terms, packed: 16 bits for the 65,024 most frequent terms of a segment, 32 for the others.

A number from ``COMMON`` on is two units: the first is ``COMMON`` or more and the second less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Units = npt.NDArray[np.uint16]

COMMON = 0xFE00  # numbers that fit into one unit


def packed(numbers: Numbers, ends: Ints) -> tuple[Units, Ints]:
    """Return the units of consecutive lists, and where each ends; ``ends`` are the ends of the lists."""
    rare = numbers >= COMMON
    if not rare.any():
        return numbers.astype("<u2"), ends
    at = np.arange(len(numbers)) + np.concatenate([[0], np.cumsum(rare)[:-1]])
    units = np.empty(len(numbers) + int(rare.sum()), dtype="<u2")
    above = numbers[rare] - COMMON
    units[at[~rare]] = numbers[~rare]
    units[at[rare]] = COMMON + above // COMMON
    units[at[rare] + 1] = above % COMMON
    return units, ends + np.concatenate([[0], np.cumsum(rare)])[ends]


def unpacked(units: Units, ends: Ints) -> tuple[Numbers, Ints]:
    """Return the numbers of consecutive lists of units, and where each list ends; ``ends`` are those of the units."""
    numbers = units.astype(np.int32)
    first = np.flatnonzero(units >= COMMON)
    if not len(first):
        return numbers, ends
    numbers[first] = COMMON + (numbers[first] - COMMON) * COMMON + numbers[first + 1]
    return np.delete(numbers, first + 1), ends - np.searchsorted(first, ends)


def by_frequency(numbers: Numbers, count: int) -> Numbers:
    """Return the new number of each of ``count`` terms: the most frequent first."""
    found = np.empty(count, dtype=np.int32)
    found[np.argsort(-np.bincount(numbers, minlength=count), kind="stable")] = np.arange(count, dtype=np.int32)
    return found
