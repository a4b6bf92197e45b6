"""Mentions: which documents name which concepts, as compressed sparse rows in both directions.

A mention takes four bytes in each direction. A block never changes; newer documents are in another block, and a
``MentionGraph`` reads several blocks as one. Concepts are 64-bit digests, so blocks need no common dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

TITLE = 0x80  # highest bit of a mark: the concept is the title of the document
LAST = 0x7F  # other bits of a mark: the first passage that names the concept, at most this
PORTION = 65_536  # names that are looked up at once


class Entry(NamedTuple):
    """A document: its number, the number of its first passage, and the mark of each concept that it names."""

    did: int
    pid: int
    named: dict[int, int]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the concepts of a block, in their order; empty for a concept that needs none."""

    text: Marks = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))  # UTF-8, one name after the other
    ends: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __getitem__(self, at: int) -> str:
        if at >= len(self.ends):
            return ""
        start = int(self.ends[at - 1]) if at else 0
        return self.text[start : int(self.ends[at])].tobytes().decode("utf-8", "replace")

    @classmethod
    def of(cls, written: Iterable[str]) -> Names:
        """Pack these names."""
        encoded = [name.encode() for name in written]
        ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)


#: The arrays of a block, in the order in which they are saved.
WIDE = ("dids", "pids", "starts", "back_starts")  # with 64 bits a number in memory
ARRAYS = ("dids", "pids", "starts", "concepts", "marks", "hashes", "back_starts", "back_rows", "back_marks")


