"""Which of very many vectors are likely near this one?

One bit a dimension (faiss RaBitQ) for every block, with or without a mask. Beyond ``LARGE`` vectors that scan takes
longer than the rest of a search: there a second set of codes, four bits for three dimensions (PQ, scanned in
registers), proposes a longer list in a quarter of the time, and the bits are asked where a mask leaves little. Nobody
takes a score from here: what is proposed is compared exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from trivet.stores.sqlite.vectors import Floats, Ints

Bools = npt.NDArray[np.bool_]

REFINE, AT_LEAST = 5, 400  # vectors a wanted document, and in all, that the bits propose for the exact comparison
LARGE = 250_000  # vectors; 4 ms by bits
QUICK_REFINE, QUICK_AT_LEAST = 10, 1_000  # of the coarser codes; recall@50 of a million: 0.995, at 5 and 500 0.98
MOST_OVERFETCHED = 8  # times as many, where a mask leaves one in eight; beyond that the bits under the mask are quicker
FEW = 4_096  # rows that a mask has by their numbers as well
PORTION = 65_536  # vectors coded at once: 100 MB
SAMPLE = 131_072  # vectors the codes are trained on
PQ_SAMPLE = 40_960  # and those with sixteen centres, which need no more

BITS, QUICK = "codes.faiss", "quick.faiss"

_THREADS = threading.local()


class Mask:
    """Which rows may be seen: a bit a row, so that those of many filters can be kept."""

    __slots__ = ("_few", "count", "packed", "size")

    def __init__(self, alive: Bools) -> None:
        self.size, self.count = len(alive), int(np.count_nonzero(alive))
        self.packed = np.packbits(alive, bitorder="little")
        self._few: Ints | None = np.flatnonzero(alive) if self.count <= FEW else None

    def of(self, rows: Ints) -> Bools:
        seen: Bools = (self.packed[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(np.bool_)
        return seen

    def rows(self) -> Ints:
        if self._few is not None:
            return self._few
        return np.flatnonzero(np.unpackbits(self.packed, bitorder="little", count=self.size))


@dataclass(frozen=True, slots=True)
class Codes:
    bits: Any
    quick: Any = None  # for a large block

    def __len__(self) -> int:
        return int(self.bits.ntotal)

    def wanted(self, depth: int) -> int:
        """How many should be proposed where ``depth`` documents are wanted?"""
        if self.quick is not None:
            return max(QUICK_AT_LEAST, depth * QUICK_REFINE)
        return max(AT_LEAST, depth * REFINE)

    def likeliest(self, query: Floats, wanted: int, mask: Mask | None) -> Ints:
        """Rows in their order, ``wanted`` of them where there are so many: the file is read forwards."""
        _one_thread()
        if self.quick is None or (mask is not None and mask.count * MOST_OVERFETCHED < len(self)):
            return np.sort(self._by_bits(query, wanted, mask))
        if mask is None:
            return np.sort(_found(self.quick.search(query[None, :], wanted)))
        more = wanted * len(self) // mask.count
        while True:
            more = min(more + more // 4, len(self))
            rows = _found(self.quick.search(query[None, :], more))
            rows = rows[mask.of(rows)][:wanted]
            if len(rows) >= min(wanted, mask.count) or more == len(self):
                return np.sort(rows)
            more *= 4

    def _by_bits(self, query: Floats, wanted: int, mask: Mask | None) -> Ints:
        import faiss

        if mask is None:
            return _found(self.bits.search(query[None, :], wanted))
        selector = faiss.IDSelectorBitmap(mask.size, faiss.swig_ptr(mask.packed))
        parameters = faiss.RaBitQSearchParameters(sel=selector, qb=self.bits.qb)  # type: ignore[call-arg]
        return _found(self.bits.search(query[None, :], wanted, params=parameters))


def _found(answer: tuple[Any, Any]) -> Ints:
    rows: Ints = answer[1][0]
    return rows[rows >= 0]


def made(read: Callable[[Ints], Floats], count: int, dim: int) -> Codes:
    """Codes for the rows that ``read`` gives."""
    import faiss

    # not RaBitQfs: its scan is a fifth faster, takes no mask, and crashed on small blocks (faiss 1.15)
    bits = faiss.index_factory(dim, "RaBitQ", faiss.METRIC_INNER_PRODUCT)
    bits.train(read(_spread(count, SAMPLE)))
    quick = None
    if count >= LARGE and (each := next((size for size in (3, 4, 2) if dim % size == 0), None)):
        quick = faiss.index_factory(dim, f"PQ{dim // each}x4fs", faiss.METRIC_INNER_PRODUCT)
        quick.train(read(_spread(count, PQ_SAMPLE)))
    for portion in portions(count):
        rows = read(portion)
        bits.add(rows)
        if quick is not None:
            quick.add(rows)
    return Codes(bits, quick)


def portions(count: int) -> Iterator[Ints]:
    for start in range(0, count, PORTION):
        yield np.arange(start, min(start + PORTION, count), dtype=np.int64)


def save(codes: Codes, folder: Path) -> None:
    import faiss

    faiss.write_index(codes.bits, str(folder / BITS))
    if codes.quick is not None:
        faiss.write_index(codes.quick, str(folder / QUICK))


def load(folder: Path) -> Codes:
    import faiss

    quick = folder / QUICK
    return Codes(faiss.read_index(str(folder / BITS)), faiss.read_index(str(quick)) if quick.exists() else None)


def _spread(count: int, most: int) -> Ints:
    """All rows, or ``most`` of them from everywhere."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.linspace(0, count - 1, most).astype(np.int64)


def _one_thread() -> None:
    """One query is too short to share: on a busy machine the threads' barrier costs more than the scan (8 ms, not 1.3).
    OpenMP keeps this number per thread, so nobody else's faiss is slowed."""
    if not getattr(_THREADS, "told", False):
        import faiss

        faiss.omp_set_num_threads(1)
        _THREADS.told = True
