"""Compare the content of the term and vector indexes with the records (see ``trivet.stores.indexes.differences``)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import tantivy

from trivet.stores.indexes.differences import Differences, Passages, Report, batches, without_removed
from trivet.stores.sqlite.forward_index import hash_of
from trivet.stores.sqlite.half_precision import widened

if TYPE_CHECKING:
    from trivet.stores.sqlite.forward_index import ForwardIndex
    from trivet.stores.sqlite.vector_block import Block as VectorBlock

Ints = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint64]

SPAN = 32_768  # passage numbers read from an index at a time
POSTINGS = 65_536  # entries of an index that are added up at once
VECTORS = 16_384  # vectors compared at once
KNOWN = 262_144  # words whose hashes are cached


# --- words and trigrams -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldTerms:
    """The content of a term index at one time: a commit on disk, and the tail in memory."""

    name: str
    schema: Any
    searcher: Any
    forward: ForwardIndex | None
    disk_pid: int
    tail_pid: int
    tail_removed: int  # the last removal that was applied
    tail: Mapping[int, tuple[int, int, int]]  # by passage: document, number of terms, their sum
    removed: frozenset[int]  # removed passages that are still on disk


@dataclass(slots=True)
class _Cells:
    """Passages in order, each with its document, its length and the sum of its terms."""

    pids: Ints
    dids: Ints
    lengths: Ints
    sums: Sums

    def at(self, pids: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return the places of these passages, and which of them are here."""
        if not len(self.pids):
            return np.zeros(len(pids), dtype=np.int64), np.zeros(len(pids), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.pids, pids), len(self.pids) - 1)
        return at, self.pids[at] == pids


def sum_of(terms: Iterable[str]) -> int:
    """Return the sum of the hashes of distinct terms, modulo 2^64; comparable within one process only."""
    return sum(map(hash, terms)) & 0xFFFFFFFFFFFFFFFF


def compare_terms(
    held: HeldTerms,
    records: Passages,
    halves: Callable[[str, str], tuple[list[str], list[str], str]],
    report: Report | None = None,
) -> Differences:
    """Compare a term index; ``halves`` analyses a title and a text as the index does."""
    found = Differences(held.name)
    forward = _ForwardCheck(held.forward, found) if held.forward is not None else None
    right, begins = _analysed(held, records, halves, forward, report)
    found.compared = len(right.pids)
    mine = _indexed(held, found)
    _add_postings(held, mine, begins)
    at, here = mine.at(right.pids)
    found.add("passages are missing in the index", right.pids[~here].tolist(), right.dids[~here].tolist())
    at = at[here]
    expected = _Cells(right.pids[here], right.dids[here], right.lengths[here], right.sums[here])
    for what, wrong in (
        ("passages stand under another document", mine.dids[at] != expected.dids),
        ("passages have another length than their text", mine.lengths[at] != expected.lengths),
        ("passages have other terms than their text", mine.sums[at] != expected.sums),
    ):
        found.add(what, expected.pids[wrong].tolist(), expected.dids[wrong].tolist())
    _, here = right.at(mine.pids)
    found.add("passages are in the index and not in the store", mine.pids[~here].tolist(), mine.dids[~here].tolist())
    return without_removed(found, records, held.tail_removed)


def _analysed(
    held: HeldTerms,
    records: Passages,
    halves: Callable[[str, str], tuple[list[str], list[str], str]],
    forward: _ForwardCheck | None,
    report: Report | None,
) -> tuple[_Cells, list[str]]:
    """Return the passages of the records up to the checkpoint, and the first characters of their terms."""
    pids, dids, lengths, sums = array("q"), array("q"), array("q"), array("Q")
    begins: set[str] = set()
    for batch in batches(records, held.tail_pid, report):
        analysed = [(pid, *halves(title, text)) for pid, _, title, text in batch]
        for (pid, did, _, _), (_, _, _, line) in zip(batch, analysed, strict=True):
            terms = set(line.split())
            pids.append(pid)
            dids.append(did)
            lengths.append(line.count(" ") + 1)
            sums.append(sum_of(terms))
            begins.update(term[0] for term in terms)
        if forward is not None:
            owners = {pid: did for pid, did, _, _ in batch if pid <= held.disk_pid}
            forward.compare([item[:3] for item in analysed if item[0] in owners], owners)
    columns = [np.array(column, dtype=np.int64) for column in (pids, dids, lengths)]
    return _Cells(columns[0], columns[1], columns[2], np.array(sums, dtype=np.uint64)), sorted(begins)


