"""Which of the few passages that a filter leaves have these words?

The words index finds a word's passages in the whole collection; under a filter that leaves one in a hundred it would
read a hundred for each that may be seen. So what a filter leaves, where it is asked for again and again (a tenant, a
project, a conversation), gets a small index of its own: made of ``forward.py``, kept in memory, scored as tantivy
scores. It is never written to and lives as long as nothing is: whoever writes makes another scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trivet.stores.sqlite.tail import K1, B, Found

if TYPE_CHECKING:
    from trivet.stores.sqlite.forward import Forward, Taken

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WORTH_IT = 3  # times a scope is asked before it gets an index: that takes as long as some questions
MOST = 16_384  # documents of a scope that gets one
MOST_PASSAGES = 2 * MOST  # of them: of long documents fewer will do
SHARE = 8  # of that many documents at most one: beyond, a longer list of the large index is as quick
KEPT = 8  # indexes at a time


class Narrow:
    """Passages and, sorted, every (term, passage) there is, with how often."""

    def __init__(self, pids: Ints, dids: Ints, parts: Sequence[Taken]) -> None:
        """``dids`` belong to ``pids``, both sorted by pid; ``parts`` hold the terms of all of them."""
        self._pids, self._dids = pids, dids
        self._lengths = np.zeros(len(pids), dtype=np.float64)
        self._parts: list[tuple[Taken, Ints, npt.NDArray[np.int64]]] = []
        for part in parts:
            rows = np.searchsorted(pids, part.pids)
            self._lengths[rows] = _rounded(part.sizes)
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
        """The best passage of each of the best ``depth`` documents with any of the terms and all of the required."""
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
        """Has any passage this term?"""
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


def narrow(forward: Forward, passages: Sequence[tuple[int, int]], last: int) -> Narrow | None:
    """An index of these (pid, did), of which the large one has those up to ``last``. None: they are too many, or not
    all can be read."""
    if len(passages) > MOST_PASSAGES:
        return None
    known = np.array(sorted(pair for pair in passages if pair[0] <= last), dtype=np.int64).reshape(-1, 2)
    pids, dids = known[:, 0].copy(), known[:, 1].copy()
    parts = forward.taken(pids)
    if sum(len(part.pids) for part in parts) != len(pids):
        return None
    return Narrow(pids, dids, parts)


def _rounded(lengths: Ints) -> Floats:
    """As tantivy (and Lucene) keep a length in a byte: exact up to 40, then three bits behind the first."""
    above = np.maximum(lengths - 24, 1)
    shift = np.maximum(np.floor(np.log2(above)).astype(np.int64) - 3, 0)
    return np.where(lengths < 40, lengths, 24 + ((above >> shift) << shift)).astype(np.float64)
