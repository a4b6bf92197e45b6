"""A block of vectors in memory or in the records, with the passage and document of each.

Scores are exact cosines: where there are quantized codes, they only propose which rows to compare.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from trivet.stores.contract import Found
from trivet.stores.sqlite.half_precision import widened
from trivet.stores.sqlite.quantized_codes import SLICE, Codes, Mask, portions
from trivet.stores.sqlite.scope import Scope

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]
Ints = npt.NDArray[np.int64]
Part = tuple[Ints, Ints, Floats]  # pids, dids, vectors

HALF = "<f2"  # how numbers are stored
READ_AT_ONCE = 4_096  # vectors looked up in the records by one statement
#: Rows multiplied at once, a multiple of what BLAS takes at once: 16 and 32 bits of each stay in a core's own cache.
NEAR = 256
OFTEN = 3  # searches with a mask before the vectors of its rows are copied, as with ``filtered_index``
COPIES = 8  # masks of which there is a copy: some MB each, as a mask is narrow
SCATTERED = 64  # rows of a list: from so many on they are multiplied in place, not copied first

_COPIED: deque[Mask] = deque()


class Rows(Protocol):
    """Vectors by row; None is all rows."""

    def __len__(self) -> int: ...
    def take(self, rows: Ints | None) -> Floats: ...
    def scores(self, rows: Ints | None, query: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Held:
    """Vectors in memory."""

    vectors: Floats

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: Ints | None) -> Floats:
        return self.vectors if rows is None else self.vectors[rows]

    def scores(self, rows: Ints | None, query: Floats) -> Floats:
        if rows is None:
            return _products(self.vectors, query)
        if len(rows) < SCATTERED:
            return _products(self.vectors[rows], query)
        import faiss

        found = np.empty(len(rows), dtype=np.float32)
        held, asked = np.ascontiguousarray(self.vectors), np.ascontiguousarray(query)
        told = [faiss.swig_ptr(each) for each in (found, asked, held, np.ascontiguousarray(rows))]
        faiss.fvec_inner_products_by_idx(*told, held.shape[1], 1, len(rows))  # type: ignore[attr-defined]
        return found


@dataclass(frozen=True, slots=True)
class Halved:
    """Vectors in memory with 16 bits a number."""

    vectors: Halves

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: Ints | None) -> Floats:
        return widened(self.vectors if rows is None else self.vectors[rows])

    def scores(self, rows: Ints | None, query: Floats) -> Floats:
        count, dim = len(self) if rows is None else len(rows), self.vectors.shape[1]
        found = np.empty(count, dtype=np.float32)
        halves = np.empty((min(count, NEAR), dim), dtype=HALF)
        wide = np.empty(halves.shape, dtype=np.float32)
        for start in range(0, count, NEAR):
            stop = min(start + NEAR, count)
            some, into = halves[: stop - start], wide[: stop - start]
            if rows is None:
                some = self.vectors[start:stop]
            else:
                np.take(self.vectors, rows[start:stop], axis=0, out=some, mode="clip")  # the mode that needs no copy
            np.dot(widened(some, into), query, out=found[start:stop])
        return found


class Recorded:
    """Vectors that stay in the records: a query reads those that it compares.

    A vector that is no longer there is zero: its passage was removed, and the index will read so.
    """

    def __init__(self, pids: Ints, dim: int, read: Callable[[Sequence[int]], Mapping[int, bytes]]) -> None:
        """``pids`` are the passages of the rows; ``read`` maps passages to the float16 bytes of their vectors."""
        self.pids, self.dim, self._read = pids, dim, read

    def __len__(self) -> int:
        return len(self.pids)

    def take(self, rows: Ints | None) -> Floats:
        wanted = self.pids if rows is None else self.pids[rows]
        found, none = np.empty((len(wanted), self.dim), dtype=HALF), bytes(2 * self.dim)
        for start in range(0, len(wanted), READ_AT_ONCE):
            pids = wanted[start : start + READ_AT_ONCE].tolist()
            data = self._read(pids)
            part = b"".join([data.get(pid, none) for pid in pids])
            found[start : start + len(pids)] = np.frombuffer(part, dtype=HALF).reshape(len(pids), self.dim)
        return widened(found)

    def scores(self, rows: Ints | None, query: Floats) -> Floats:
        return _products(self.take(rows), query)


class Filed:
    """Vectors in a file that is being coded, read row by row: a mapped file would count as memory of this process."""

    def __init__(self, path: Path, count: int, dim: int) -> None:
        self._count, self._dim = count, dim
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self._count

    def take(self, rows: Ints | None) -> Floats:
        wanted = np.arange(self._count) if rows is None else rows
        found = np.empty((len(wanted), self._dim), dtype=HALF)
        if not found.size:
            return found.astype(np.float32)
        into, width = found.view(np.uint8).data.cast("B"), found.strides[0]
        # neighbours in one call
        breaks = np.flatnonzero(np.diff(wanted) != 1) + 1
        for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(wanted)], strict=True):
            read = os.preadv(self._file, [into[start * width : stop * width]], int(wanted[start]) * width)
            if read != (stop - start) * width:
                raise OSError("the file of vectors is shorter than it was")
        return widened(found)


def _products(vectors: Floats, query: Floats) -> Floats:
    """Multiply slice by slice: see ``quantized_codes.SLICE``."""
    found = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), SLICE):
        np.dot(vectors[start : start + SLICE], query, out=found[start : start + SLICE])
    return found


def _copied(mask: Mask, rows: Halved) -> Floats:
    """Return the vectors of the rows of a mask; those of a filter that is used often stay in memory."""
    found = rows.take(mask.rows()) if mask.vectors is None else mask.vectors
    mask.searches += 1
    if mask.vectors is None and mask.searches >= OFTEN:
        mask.vectors = found
        _COPIED.append(mask)
        if len(_COPIED) > COPIES:
            _COPIED.popleft().vectors = None
    return found


@dataclass(slots=True)
class Block:
    """Vectors with the passage and document each belongs to; a removed row has pid 0."""

    pids: Ints
    dids: Ints
    rows: Rows
    codes: Codes | None = None  # for a large block
    gone: bool = False  # whether any row is removed
    alive: Mask | None = None  # the rows that are not, made when it is first needed

    def __len__(self) -> int:
        return len(self.pids)

    def best(self, query: Floats, depth: int, scope: Scope | None) -> list[Found]:
        """Return the best passage of each of the nearest ``depth`` documents."""
        mask = self._mask(scope)
        if self.codes is None:
            return self._exact(query, depth, None if mask is None else mask.rows())
        return self._scan(self.codes, query, depth, mask)

    def _mask(self, scope: Scope | None) -> Mask | None:
        """Return the rows that may be seen; cached with the scope."""
        if scope is None:
            if self.gone and self.alive is None:
                self.alive = Mask(self.pids > 0)
            return self.alive
        owner, kept = scope.seen
        if owner is self.pids and isinstance(kept, Mask):
            return kept
        alive = scope.rows(self.dids)
        made = Mask(alive & (self.pids > 0) if self.gone else alive)
        if self.codes is not None:
            scope.seen = (self.pids, made)
        return made

    def _exact(self, query: Floats, depth: int, rows: Ints | None) -> list[Found]:
        return self._top(self.rows.scores(rows, query), rows, depth)

    def _scan(self, codes: Codes, query: Floats, depth: int, mask: Mask | None) -> list[Found]:
        if mask is not None and mask.is_narrow and isinstance(self.rows, Halved):
            return self._top(_products(_copied(mask, self.rows), query), mask.rows(), depth)
        wanted = codes.wanted(depth)
        while True:
            rows, more = codes.likeliest(query, wanted, mask)
            top = self._exact(query, depth, rows)
            if len(top) >= depth or not more:
                return top
            wanted *= 4  # a few long documents filled the list with their passages

    def _top(self, scores: Floats, rows: Ints | None, depth: int) -> list[Found]:
        """Return the best passage of each of the best ``depth`` documents."""
        wanted = depth + depth // 2 + 16
        while True:
            partial = wanted < len(scores)
            order = np.argpartition(-scores, wanted)[:wanted] if partial else np.arange(len(scores))
            where = order if rows is None else rows[order]
            order = order[np.lexsort((self.dids[where], -scores[order]))]
            where = order if rows is None else rows[order]
            dids = self.dids[where[:depth]].tolist()
            if len(set(dids)) == depth:  # each is the only passage of its document here
                return list(zip(scores[order[:depth]].tolist(), self.pids[where[:depth]].tolist(), dids, strict=True))
            best: dict[int, Found] = {}
            listed = zip(scores[order].tolist(), self.pids[where].tolist(), self.dids[where].tolist(), strict=True)
            for score, pid, did in listed:
                best.setdefault(did, (score, pid, did))
                if len(best) == depth:
                    break
            if len(best) == depth or wanted >= len(scores):
                return list(best.values())
            wanted *= 4

    def remove(self, pids: set[int]) -> None:
        """Mark passages as removed."""
        dead = np.isin(self.pids, np.fromiter(pids, dtype=np.int64, count=len(pids)))
        if dead.any():
            self.pids = np.where(dead, 0, self.pids)
            self.gone, self.alive = True, None

    def parts(self) -> Iterator[Part]:
        """Yield what is not removed, some tens of thousands of rows at a time."""
        for portion in portions(len(self)):
            kept = portion[self.pids[portion] > 0]
            yield self.pids[kept], self.dids[kept], self.rows.take(kept)


def joined(parts: list[Part], dim: int) -> Block:
    """Join parts into one block in memory."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Block(none, none, Held(np.zeros((0, dim), dtype=np.float32)))
    pids, dids, vectors = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Block(pids, dids, Held(vectors))


class Room:
    """Space for a block that grows: a write of one document must not copy all vectors before it.

    A block that was handed out stays as it was: rows are only written after the last one that any block has.
    """

    def __init__(self, dim: int) -> None:
        self._space = np.zeros((0, dim), dtype=np.float32)
        self._used = 0

    def extended(self, block: Block, parts: list[Part]) -> Block:
        """Return a block with these parts appended; a new one, because another thread may scan the first."""
        count = len(block)
        total = count + sum(len(part[0]) for part in parts)
        if total > len(self._space) or self._used != count or not np.shares_memory(block.rows.take(None), self._space):
            space = np.empty((max(total + total // 2, 64), self._space.shape[1]), dtype=np.float32)
            space[:count] = block.rows.take(None)
            self._space = space
        at = count
        for _, _, vectors in parts:
            self._space[at : at + len(vectors)] = vectors
            at += len(vectors)
        self._used = total
        pids, dids = (
            np.concatenate([own, *(part[at] for part in parts)]) for at, own in enumerate((block.pids, block.dids))
        )
        return Block(pids, dids, Held(self._space[:total]), gone=block.gone)
