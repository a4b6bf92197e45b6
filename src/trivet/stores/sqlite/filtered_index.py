"""A small in-memory term index for one filter.

The term index finds the passages of a term in the whole collection: under a filter that allows one in a hundred it
reads a hundred for each that may be seen. So a filter that is used often (a tenant, a project, a conversation) gets an
index of its own, built from the forward index and scored as tantivy scores. It never changes: a write makes another
scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trivet.stores.bm25 import K1, B, rounded
from trivet.stores.contract import Found

if TYPE_CHECKING:
    from trivet.stores.sqlite.forward_index import ForwardIndex, PassageTerms

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MIN_SEARCHES = 3  # searches with a scope before it gets an index: building one takes as long as some searches
MOST = 16_384  # documents of a scope that gets one
MOST_PASSAGES = 2 * MOST  # passages of them: fewer documents where they are long
SHARE = 8  # one document in so many at most: beyond, a longer list of the large index is as fast
KEPT = 8  # indexes in memory for one term index


class FilteredIndex:
    """Passages, and every (term, passage) with its count, sorted."""

    def __init__(self, pids: Ints, dids: Ints, parts: Sequence[PassageTerms]) -> None:
        """``dids`` are the documents of ``pids``, both sorted by pid; ``parts`` have the terms of all of them."""
        self._pids, self._dids = pids, dids
        self._lengths = np.zeros(len(pids), dtype=np.float64)
        self._parts: list[tuple[PassageTerms, Ints, npt.NDArray[np.int64]]] = []
        for part in parts:
            rows = np.searchsorted(pids, part.pids)
            self._lengths[rows] = rounded(part.sizes)
            pairs = part.numbers.astype(np.int64) * len(pids) + np.repeat(rows, part.sizes)
            self._parts.append((part, *np.unique(pairs, return_counts=True)))

    def bm25(
        self,
        weights: Mapping[str, float],
        required: Collection[str],
        average: float,
        depth: int,
        removed: Collection[int],
    ) -> list[Found]:
        """Return the best passage of the best ``depth`` documents with any of the terms and all required ones."""
        scores, has = np.zeros(len(self._pids)), np.zeros(len(self._pids), dtype=np.int64)
        norms = K1 * (1.0 - B + B * self._lengths / average)
        terms = list(weights)
        for part, pairs, counts in self._parts:
            for term, number in zip(terms, part.numbers_of(terms), strict=True):
                if number < 0:
                    continue
                first, last = np.searchsorted(pairs, [number * len(scores), (number + 1) * len(scores)])
                rows, often = pairs[first:last] - number * len(scores), counts[first:last]
                scores[rows] += weights[term] * (K1 + 1.0) * often / (often + norms[rows])
                has[rows] += term in required
        matching = np.flatnonzero((scores > 0) & (has == len(set(required))))
        wanted = 2 * depth
        while True:
            best = matching
            if wanted < len(matching):
                best = matching[np.argpartition(-scores[matching], wanted)[:wanted]]
            found = self._found(scores, best, depth, removed)
            if len(found) == depth or wanted >= len(matching):
                return found
            wanted *= 4  # a few long documents filled the list with their passages

    def occurs(self, term: str, removed: Collection[int]) -> bool:
        """Tell whether any passage has this term."""
        for part, pairs, _ in self._parts:
            (number,) = part.numbers_of([term])
            if number >= 0:
                first, last = np.searchsorted(pairs, [number * len(self._pids), (number + 1) * len(self._pids)])
                rows = pairs[first:last] - number * len(self._pids)
                if any(pid not in removed for pid in self._pids[rows].tolist()):
                    return True
        return False

    def _found(self, scores: Floats, rows: Ints, depth: int, removed: Collection[int]) -> list[Found]:
        order = rows[np.lexsort((self._dids[rows], -scores[rows]))]
        found: dict[int, Found] = {}
        listed = zip(scores[order].tolist(), self._pids[order].tolist(), self._dids[order].tolist(), strict=True)
        for score, pid, did in listed:
            if pid not in removed:
                found.setdefault(did, (score, pid, did))
                if len(found) == depth:
                    break
        return list(found.values())


def build(forward: ForwardIndex, passages: Sequence[tuple[int, int]], last: int) -> FilteredIndex | None:
    """Build the index of these (pid, did), up to ``last``, the end of the forward index.

    Return None where they are too many, or not all can be read.
    """
    if len(passages) > MOST_PASSAGES:
        return None
    known = np.array(sorted(pair for pair in passages if pair[0] <= last), dtype=np.int64).reshape(-1, 2)
    pids, dids = known[:, 0].copy(), known[:, 1].copy()
    parts = forward.terms_of(pids)
    if sum(len(part.pids) for part in parts) != len(pids):
        return None
    return FilteredIndex(pids, dids, parts)
