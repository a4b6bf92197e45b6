"""Who names what?

Documents and the concepts they name, both ways, as compressed rows: four bytes an edge and way. A block never changes;
what is newer stands in another block, and a ``Graph`` reads several as one. Concepts are 64-bit digests: two blocks
made apart agree on them without a dictionary.
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

TITLE = 0x80  # a mark's highest bit: it is what the document is about
PORTION = 65_536  # names looked up at once
LAST = 0x7F  # the rest: which of its passages names the concept first; later ones count as this


class Entry(NamedTuple):
    """One document: its number, its first passage, and concept → mark."""

    did: int
    pid: int
    named: dict[int, int]


@dataclass(frozen=True, slots=True)
class Names:
    """How a concept is written; empty where nobody needs to know."""

    text: Marks = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))  # UTF-8, one name behind the other
    ends: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __getitem__(self, at: int) -> str:
        if at >= len(self.ends):
            return ""
        start = int(self.ends[at - 1]) if at else 0
        return self.text[start : int(self.ends[at])].tobytes().decode("utf-8", "replace")

    @classmethod
    def of(cls, written: Iterable[str]) -> Names:
        encoded = [name.encode() for name in written]
        ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)


#: The arrays of a block, in the order they are saved in.
ARRAYS = ("dids", "pids", "starts", "concepts", "marks", "hashes", "back_starts", "back_rows", "back_marks")


@dataclass(frozen=True, slots=True)
class Block:
    dids: Ints  # sorted
    pids: Ints  # first passage
    starts: Ints  # of a document's edges
    concepts: Rows  # place in ``hashes``
    marks: Marks
    hashes: Hashes  # sorted
    back_starts: Ints  # of a concept's edges
    back_rows: Rows  # place in ``dids``
    back_marks: Marks
    titled: Bools  # is the document known to be about something?
    alive: Bools
    names: Names = field(default_factory=Names)

    def __len__(self) -> int:
        return len(self.dids)

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Block:
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
        """From the arrays that ``ARRAYS`` names."""
        starts, marks = arrays["starts"], arrays["marks"]
        return cls(**arrays, titled=_titled(starts, marks), alive=np.ones(len(starts) - 1, dtype=np.bool_), names=names)

    def without(self, dids: set[int]) -> Block:
        """Another block: a walk may be reading this one."""
        gone = np.isin(self.dids, np.fromiter(dids, dtype=np.int64, count=len(dids)))
        return replace(self, alive=self.alive & ~gone) if gone.any() else self

    def rows(self, dids: Ints) -> tuple[Ints, Ints]:
        """(which of these documents are here, at which row)."""
        if not len(self.dids):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.dids, dids), len(self.dids) - 1)
        here = np.flatnonzero((self.dids[at] == dids) & self.alive[at])
        return here, at[here]

    def places(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """(which of these concepts are here, at which place)."""
        if not len(self.hashes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        here = np.flatnonzero(self.hashes[at] == hashes)
        return here, at[here]


class Naming(NamedTuple):
    """Edges: the asker's place in what was asked, the document or concept at the other end, and the mark."""

    source: Ints
    did: Ints
    pid: Ints
    mark: Marks
    titled: Bools

    def only(self, which: Bools) -> Naming:
        return Naming(self.source[which], self.did[which], self.pid[which], self.mark[which], self.titled[which])