@dataclass(frozen=True, slots=True)
class Block:
    """The mentions of some documents, by document and by concept. It is immutable."""

    dids: Ints  # document numbers, sorted
    pids: Ints  # first passage of each document
    starts: Ints  # where the mentions of each document start
    concepts: Rows  # place in ``hashes``
    marks: Marks
    hashes: Hashes  # digests of the concepts, sorted
    back_starts: Ints  # where the mentions of each concept start
    back_rows: Rows  # place in ``dids``
    back_marks: Marks
    titled: Bools  # whether the document has a title that is a concept
    alive: Bools  # False for a document that was removed
    names: Names = field(default_factory=Names)

    def __len__(self) -> int:
        return len(self.dids)

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Block:
        """Return the block of these documents."""
        entries = sorted(entries)
        counts = [len(entry.named) for entry in entries]
        total = sum(counts)
        return _assembled(
            np.array([entry.did for entry in entries], dtype=np.int64),
            np.array([entry.pid for entry in entries], dtype=np.int64),
            np.array(counts, dtype=np.int64),
            np.fromiter((value for entry in entries for value in entry.named), dtype=np.uint64, count=total),
            np.fromiter((mark for entry in entries for mark in entry.named.values()), dtype=np.uint8, count=total),
        )

    @classmethod
    def restored(cls, arrays: dict[str, Any], names: Names) -> Block:
        """Return a block from its saved arrays."""
        starts, marks = arrays["starts"], arrays["marks"]
        return cls(**arrays, titled=_titled(starts, marks), alive=np.ones(len(starts) - 1, dtype=np.bool_), names=names)

    def without(self, dids: set[int]) -> Block:
        """Return a block in which these documents are removed. This one stays, because a walk may be reading it."""
        gone = np.isin(self.dids, np.fromiter(dids, dtype=np.int64, count=len(dids)))
        return replace(self, alive=self.alive & ~gone) if gone.any() else self

    def rows(self, dids: Ints) -> tuple[Ints, Ints]:
        """Return which of these documents are in the block, and their rows."""
        if not len(self.dids):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.dids, dids), len(self.dids) - 1)
        here = np.flatnonzero((self.dids[at] == dids) & self.alive[at])
        return here, at[here]

    def places(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """Return which of these concepts are in the block, and their places."""
        if not len(self.hashes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        here = np.flatnonzero(self.hashes[at] == hashes)
        return here, at[here]


class Naming(NamedTuple):
    """Mentions of some concepts, as columns: the place of the concept in the argument, and the document."""

    source: Ints
    did: Ints
    pid: Ints
    mark: Marks
    titled: Bools

    def only(self, which: Bools | Ints) -> Naming:
        """Return these rows only."""
        return Naming(self.source[which], self.did[which], self.pid[which], self.mark[which], self.titled[which])


class MentionGraph:
    """Several blocks read as one; a document is alive in at most one of them."""

    def __init__(
        self, blocks: Sequence[Block], written: Callable[[int], str] = lambda value: "", step: int = 1
    ) -> None:
        """``step`` is the distance between the numbers of two passages that follow each other in a document."""
        self._blocks = [block for block in blocks if len(block)]
        self._only = self._blocks[0] if len(self._blocks) == 1 else None
        self._written, self._step = written, step
        self.documents = int(sum(np.count_nonzero(block.alive) for block in self._blocks))

    def named_by(self, dids: Ints) -> tuple[Ints, Hashes, Marks]:
        """Return the place in ``dids``, the concept and the mark of every mention in these documents."""
        found = []
        for block in self._blocks:
            here, rows = block.rows(dids)
            edges, counts = ranges(block.starts, rows)
            found.append((np.repeat(here, counts), block.hashes[block.concepts[edges]], block.marks[edges]))
        return _joined(found, (np.int64, np.uint64, np.uint8))

    def titled(self, dids: Ints) -> Bools:
        """Return which of these documents have a title."""
        titled = np.zeros(len(dids), dtype=np.bool_)
        for block in self._blocks:
            here, rows = block.rows(dids)
            titled[here] = block.titled[rows]
        return titled

    def frequency(self, hashes: Hashes) -> Ints:
        """Return how many documents name each of these concepts, removed documents included."""
        total = np.zeros(len(hashes), dtype=np.int64)
        for block in self._blocks:
            here, places = block.places(hashes)
            total[here] += block.back_starts[places + 1] - block.back_starts[places]
        return total

    def naming(self, hashes: Hashes) -> Naming:
        """Return every document that names one of these concepts."""
        return _naming([(block, *block.places(hashes)) for block in self._blocks], self._step)

    # --- the same by keys: in a graph of one block, the key of a concept is its place, which saves a search ----------

    def keys_by(self, dids: Ints) -> tuple[Ints, Any, Marks]:
        """Return as ``named_by``, with the key of each concept; keys are in the order of the digests."""
        if (block := self._only) is None:
            return self.named_by(dids)
        here, rows = block.rows(dids)
        edges, counts = ranges(block.starts, rows)
        return np.repeat(here, counts), block.concepts[edges], block.marks[edges]

    def frequency_of(self, keys: Any) -> Ints:
        """Return as ``frequency``, by keys."""
        if (block := self._only) is None:
            unique, place = np.unique(keys, return_inverse=True)
            return self.frequency(unique)[place]
        total: Ints = block.back_starts[keys + 1] - block.back_starts[keys]
        return total

    def naming_of(self, keys: Any) -> Naming:
        """Return as ``naming``, by keys and in their order."""
        if (block := self._only) is None:
            found = self.naming(keys)
            return found.only(np.argsort(found.source, kind="stable"))
        return _naming([(block, np.arange(len(keys)), keys)], self._step)

    def ranks_of(self, keys: Any) -> Any:
        """Return numbers of 32 bits in the order of these keys."""
        return keys if self._only is not None else np.unique(keys, return_inverse=True)[1]

    def hashes_of(self, keys: Any) -> Hashes:
        """Return the digests of these keys."""
        found: Hashes = keys if self._only is None else self._only.hashes[keys]
        return found

    def first_passages(self, dids: Ints) -> Ints:
        """Return the first passage of each document; 0 for one that is not in the graph."""
        pids = np.zeros(len(dids), dtype=np.int64)
        for block in self._blocks:
            here, rows = block.rows(dids)
            pids[here] = block.pids[rows]
        return pids

    def written(self, concept: int) -> str:
        """Return the name of a concept as a document wrote it."""
        return self.written_all(np.array([concept], dtype=np.uint64))[concept]

    def written_all(self, concepts: Hashes) -> dict[int, str]:
        """Return the name of each concept as a document wrote it."""
        found = {concept: self._written(concept) for concept in concepts.tolist()}
        for block in self._blocks:
            missing = np.array([concept for concept, name in found.items() if not name], dtype=np.uint64)
            if not len(missing):
                break
            here, places = block.places(missing)
            named = zip(missing[here].tolist(), places.tolist(), strict=True)
            found.update((concept, block.names[place]) for concept, place in named)
        return {concept: name or "…" for concept, name in found.items()}


def named(block: Block, written: Mapping[int, str]) -> Block:
    """Return the block with these names of its concepts."""
    return replace(block, names=Names.of(written.get(value, "") for value in block.hashes.tolist()))


def merged(blocks: Sequence[Block], written: Callable[[int], str]) -> Block:
    """Return one block of all that is alive in several.

    Names are kept for concepts that two documents name: no other concept can be part of a path.
    """
    graph = MentionGraph(blocks, written)
    dids = np.sort(np.concatenate([block.dids[block.alive] for block in blocks]))
    source, hashes, marks = graph.named_by(dids)
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=len(dids)).astype(np.int64)
    made = _assembled(dids, graph.first_passages(dids), counts, hashes[order], marks[order])
    return replace(made, names=Names.of(_names(graph, made.hashes, np.diff(made.back_starts) > 1)))


def _names(graph: MentionGraph, hashes: Hashes, shared: Bools) -> Iterator[str]:
    """Yield the names of the shared concepts, empty for the others; look up some thousands at a time."""
    for start in range(0, len(hashes), PORTION):
        some, named = hashes[start : start + PORTION], shared[start : start + PORTION]
        known = graph.written_all(some[named])
        yield from (known[value] if has else "" for value, has in zip(some.tolist(), named.tolist(), strict=True))


def ranges(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return every place from ``starts[row]`` to the start of the next row, for each row, and how many each has."""
    counts = starts[rows + 1] - starts[rows]
    before = np.cumsum(counts) - counts
    return np.repeat(starts[rows] - before, counts) + np.arange(int(counts.sum()), dtype=np.int64), counts


def _assembled(dids: Ints, pids: Ints, counts: Ints, hashes: Hashes, marks: Marks) -> Block:
    unique, places = np.unique(hashes, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    order = np.argsort(places, kind="stable")
    back = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(unique)))]).astype(np.int64)
    rows = np.repeat(np.arange(len(dids), dtype=np.int32), counts)
    return Block(
        dids,
        pids,
        starts,
        places.astype(np.int32),
        marks,
        unique,
        back,
        rows[order],
        marks[order],
        _titled(starts, marks),
        np.ones(len(dids), dtype=np.bool_),
    )


def _titled(starts: Ints, marks: Marks) -> Bools:
    """Return which documents have a mention that is their title."""
    seen = np.concatenate([[0], np.cumsum((marks & TITLE) > 0)])
    return seen[starts[1:]] > seen[starts[:-1]]


def _naming(places: Sequence[tuple[Block, Ints, Ints]], step: int) -> Naming:
    """Return the mentions of concepts, given for each block by their place in the argument and in the block."""
    found = []
    for block, here, at in places:
        edges, counts = ranges(block.back_starts, at)
        rows, marks, source = block.back_rows[edges], block.back_marks[edges], np.repeat(here, counts)
        alive = block.alive[rows]
        if not alive.all():
            rows, marks, source = rows[alive], marks[alive], source[alive]
        pids = block.pids[rows] + (marks & LAST).astype(np.int64) * step
        found.append((source, block.dids[rows], pids, marks, block.titled[rows]))
    return Naming(*_joined(found, (np.int64, np.int64, np.int64, np.uint8, np.bool_)))


def _joined(found: Sequence[tuple[Any, ...]], kinds: Sequence[Any]) -> tuple[Any, ...]:
    if not found:
        return tuple(np.zeros(0, dtype=kind) for kind in kinds)
    return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