def _indexed(held: HeldTerms, found: Differences) -> _Cells:
    """Return the passages that the index has, without their terms and without removed ones."""
    pids, dids, lengths = [array("q") for _ in range(3)]
    searcher = held.searcher
    for first in range(0, held.disk_pid + 1 if searcher is not None else 0, SPAN):
        last = first + SPAN - 1
        asked = tantivy.Query.range_query(held.schema, "pid", tantivy.FieldType.Unsigned, first, last)
        addresses = [address for _, address in searcher.search(asked, 2 * SPAN, count=False).hits]
        for column, name in ((pids, "pid"), (dids, "did"), (lengths, "length")):
            column.extend(-1 if value is None else value for value in searcher.fast_field_values(name, addresses))
    numbers = np.array(pids, dtype=np.int64)
    if searcher is not None and len(numbers) != searcher.num_docs - 1:
        found.add_whole("it holds passages beyond its checkpoint")
    tail = sorted(held.tail.items())
    gone = np.isin(numbers, np.fromiter(held.removed, dtype=np.int64, count=len(held.removed)))
    columns = [
        np.concatenate([np.array(column, dtype=np.int64)[~gone], np.array(more, dtype=np.int64)])
        for column, more in (
            (pids, [pid for pid, _ in tail]),
            (dids, [own[0] for _, own in tail]),
            (lengths, [max(1, own[1]) for _, own in tail]),
        )
    ]
    sums = np.concatenate(
        [
            np.zeros(len(numbers) - int(gone.sum()), dtype=np.uint64),
            np.array([own[2] for _, own in tail], dtype=np.uint64),
        ]
    )
    order = np.argsort(columns[0], kind="stable")
    cells = _Cells(columns[0][order], columns[1][order], columns[2][order], sums[order])
    twice = np.flatnonzero(np.diff(cells.pids) == 0) if len(cells.pids) else np.zeros(0, dtype=np.int64)
    found.add("passages are in the index twice", cells.pids[twice].tolist(), cells.dids[twice].tolist())
    return cells


def _add_postings(held: HeldTerms, mine: _Cells, begins: Sequence[str]) -> None:
    """Add the hash of every term on disk to the passages that have it.

    Terms with a first character that no term of the records has are not read: their passages differ in length.
    """
    if held.searcher is None:
        return
    pids, hashes, counts = array("q"), array("q"), array("q")

    def add() -> None:
        at, here = mine.at(np.array(pids, dtype=np.int64))
        values = np.repeat(np.array(hashes, dtype=np.int64).view(np.uint64), np.array(counts, dtype=np.int64))
        np.add.at(mine.sums, at[here], values[here])
        for column in (pids, hashes, counts):
            del column[:]

    for begin in begins:
        for term, often in held.searcher.terms_with_prefix("body", begin):
            if not often:
                continue
            asked = tantivy.Query.term_query(held.schema, "body", term, "basic")
            addresses = [address for _, address in held.searcher.search(asked, often, count=False).hits]
            numbers = held.searcher.fast_field_values("pid", addresses)
            pids.extend(-1 if number is None else number for number in numbers)
            hashes.append(hash(term))
            counts.append(len(addresses))
            if len(pids) >= POSTINGS:
                add()
    add()