class Graph:
    """Several blocks read as one; a document is alive in one of them at most."""

    def __init__(self, blocks: Sequence[Block], written: Callable[[int], str] = lambda value: "") -> None:
        self._blocks = [block for block in blocks if len(block)]
        self._only = self._blocks[0] if len(self._blocks) == 1 else None
        self._written = written
        self.documents = int(sum(np.count_nonzero(block.alive) for block in self._blocks))

    def named_by(self, dids: Ints) -> tuple[Ints, Hashes, Marks]:
        """(place in ``dids``, concept, mark) of everything these documents name."""
        found = []
        for block in self._blocks:
            here, rows = block.rows(dids)
            edges, counts = ranges(block.starts, rows)
            found.append((np.repeat(here, counts), block.hashes[block.concepts[edges]], block.marks[edges]))
        return _joined(found, (np.int64, np.uint64, np.uint8))

    def titled(self, dids: Ints) -> Bools:
        titled = np.zeros(len(dids), dtype=np.bool_)
        for block in self._blocks:
            here, rows = block.rows(dids)
            titled[here] = block.titled[rows]
        return titled

    def frequency(self, hashes: Hashes) -> Ints:
        """How many documents name each of these concepts (some of them gone since)."""
        total = np.zeros(len(hashes), dtype=np.int64)
        for block in self._blocks:
            here, places = block.places(hashes)
            total[here] += block.back_starts[places + 1] - block.back_starts[places]
        return total

    def naming(self, hashes: Hashes) -> Naming:
        """Every document that names one of these concepts."""
        return _naming([(block, *block.places(hashes)) for block in self._blocks])

    # --- the same by keys: within one block a concept is known by its place, and nothing has to be looked up ----------

    def keys_by(self, dids: Ints) -> tuple[Ints, Any, Marks]:
        """``named_by`` with a key for each concept; keys are in the order of the hashes."""
        if (block := self._only) is None:
            return self.named_by(dids)
        here, rows = block.rows(dids)
        edges, counts = ranges(block.starts, rows)
        return np.repeat(here, counts), block.concepts[edges], block.marks[edges]

    def frequency_of(self, keys: Any) -> Ints:
        if (block := self._only) is None:
            return self.frequency(keys)
        total: Ints = block.back_starts[keys + 1] - block.back_starts[keys]
        return total

    def naming_of(self, keys: Any) -> Naming:
        if (block := self._only) is None:
            return self.naming(keys)
        return _naming([(block, np.arange(len(keys)), keys)])

    def hashes_of(self, keys: Any) -> Hashes:
        found: Hashes = keys if self._only is None else self._only.hashes[keys]
        return found

    def first_passages(self, dids: Ints) -> Ints:
        """The first passage of each document, 0 for one that is not here."""
        pids = np.zeros(len(dids), dtype=np.int64)
        for block in self._blocks:
            here, rows = block.rows(dids)
            pids[here] = block.pids[rows]
        return pids

    def written(self, concept: int) -> str:
        """The concept as somebody wrote it."""
        return self.written_all(np.array([concept], dtype=np.uint64))[concept]

    def written_all(self, concepts: Hashes) -> dict[int, str]:
        """Each concept as somebody wrote it."""
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
    """The block with these names."""
    return replace(block, names=Names.of(written.get(value, "") for value in block.hashes.tolist()))


def merged(blocks: Sequence[Block], written: Callable[[int], str]) -> Block:
    """One block of what is alive in several. Names are kept of what two documents have: nothing else is a way."""
    graph = Graph(blocks, written)
    dids = np.sort(np.concatenate([block.dids[block.alive] for block in blocks]))
    source, hashes, marks = graph.named_by(dids)
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=len(dids)).astype(np.int64)
    made = _assembled(dids, graph.first_passages(dids), counts, hashes[order], marks[order])
    return replace(made, names=Names.of(_names(graph, made.hashes, np.diff(made.back_starts) > 1)))


def _names(graph: Graph, hashes: Hashes, shared: Bools) -> Iterator[str]:
    """The names of the shared ones, some thousands looked up at a time."""
    for start in range(0, len(hashes), PORTION):
        some, wanted = hashes[start : start + PORTION], shared[start : start + PORTION]
        known = graph.written_all(some[wanted])
        yield from (known[value] if more else "" for value, more in zip(some.tolist(), wanted.tolist(), strict=True))


def ranges(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """(every place from ``starts[row]`` up to the next row's, for each row; how many each has)."""
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
    """Which documents have an edge that says what they are about?"""
    seen = np.concatenate([[0], np.cumsum((marks & TITLE) > 0)])
    return seen[starts[1:]] > seen[starts[:-1]]


def _naming(places: Sequence[tuple[Block, Ints, Ints]]) -> Naming:
    """In each block: which of the concepts asked for are there, and at which place."""
    found = []
    for block, here, at in places:
        edges, counts = ranges(block.back_starts, at)
        rows, marks, source = block.back_rows[edges], block.back_marks[edges], np.repeat(here, counts)
        alive = block.alive[rows]
        if not alive.all():
            rows, marks, source = rows[alive], marks[alive], source[alive]
        pids = block.pids[rows] + (marks & LAST)
        found.append((source, block.dids[rows], pids, marks, block.titled[rows]))
    return Naming(*_joined(found, (np.int64, np.int64, np.int64, np.uint8, np.bool_)))


def _joined(found: Sequence[tuple[Any, ...]], kinds: Sequence[Any]) -> tuple[Any, ...]:
    if not found:
        return tuple(np.zeros(0, dtype=kind) for kind in kinds)
    return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
