"""Compare the content of the indexes with the passages of the truth.

Counts and checksums do not tell an index of other content (another timeline, a lost update, a wrong merge) from the
right one. Here the terms, vectors and concepts that an index holds are compared with what the truth's own texts and
vectors give.

An index is taken as it is, at its own checkpoint: the truth is read afterwards, up to that checkpoint, and what was
removed since is left out. So others may write meanwhile, and nothing is brought up to date before it is looked at.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import tantivy

from trivet.concepts import digest, key_of
from trivet.graph.block import Block, Entry, Graph, ranges
from trivet.stores.sqlite import graph as graphs
from trivet.stores.sqlite.forward import hash_of
from trivet.stores.sqlite.snapshots import PrunedError
from trivet.stores.sqlite.vectors import DamagedError

if TYPE_CHECKING:
    from trivet.stores.sqlite.forward import Forward
    from trivet.stores.sqlite.vectors import Block as VectorBlock

Ints = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint64]
Report = Callable[[int, int], None]

BATCH = 2_000  # passages read from the truth at a time
SPAN = 32_768  # passage numbers asked of an index at a time
POSTINGS = 65_536  # entries of an index that are added up at once
VECTORS = 16_384  # vectors compared at once
EDGES = 1 << 20  # edges of a graph added up at once
KNOWN = 262_144  # words whose hashes are remembered
NAMED = 3  # documents that a problem names; more are counted
SAMPLE, MISSED = (
    20,
    5,
)  # vectors whose codes are tried, and how many of them the scan may not propose: it is approximate
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Passages(Protocol):
    """What is read of the truth."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...


@dataclass(slots=True)
class Differences:
    """What is not the same, by kind: the passages with the document each belongs to."""

    index: str
    kinds: dict[str, dict[int, int]] = field(default_factory=dict)
    compared: int = 0

    def add(self, what: str, pids: Iterable[int], dids: Iterable[int]) -> None:
        if own := dict(zip(pids, dids, strict=True)):
            self.kinds.setdefault(what, {}).update(own)

    def add_whole(self, what: str) -> None:
        """What concerns the index and no document."""
        self.kinds[what] = {}

    def without(self, removed: set[int]) -> Differences:
        """Leave out passages that were removed since the index was taken."""
        left = {what: {pid: did for pid, did in own.items() if pid not in removed} for what, own in self.kinds.items()}
        kept = {what: own for what, own in left.items() if own or not self.kinds[what]}
        return Differences(self.index, kept, self.compared)

    def problems(self, ids: Callable[[Sequence[int]], Mapping[int, str]], collection: str) -> list[str]:
        """One sentence a kind, with the first documents it concerns."""
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


def _of_now(found: Differences, truth: Removals, applied: int) -> Differences:
    """Leave out what was removed since the index was taken; all of it where others have compacted the store since:
    what they removed is no longer kept, and the index that was compared is not in use any more."""
    try:
        return found.without({pid for _, pid in truth.removed_after(applied)})
    except PrunedError:
        return Differences(found.index, {}, found.compared)


def _any_removed(truth: Removals) -> bool:
    try:
        return bool(truth.removed_after(0))
    except PrunedError:
        return True


# --- words and trigrams -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldTerms:
    """An index of terms at one moment: a commit on disk, and the tail in memory."""

    name: str
    schema: Any
    searcher: Any
    forward: Forward | None
    disk_pid: int
    tail_pid: int
    tail_removed: int  # the last removal that was applied
    tail: Mapping[int, tuple[int, int, int]]  # pid → did, number of terms, their sum
    removed: frozenset[int]  # passages on disk that are gone


