"""Which documents may this question see?

The one form of a filter (and of excluded ids) that every leg of the embedded store takes: a mask over document row
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


class Scope:
    __slots__ = ("asked", "count", "lookup", "mask", "seen")

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.asked = 0  # how often the words index was
        self.lookup: Any = None  # what an index made of it, to be used again
        self.seen: tuple[Any, Any] = (None, None)  # likewise: rows of a block of vectors, and which of them may be seen

    def __contains__(self, did: int) -> bool:
        return did < len(self.mask) and bool(self.mask[did])

    def expect(self, dids: Iterable[int]) -> None:
        """A mask knows them all."""

    def dids(self) -> list[int]:
        return [int(did) for did in np.flatnonzero(self.mask)]

    def rows(self, dids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each of these row numbers: may it be seen? A document newer than the mask may not."""
        if not len(dids) or int(dids.max()) < len(self.mask):
            found: npt.NDArray[np.bool_] = self.mask[dids]
            return found
        inside = dids < len(self.mask)
        return np.where(inside, self.mask[np.where(inside, dids, 0)], False)

    @classmethod
    def of(cls, dids: list[int], size: int) -> Scope:
        """``size`` is the last row number when the question was asked: another process may have added more since."""
        mask = np.zeros(size + 1, dtype=np.bool_)
        known = np.asarray(dids, dtype=np.int64)
        mask[known[(known > 0) & (known <= size)]] = True
        return cls(mask)

    @classmethod
    def everything(cls, size: int) -> Scope:
        return cls(np.ones(size + 1, dtype=np.bool_))

    def without(self, dids: list[int]) -> Scope:
        mask = self.mask.copy()
        mask[[did for did in dids if did < len(mask)]] = False
        return Scope(mask)