class _ForwardCheck:
    """Compares the sequences of terms in the forward files."""

    def __init__(self, forward: ForwardIndex, found: Differences) -> None:
        self._forward, self._found = forward, found
        self._hashed: dict[str, bytes] = {}  # an item's terms, 8 bytes each

    def compare(self, analysed: Sequence[tuple[int, list[str], list[str]]], owners: Mapping[int, int]) -> None:
        right = {pid: (self._bytes(title), self._bytes(text)) for pid, title, text in analysed}
        seen: set[int] = set()
        for part in self._forward.terms_of(np.array(sorted(right), dtype=np.int64)):
            sequences = part.hashed()
            for pid, title, text in sequences:
                seen.add(pid)
                if right[pid] != (title, text):
                    self._found.add("forward files have other terms than their text", [pid], [owners[pid]])
        missing = [pid for pid in right if pid not in seen]
        self._found.add("forward files lack passages", missing, [owners[pid] for pid in missing])

    def _bytes(self, items: Sequence[str]) -> bytes:
        if len(self._hashed) > KNOWN:
            self._hashed.clear()
        known = self._hashed
        for item in items:
            if item not in known:
                hashes = [hash_of(term) for term in item.split()]
                known[str(item)] = np.array(hashes, dtype=np.uint64).tobytes()
        return b"".join([known[item] for item in items])


# --- vectors ----------------------------------------------------------------------------------------------------------


class VectorRecords(Protocol):
    def vectors_between(self, mid: int, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...


@dataclass(frozen=True, slots=True)
class HeldVectors:
    """The content of a vector index at one time."""

    name: str
    blocks: tuple[VectorBlock, VectorBlock]  # the snapshot, and the tail
    vid: int
    removed: int
    dim: int


def compare_vectors(held: HeldVectors, records: VectorRecords, mid: int, report: Report | None = None) -> Differences:
    """Compare every vector in memory, and the codes of every row, with the vectors of the records."""
    found = Differences(held.name)
    base = held.blocks[0]
    alive = [np.flatnonzero(block.pids) for block in held.blocks]
    pids = np.concatenate([block.pids[rows] for block, rows in zip(held.blocks, alive, strict=True)])
    dids = np.concatenate([block.dids[rows] for block, rows in zip(held.blocks, alive, strict=True)])
    places = np.concatenate([alive[0], alive[1] + len(base)])
    order = np.argsort(pids, kind="stable")
    pids, dids, places = pids[order], dids[order], places[order]
    cells = _Cells(pids, dids, places, np.zeros(0, dtype=np.uint64))
    twice = np.flatnonzero(np.diff(pids) == 0) if len(pids) else np.zeros(0, dtype=np.int64)
    found.add("vectors are in the index twice", pids[twice].tolist(), dids[twice].tolist())
    seen = np.zeros(len(pids), dtype=np.bool_)
    vid = 0
    while True:
        vid, numbers, owners, data = records.vectors_between(mid, vid, held.vid, VECTORS)
        if not numbers:
            break
        found.compared += len(numbers)
        _compare_rows(held, cells, seen, np.array(numbers), np.array(owners), data, found)
        if report is not None:
            report(found.compared, max(len(pids), found.compared))
    found.add("vectors are in the index and not in the store", pids[~seen].tolist(), dids[~seen].tolist())
    return without_removed(found, records, held.removed)


def _compare_rows(
    held: HeldVectors,
    cells: _Cells,
    seen: npt.NDArray[np.bool_],
    pids: Ints,
    dids: Ints,
    data: bytes,
    found: Differences,
) -> None:
    right = widened(np.frombuffer(data, dtype="<f2")).reshape(len(pids), held.dim)
    at, here = cells.at(pids)
    seen[at[here]] = True
    empty = np.einsum("ij,ij->i", right, right) <= 0  # the vector of an empty text is not kept
    missing = ~here & ~empty
    found.add("vectors are missing in the index", pids[missing].tolist(), dids[missing].tolist())
    pids, dids, right, at = pids[here], dids[here], right[here], at[here]
    other = cells.dids[at] != dids
    found.add("vectors stand under another document", pids[other].tolist(), dids[other].tolist())
    base, tail = held.blocks
    places = cells.lengths[at]
    coded = np.flatnonzero(places < len(base))
    if base.codes is not None and len(coded):
        wrong = coded[~base.codes.fit(places[coded], right[coded])]
        found.add("codes are not those of the vectors", pids[wrong].tolist(), dids[wrong].tolist())
    late = np.flatnonzero(places >= len(base))
    wrong = late[(tail.rows.take(places[late] - len(base)) != right[late]).any(axis=1)]
    found.add("vectors are not those of their passages", pids[wrong].tolist(), dids[wrong].tolist())