@dataclass(slots=True)
class _Cells:
    """Passages in order, each with its document, its length and the sum of its terms."""

    pids: Ints
    dids: Ints
    lengths: Ints
    sums: Sums

    def at(self, pids: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Where these stand, and which of them are here."""
        if not len(self.pids):
            return np.zeros(len(pids), dtype=np.int64), np.zeros(len(pids), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.pids, pids), len(self.pids) - 1)
        return at, self.pids[at] == pids


def sum_of(terms: Iterable[str]) -> int:
    """The sum of the hashes of distinct terms, modulo 2^64. Only comparable within one process."""
    return sum(map(hash, terms)) & 0xFFFFFFFFFFFFFFFF


def compare_terms(
    held: HeldTerms,
    truth: Passages,
    halves: Callable[[str, str], tuple[list[str], list[str], str]],
    report: Report | None = None,
) -> Differences:
    """``halves`` analyses a title and a text: the items of each, and the line that the index takes."""
    found = Differences(held.name)
    forward = _ForwardCheck(held.forward, found) if held.forward is not None else None
    right, begins = _analysed(held, truth, halves, forward, report)
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
    return _of_now(found, truth, held.tail_removed)


def _analysed(
    held: HeldTerms,
    truth: Passages,
    halves: Callable[[str, str], tuple[list[str], list[str], str]],
    forward: _ForwardCheck | None,
    report: Report | None,
) -> tuple[_Cells, list[str]]:
    """The truth's passages up to the checkpoint, and with which characters their terms begin."""
    pids, dids, lengths, sums = array("q"), array("q"), array("q"), array("Q")
    begins: set[str] = set()
    for batch in _batches(truth, held.tail_pid, report):
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


def _batches(truth: Passages, last: int, report: Report | None) -> Iterator[list[tuple[int, int, str, str]]]:
    """Passages in order, up to ``last``."""
    at, done, total = 0, 0, truth.count_after(0) if report is not None else 0
    while batch := truth.passages_after(at, BATCH):
        at = batch[-1][0]
        wanted = [item for item in batch if item[0] <= last]
        if wanted:
            yield wanted
        done += len(batch)
        if report is not None:
            report(done, max(total, done))
        if at >= last:
            return


def _indexed(held: HeldTerms, found: Differences) -> _Cells:
    """What the index says of its passages, all but their terms; without what is gone."""
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

    Terms that begin as no term of the truth does are not read: who has one has another length than its text.
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

    def __init__(self, forward: Forward, found: Differences) -> None:
        self._forward, self._found = forward, found
        self._hashed: dict[str, bytes] = {}  # an item's terms, 8 bytes each

    def compare(self, analysed: Sequence[tuple[int, list[str], list[str]]], owners: Mapping[int, int]) -> None:
        right = {pid: (self._bytes(title), self._bytes(text)) for pid, title, text in analysed}
        seen: set[int] = set()
        for part in self._forward.taken(np.array(sorted(right), dtype=np.int64)):
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


class VectorTruth(Protocol):
    def vectors_between(self, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...


@dataclass(frozen=True, slots=True)
class HeldVectors:
    """An index of vectors at one moment."""

    name: str
    blocks: tuple[VectorBlock, VectorBlock]  # the snapshot, and the tail
    vid: int
    removed: int
    dim: int


def compare_vectors(held: HeldVectors, truth: VectorTruth, report: Report | None = None) -> Differences:
    """Every row against the truth's vector, in portions; and a sample of the codes."""
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
    try:
        while True:
            vid, numbers, owners, data = truth.vectors_between(vid, held.vid, VECTORS)
            if not numbers:
                break
            found.compared += len(numbers)
            _compare_rows(held, cells, seen, np.array(numbers), np.array(owners), data, found)
            if report is not None:
                report(found.compared, max(len(pids), found.compared))
        _try_codes(base, found)
    except DamagedError as error:
        found.add_whole(str(error))
    found.add("vectors are in the index and not in the store", pids[~seen].tolist(), dids[~seen].tolist())
    return _of_now(found, truth, held.removed)


def _compare_rows(
    held: HeldVectors,
    cells: _Cells,
    seen: npt.NDArray[np.bool_],
    pids: Ints,
    dids: Ints,
    data: bytes,
    found: Differences,
) -> None:
    right = np.frombuffer(data, dtype="<f4").reshape(len(pids), held.dim)
    at, here = cells.at(pids)
    seen[at[here]] = True
    empty = np.einsum("ij,ij->i", right, right) <= 0  # a vector of an empty text is not kept
    missing = ~here & ~empty
    found.add("vectors are missing in the index", pids[missing].tolist(), dids[missing].tolist())
    pids, dids, right, at = pids[here], dids[here], right[here], at[here]
    other = cells.dids[at] != dids
    found.add("vectors stand under another document", pids[other].tolist(), dids[other].tolist())
    mine = _rows(held.blocks, cells.lengths[at], held.dim)
    wrong = (mine.view(np.uint32) != right.astype(np.float32, copy=False).view(np.uint32)).any(axis=1)
    found.add("vectors are not those of their passages", pids[wrong].tolist(), dids[wrong].tolist())


def _rows(blocks: tuple[VectorBlock, VectorBlock], places: Ints, dim: int) -> npt.NDArray[np.float32]:
    base, tail = blocks
    found = np.empty((len(places), dim), dtype=np.float32)
    first = places < len(base)
    order = np.argsort(places[first])  # a file is read forwards
    rows = np.flatnonzero(first)[order]
    found[rows] = base.rows.take(places[rows])
    found[~first] = tail.rows.take(places[~first] - len(base))
    return found


def _try_codes(base: VectorBlock, found: Differences) -> None:
    """The scan over the codes must propose a stored vector when asked for it."""
    rows = np.flatnonzero(base.pids)
    if base.codes is None or not len(rows):
        return
    if len(base.codes) != len(base):
        found.add_whole(f"there are {len(base.codes):,} codes for {len(base):,} vectors")
        return
    sample = rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(np.int64)]
    missed = []
    for row in sample.tolist():
        vector = base.rows.take(np.array([row]))
        proposed, _ = base.codes.likeliest(vector[0], base.codes.wanted(10), None)
        if row not in proposed and not (base.rows.take(proposed) == vector).all(axis=1).any():
            missed.append(row)
    if len(missed) > MISSED:
        found.add("codes are not those of the vectors", base.pids[missed].tolist(), base.dids[missed].tolist())


# --- the graph --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldGraph:
    """The graph at one moment."""

    name: str
    blocks: tuple[Block, Block]  # the snapshot, and the tail
    names: Mapping[int, str]
    pid: int
    removed: int
    stop_words: frozenset[str]


def compare_graph(held: HeldGraph, truth: graphs.Source, report: Report | None = None) -> Differences:
    """The concepts, marks and first passage of every document, the names, and both directions of the edges."""
    found = Differences(held.name)
    whole = Graph(held.blocks, lambda concept: held.names.get(concept, ""))
    dids = [block.dids[block.alive] for block in held.blocks]
    first = dict(zip(np.concatenate(dids).tolist(), _first_passages(held.blocks), strict=True))
    doubtful = _doubtful_names(held.blocks[0], found)
    forms = _Forms(doubtful)
    entries: dict[int, Entry] = {}
    passages: dict[int, int] = {}

    def compare(ready: Sequence[Entry]) -> None:
        right = Block.of(ready)
        found.compared += len(right)
        mine, own = _edge_sums(whole, right.dids), _edge_sums(Graph((right,)), right.dids)
        wrong = (mine != own) | (whole.first_passages(right.dids) != right.pids)
        found.add(
            "documents name other concepts than their text", right.pids[wrong].tolist(), right.dids[wrong].tolist()
        )
        for did in right.dids.tolist():
            first.pop(did, None)

    for batch in _batches(truth, held.pid, report):
        triples = truth.triples_of(sorted({did for _, did, _, _ in batch}))
        graphs.take(batch, triples, held.stop_words, entries, passages, forms)
        last = batch[-1][1]
        compare([entry for did, entry in entries.items() if did != last])
        entries = {last: entries[last]}
        passages = {pid: did for pid, did in passages.items() if did == last}
    compare(list(entries.values()))
    found.add("documents are in the index and not in the store", first.values(), first.keys())
    if any(_back_sum(block) != _forward_sum(block) for block in held.blocks):
        found.add_whole("edges differ between the two directions")
    if not _any_removed(truth):  # else a name may be of a document that is gone
        wrong_names = [value for value, name in doubtful.items() if name not in forms.written.get(value, ())]
        found.add("names are not those of their concepts", *_named_by(held.blocks[0], wrong_names))
    return _of_now(found, truth, held.removed)


class _Forms(dict[int, str]):
    """Takes the place of the graph's names: keeps every way in which some concepts are written."""

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


def _edge_sums(graph: Graph, dids: Ints) -> Sums:
    """A sum for each document over its concepts and marks."""
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
    """Concepts of the snapshot whose name does not tell by itself that it is theirs. One that two documents share must
    have a name."""
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
    """The passages that name these concepts, and their documents."""
    naming = Graph((block,)).naming(np.sort(np.array(concepts, dtype=np.uint64)))
    return naming.pid.tolist(), naming.did.tolist()
