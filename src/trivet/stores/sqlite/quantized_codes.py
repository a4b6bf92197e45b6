"""Quantized codes of many vectors, which propose the rows that are likely nearest to a query.

Four bits for three dimensions (product quantisation, scanned by faiss): a third of a millisecond for 89,000 vectors. A
scan proposes ten times as many rows as are wanted. Where the vectors are too many for memory, one byte a dimension is
kept there and selects which of the proposed rows are read. A mask that allows few rows is not scanned: all its rows are
compared. No score comes from here: the rows that remain are compared exactly.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from trivet.stores.sqlite.vector_block import Floats, Ints

Bools = npt.NDArray[np.bool_]

REFINE, AT_LEAST = 5, 500  # rows proposed for each wanted document, and in all; recall@50 of 89,000: 0.990
MORE = 2  # times as many where bytes select among them; recall@50 of a million: 0.995
NARROW = 6  # one in so many is compared exactly after bytes selected them
FEW_SHARE = 32  # a mask that allows less than one row in so many is compared whole: a longer list costs more
FEW = 4_096  # rows of a mask that are compared whole, whatever their share; it keeps their numbers
PORTION = 65_536  # vectors coded at once: 100 MB
CENTRES = 16  # centroids of four bits
SAMPLE = 16_384  # vectors that the codes are trained on: faiss takes 256 for each centroid
NEARLY = 1.001  # two distances that differ by less are the same: machines round differently
SLICE = 1_024  # rows multiplied at once: for more, BLAS starts threads that wait for each other on a busy machine

QUICK, BYTES, SCALE = "quick.faiss", "bytes.npy", "scale.npy"

_THREADS = threading.local()


class Mask:
    """The rows that may be seen: one bit a row, so that the masks of many filters fit in memory."""

    __slots__ = ("_rows", "count", "packed", "searches", "size", "vectors")

    def __init__(self, alive: Bools) -> None:
        self.size, self.count = len(alive), int(np.count_nonzero(alive))
        self.packed = np.packbits(alive, bitorder="little")
        self._rows: Ints | None = np.flatnonzero(alive) if self.is_narrow else None
        self.searches = 0  # how often its rows were compared
        self.vectors: Floats | None = None  # a copy of theirs

    @property
    def is_narrow(self) -> bool:
        """Whether comparing all its rows is faster than a scan."""
        return self.count <= FEW or self.count * FEW_SHARE <= self.size

    def of(self, rows: Ints) -> Bools:
        seen: Bools = (self.packed[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(np.bool_)
        return seen

    def rows(self) -> Ints:
        if self._rows is not None:
            return self._rows
        return np.flatnonzero(np.unpackbits(self.packed, bitorder="little", count=self.size))


@dataclass(frozen=True, slots=True)
class Bytes:
    """Vectors with one byte a dimension, in 256 steps of the dimension's own width."""

    rows: npt.NDArray[np.int8]
    scale: Floats

    def nearest(self, query: Floats, rows: Ints, wanted: int) -> Ints:
        """Return the best of these rows, in their order."""
        if len(rows) <= wanted:
            return rows
        scaled = query * self.scale
        scores = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), SLICE):
            part = self.rows[rows[start : start + SLICE]].astype(np.float32)
            np.dot(part, scaled, out=scores[start : start + SLICE])
        return np.sort(rows[np.argpartition(-scores, wanted)[:wanted]])


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of all rows of a block."""

    quick: Any
    bytes: Bytes | None = None  # where the vectors stay in their file

    def __len__(self) -> int:
        return int(self.quick.ntotal)

    def wanted(self, depth: int) -> int:
        """Return how many rows to propose for ``depth`` documents."""
        return max(AT_LEAST, depth * REFINE) * (1 if self.bytes is None else MORE)

    def likeliest(self, query: Floats, wanted: int, mask: Mask | None) -> tuple[Ints, bool]:
        """Return likely rows in their order, so that a file is read forwards, and whether there may be more."""
        rows, more = self._proposed(query, wanted, mask)
        if self.bytes is None:
            return rows, more
        kept = self.bytes.nearest(query, rows, wanted // NARROW)
        return kept, more or len(kept) < len(rows)

    def _proposed(self, query: Floats, wanted: int, mask: Mask | None) -> tuple[Ints, bool]:
        if mask is not None and mask.is_narrow:
            return mask.rows(), False
        _one_thread()
        asked = _widened(query[None, :])
        if mask is None:
            return np.sort(self._scanned(asked, wanted)), wanted < len(self)
        many = wanted * len(self) // mask.count
        while True:
            many = min(many + many // 4, len(self))
            rows = self._scanned(asked, many)
            rows = rows[mask.of(rows)][:wanted]
            if len(rows) == wanted or many == len(self):
                return np.sort(rows), len(rows) == wanted
            many *= 4

    def fit(self, rows: Ints, vectors: Floats) -> Bools:
        """Tell for each of these rows whether its codes are those of its vector."""
        wide, pq = _widened(vectors), self.quick.pq
        best, kept = pq.decode(pq.compute_codes(wide)), self.quick.reconstruct_batch(rows)
        # distances, not codes: of two centroids that are as near, another machine may take the other one
        fits: Bools = _distances(wide, kept) <= _distances(wide, best) * NEARLY + 1e-9
        if self.bytes is not None:
            steps = np.abs(vectors / self.bytes.scale - self.bytes.rows[rows])
            fits &= (steps <= NEARLY / 2).all(axis=1) | (np.abs(self.bytes.rows[rows]) == 127).any(axis=1)
        return fits

    def _scanned(self, query: Floats, count: int) -> Ints:
        rows: Ints = self.quick.search(query, min(count, len(self)))[1][0]
        return rows[rows >= 0]


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Let faiss use one thread. Its threads wait for each other in a loop: with another process on one of two cores, a
    snapshot of 89,000 vectors took 10 s of both instead of 2 s of one."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@_one_core()
def build(read: Callable[[Ints], Floats], count: int, dim: int, with_bytes: bool) -> Codes | None:
    """Build the codes of the rows that ``read`` returns; None where there are none."""
    if not count:
        return None
    import faiss

    sample = _widened(read(_spread(count, SAMPLE)))
    if count < CENTRES:  # each centroid starts with one
        sample = np.resize(sample, (CENTRES, sample.shape[1]))
    wide = sample.shape[1]
    quick = faiss.index_factory(wide, f"PQ{wide // _each(wide)}x4fs", faiss.METRIC_INNER_PRODUCT)
    quick.pq.cp.min_points_per_centroid = 1  # type: ignore[attr-defined]  # no warning for a small block
    quick.train(sample)
    kept = np.empty((count, dim), dtype=np.int8) if with_bytes else None
    scale = (np.abs(sample[:, :dim]).max(axis=0, initial=1e-12) / 127).astype(np.float32)
    for portion in portions(count):
        rows = read(portion)
        quick.add(_widened(rows))
        if kept is not None:
            np.clip(np.rint(rows / scale), -127, 127, out=kept[portion[0] : portion[-1] + 1], casting="unsafe")
    return Codes(quick, None if kept is None else Bytes(kept, scale))


def portions(count: int) -> Iterator[Ints]:
    for start in range(0, count, PORTION):
        yield np.arange(start, min(start + PORTION, count), dtype=np.int64)


def save(codes: Codes, folder: Path) -> None:
    import faiss

    faiss.write_index(codes.quick, str(folder / QUICK))
    if codes.bytes is not None:
        np.save(folder / BYTES, codes.bytes.rows)
        np.save(folder / SCALE, codes.bytes.scale)


def load(folder: Path) -> Codes | None:
    if not (folder / QUICK).exists():
        return None
    import faiss

    quick = faiss.read_index(str(folder / QUICK))
    if not (folder / BYTES).exists():
        return Codes(quick)
    return Codes(quick, Bytes(np.load(folder / BYTES), np.load(folder / SCALE)))


def _each(dim: int) -> int:
    """Return how many dimensions share four bits."""
    return 3 if dim % 3 == 0 else 2 if dim % 4 else 4


def _widened(rows: Floats) -> Floats:
    """Append a zero where the dimensions cannot be divided evenly: it changes no product."""
    if rows.shape[1] % 2 == 0 or rows.shape[1] % 3 == 0:
        return rows
    return np.pad(rows, ((0, 0), (0, 1)))


def _distances(left: Floats, right: Floats) -> Floats:
    found: Floats = np.square(left - right).sum(axis=1)
    return found


def _spread(count: int, most: int) -> Ints:
    """Return all rows, or ``most`` of them, evenly spread."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.linspace(0, count - 1, most).astype(np.int64)


def _one_thread() -> None:
    """Let faiss scan with one thread: on a busy machine the barrier of its threads costs 8 ms and the scan 1.3 ms.

    OpenMP keeps this number for each thread, so other users of faiss are not slowed down.
    """
    if not getattr(_THREADS, "set", False):
        import faiss

        faiss.omp_set_num_threads(1)
        _THREADS.set = True
