"""A filter with excluded ids as a mask over document numbers: the form that every index of the store takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


class Scope:
    """The documents that may be seen, and what the indexes cache for it."""

    __slots__ = ("count", "lookup", "mask", "searches", "seen")

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.searches = 0  # how often the term index was searched with it
        self.lookup: Any = None  # its form as a query of the term index
        self.seen: tuple[Any, Any] = (None, None)  # rows of a block of vectors, and which of them may be seen

    def __contains__(self, did: int) -> bool:
        return did < len(self.mask) and bool(self.mask[did])

    def expect(self, dids: Iterable[int]) -> None:
        """Do nothing: a mask knows every document."""

    def dids(self) -> list[int]:
        return [int(did) for did in np.flatnonzero(self.mask)]

    def rows(self, dids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of these documents may be seen. A document newer than the mask may not."""
        if not len(dids) or int(dids.max()) < len(self.mask):
            found: npt.NDArray[np.bool_] = self.mask[dids]
            return found
        inside = dids < len(self.mask)
        return np.where(inside, self.mask[np.where(inside, dids, 0)], False)

    @classmethod
    def of(cls, dids: list[int], size: int) -> Scope:
        """Allow these documents; ``size`` is the last document number, others may have added more since."""
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
