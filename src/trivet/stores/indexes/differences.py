"""Compare the content of an index with the records, and report the differences.

Counts and checksums do not tell an index of other content (another timeline, a lost update, a wrong merge) from the
right one. A comparison reads the index as it is, at its own checkpoint, then the records up to that checkpoint, and
leaves out what was removed since. So others may write meanwhile, and no index is updated before it is compared.

Every store uses ``Differences``; ``compare_graph`` compares the graph index that the stores share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from trivet.graph.mentions import Block, Entry, MentionGraph, ranges
from trivet.stores.indexes import graph_index
from trivet.stores.indexes.snapshots import PrunedError
from trivet.text.concepts import digest, key_of

Ints = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint64]
Report = Callable[[int, int], None]

BATCH = 2_000  # passages read from the records at a time
EDGES = 1 << 20  # edges of a graph added up at once
NAMED = 3  # documents that a problem names; more are counted
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads hashes (Knuth, multiplicative hashing)


class Passages(Protocol):
    """What is read from the records."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """Return (pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...


@dataclass(slots=True)
class Differences:
    """The differences between an index and the records: by kind, the passages with their documents."""

    index: str
    kinds: dict[str, dict[int, int]] = field(default_factory=dict)
    compared: int = 0

    def add(self, what: str, pids: Iterable[int], dids: Iterable[int]) -> None:
        if own := dict(zip(pids, dids, strict=True)):
            self.kinds.setdefault(what, {}).update(own)

    def add_whole(self, what: str) -> None:
        """Add a difference of the whole index."""
        self.kinds[what] = {}

    def without(self, removed: set[int]) -> Differences:
        """Return the differences without passages that were removed since."""
        left = {what: {pid: did for pid, did in own.items() if pid not in removed} for what, own in self.kinds.items()}
        kept = {what: own for what, own in left.items() if own or not self.kinds[what]}
        return Differences(self.index, kept, self.compared)

    def problems(self, ids: Callable[[Sequence[int]], Mapping[int, str]], collection: str) -> list[str]:
        """Return one sentence for each kind, with the first documents that it concerns."""
        found: list[str] = []
        for what, own in self.kinds.items():
            dids = list(dict.fromkeys(did for _, did in sorted(own.items())))
            if not dids:
                found.append(f"{self.index}: {what}; run rebuild")
                continue
            known = ids(dids[:NAMED])
            named = ", ".join(repr(known[did]) if did in known else f"number {did}" for did in dids[:NAMED])
            more = f" and {len(dids) - NAMED:,} more" if len(dids) > NAMED else ""
            where = f"document {named}{more} of collection {collection!r}"
            found.append(f"{self.index}: {what} ({where}); run rebuild")
        return found


class Removals(Protocol):
    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...


def without_removed(found: Differences, records: Removals, applied: int) -> Differences:
    """Leave out passages that were removed since the comparison began.

    Return no difference where the removals were pruned meanwhile: the index that was compared is not in use any more.
    """
    try:
        return found.without({pid for _, pid in records.removed_after(applied)})
    except PrunedError:
        return Differences(found.index, {}, found.compared)


def any_removed(records: Removals) -> bool:
    try:
        return bool(records.removed_after(0))
    except PrunedError:
        return True


def batches(records: Passages, last: int, report: Report | None) -> Iterator[list[tuple[int, int, str, str]]]:
    """Yield passages in order, up to ``last``."""
    at, done, total = 0, 0, records.count_after(0) if report is not None else 0
    while batch := records.passages_after(at, BATCH):
        at = batch[-1][0]
        wanted = [item for item in batch if item[0] <= last]
        if wanted:
            yield wanted
        done += len(batch)
        if report is not None:
            report(done, max(total, done))
        if at >= last:
            return


# --- the graph index -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldGraph:
    """The content of a graph index at one time."""

    name: str
    blocks: tuple[Block, Block]  # the snapshot, and the tail
    names: Mapping[int, str]
    pid: int
    removed: int
    stop_words: frozenset[str]
    step: int = 1


def compare_graph(held: HeldGraph, records: graph_index.Source, report: Report | None = None) -> Differences:
    """Compare the concepts, marks and first passage of every document, the names, and both directions of the edges."""
    found = Differences(held.name)
    whole = MentionGraph(held.blocks, lambda concept: held.names.get(concept, ""))
    dids = [block.dids[block.alive] for block in held.blocks]
    first = dict(zip(np.concatenate(dids).tolist(), _first_passages(held.blocks), strict=True))
    doubtful = _doubtful_names(held.blocks[0], found)
    forms = _Forms(doubtful)
    entries: dict[int, Entry] = {}
    passages: dict[int, int] = {}

    def compare(ready: Sequence[Entry]) -> None:
        right = Block.of(ready)
        found.compared += len(right)
        mine, own = _edge_sums(whole, right.dids), _edge_sums(MentionGraph((right,)), right.dids)
        wrong = (mine != own) | (whole.first_passages(right.dids) != right.pids)
        found.add(
            "documents name other concepts than their text", right.pids[wrong].tolist(), right.dids[wrong].tolist()
        )
        for did in right.dids.tolist():
            first.pop(did, None)

    for batch in batches(records, held.pid, report):
        triples = records.triples_of(sorted({did for _, did, _, _ in batch}))
        graph_index.take(batch, triples, held.stop_words, entries, passages, forms, held.step)
        last = batch[-1][1]
        compare([entry for did, entry in entries.items() if did != last])
        entries = {last: entries[last]}
        passages = {pid: did for pid, did in passages.items() if did == last}
    compare(list(entries.values()))
    found.add("documents are in the index and not in the store", first.values(), first.keys())
    if any(_back_sum(block) != _forward_sum(block) for block in held.blocks):
        found.add_whole("edges differ between the two directions")
    if not any_removed(records):  # else a name may be of a removed document
        wrong_names = [value for value, name in doubtful.items() if name not in forms.written.get(value, ())]
        found.add("names are not those of their concepts", *_named_by(held.blocks[0], wrong_names))
    return without_removed(found, records, held.removed)


class _Forms(dict[int, str]):
    """The spellings of some concepts; used in place of the names of a graph index."""

    def __init__(self, wanted: Mapping[int, str]) -> None:
        super().__init__()
        self._wanted = wanted
        self.written: dict[int, set[str]] = {}

    def setdefault(self, key: int, default: str = "") -> str:
        if key in self._wanted:
            self.written.setdefault(key, set()).add(default)
        return default


def _first_passages(blocks: Iterable[Block]) -> list[int]:
    return [pid for block in blocks for pid in block.pids[block.alive].tolist()]


def _edge_sums(graph: MentionGraph, dids: Ints) -> Sums:
    """Return a sum for each document over its concepts and marks."""
    source, hashes, marks = graph.named_by(dids)
    sums = np.zeros(len(dids), dtype=np.uint64)
    np.add.at(sums, source, (hashes ^ (marks.astype(np.uint64) + np.uint64(1)) * _ODD) * _ODD)
    return sums


def _forward_sum(block: Block) -> int:
    total = 0
    for start in range(0, len(block), BATCH):
        rows = np.arange(start, min(start + BATCH, len(block)), dtype=np.int64)
        edges, counts = ranges(block.starts, rows)
        total += _edge_sum(block.concepts[edges], np.repeat(rows, counts), block.marks[edges])
    return total & 0xFFFFFFFFFFFFFFFF


def _back_sum(block: Block) -> int:
    total = 0
    for start in range(0, len(block.hashes), EDGES):
        places = np.arange(start, min(start + EDGES, len(block.hashes)), dtype=np.int64)
        edges, counts = ranges(block.back_starts, places)
        total += _edge_sum(np.repeat(places, counts), block.back_rows[edges], block.back_marks[edges])
    return total & 0xFFFFFFFFFFFFFFFF


def _edge_sum(places: Any, rows: Any, marks: Any) -> int:
    mixed = (places.astype(np.uint64) * _ODD ^ rows.astype(np.uint64)) * _ODD ^ marks.astype(np.uint64)
    return int((mixed * _ODD).sum(dtype=np.uint64))


def _doubtful_names(block: Block, found: Differences) -> dict[int, str]:
    """Return the concepts of the snapshot whose name does not have their hash, to be compared with the texts.

    A concept that two documents share must have a name.
    """
    doubtful: dict[int, str] = {}
    nameless: list[int] = []
    for at in np.flatnonzero(np.diff(block.back_starts) > 1).tolist():
        name, value = block.names[at], int(block.hashes[at])
        if name in ("", "…"):
            nameless.append(value)
        elif digest(key_of(name)) != value:
            doubtful[value] = name
    found.add("concepts have no name", *_named_by(block, nameless))
    return doubtful


def _named_by(block: Block, concepts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the passages that mention these concepts, and their documents."""
    naming = MentionGraph((block,)).naming(np.sort(np.array(concepts, dtype=np.uint64)))
    return naming.pid.tolist(), naming.did.tolist()
