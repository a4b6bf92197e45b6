"""The graph index: which documents mention which concepts.

Most of it is a *snapshot* on disk, the rest a tail in memory, both of them ``Block``s. The index knows the last passage
and the last removal it has applied and reads what comes after. A snapshot is written under another name and renamed, so
it is complete or absent; a damaged or foreign one is deleted and made again. The index is made when a profile first
gives the graph a weight. Links, sessions and metadata are not in it: they change without any passage changing, so each
store reads them from its records.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from filelock import Timeout

from trivet.concurrency import deadline
from trivet.errors import TrivetError
from trivet.graph.mentions import ARRAYS, LAST, TITLE, WIDE, Block, Entry, Ints, MentionGraph, Names, merged, named
from trivet.stores.indexes import snapshots
from trivet.stores.indexes.file_locks import acquire
from trivet.text.concepts import CONCEPTS_VERSION, Concepts, Triple, concepts, digest, key_of, subjects
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.stores.indexes.differences import Differences, HeldGraph

TAIL_LIMIT = 1_000  # documents, or passages of few long ones: a new process reads them in a third of a second
GROWTH = 0.02  # share of a large snapshot that the tail may have: the tail is assembled again with every write
BATCH = 2_000  # passages read from the records at a time
SLICE = 32  # passages between two calls of ``give_way``: some milliseconds
MANY = 20_000  # documents held as Python objects, which are ten times as large as arrays
WAIT = 600.0  # seconds, for another process that writes a snapshot
PRUNED_TRIES = 3  # attempts to read what is new while other processes prune removals
_FORMAT = 2


class Source(Protocol):
    """What the index reads from the records of a store."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """Return (pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int: ...

    def pruned(self) -> int: ...

    def newest(self) -> int:
        """Return the number of the last passage there ever was."""

    def checkpoint(self, name: str) -> dict[str, Any]: ...

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool: ...

    def triples_of(self, dids: Sequence[int]) -> Mapping[int, Sequence[Triple]]:
        """Map the documents that have triples to them."""


class GraphIndex:
    """The mentions in one collection: a snapshot on disk and a tail in memory."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        identity: str,
        stop_words: frozenset[str] = frozenset(),
        step: int = 1,
    ) -> None:
        """``step`` is the distance between the numbers of two passages that follow each other in a document."""
        self._folder, self._source, self._stop_words, self._step = folder, source, stop_words, step
        self._identity = f"{_FORMAT}/{CONCEPTS_VERSION}/{identity}"
        self._lock = threading.RLock()
        self._seen = -1
        self.deleted: list[str] = []  # what was on disk and could not be used, for ``verify``
        self._clear()
        self._open()

    def _clear(self) -> None:
        self._base = self._tail = Block.of([])
        self._entries: dict[int, Entry] = {}
        self._passages: dict[int, int] = {}  # document by passage, of the tail
        self._names: dict[int, str] = {}
        self._folded: list[Block] = []  # arrays that are not part of the base yet
        self._pid = self._settled = self._left = 0
        self._removed = self._source.last_removed()  # what is read from now on needs no earlier one
        self._graph: MentionGraph | None = None

    # --- updates ------------------------------------------------------------------------------------------------------

    def graph(self, version: int) -> MentionGraph:
        """Return the mentions that the records held at this version."""
        with self._lock:
            self.catch_up(version)
            if self._graph is None:
                names = self._names  # only ever added to, and replaced as a whole
                self._graph = MentionGraph((self._base, self._tail), lambda concept: names.get(concept, ""), self._step)
            return self._graph

    @deadline.lifted()
    def catch_up(
        self, version: int, progress: Progress | None = None, give_way: Callable[[], None] | None = None
    ) -> None:
        """Read what is new; call ``give_way`` every few milliseconds, so that searches go first."""
        with self._lock:
            if version != self._seen:
                self._read_new(progress, give_way)
                self._seen = version
                self.deleted = []

    def is_current(self, version: int) -> bool:
        return version == self._seen

    @property
    def behind(self) -> int:
        """How many passages it has not read yet; roughly, while it is reading."""
        return self._left if self._left else self._source.count_after(self._pid)

    def is_far_behind(self, passages: int) -> bool:
        """Tell whether it has more than so many to read; by their numbers first, because counting takes long."""
        return self._source.newest() - self._pid > passages and self.behind > passages

    def _read_new(self, progress: Progress | None = None, give_way: Callable[[], None] | None = None) -> None:
        """Read what is new; all of it where another process has pruned removals that were not read yet."""
        for _ in range(PRUNED_TRIES):
            try:
                self._read(progress, give_way)
                return
            except snapshots.PrunedError:
                self._clear()
                self._open()
        self._read(progress, give_way)

    def _read(self, progress: Progress | None, give_way: Callable[[], None] | None) -> None:
        total, done, changed = self._source.count_after(self._pid), 0, False
        while True:
            batch = self._source.passages_after(self._pid, BATCH)
            # read after the passages, applied before them: a rewritten document loses its old passages first, and one
            # that was deleted between the two reads is not taken at all
            removed = self._source.removed_after(self._removed)
            gone = {pid for _, pid in removed}
            self._drop(gone)
            self._removed = removed[-1][0] if removed else self._removed
            changed = changed or bool(batch or removed)
            if not batch:
                break
            fresh = [item for item in batch if item[0] not in gone]
            triples = self._source.triples_of(sorted({did for _, did, _, _ in fresh}))
            for start in range(0, len(fresh), SLICE):
                self._take(fresh[start : start + SLICE], triples)
                if give_way is not None:
                    give_way()
            self._pid = batch[-1][0]
            done += len(batch)
            self._left = max(0, total - done)
            if progress:
                progress(done, total)
            if len(self._entries) > MANY:
                self._fold()
        self._left = 0
        self._join()
        if changed:
            self._tail = Block.of(list(self._entries.values()))
            self._graph = None

    def _fold(self) -> None:
        """Make arrays of the tail, except for the last document, whose passages may not all have been read."""
        (last, unfinished) = self._entries.popitem()
        block = Block.of(list(self._entries.values()))
        self._folded.append(named(block, self._names))
        self._entries = {last: unfinished}
        self._passages = {pid: did for pid, did in self._passages.items() if did == last}
        self._names = {value: name for value, name in self._names.items() if value in unfinished.named}

    def _join(self) -> None:
        """Merge the folded arrays into the base; a name is spelled as it was the last time."""
        if self._folded:
            self._base = merged((*reversed(self._folded), self._base), lambda concept: "")
            self._folded = []

    def _take(self, batch: Sequence[tuple[int, int, str, str]], triples: Mapping[int, Sequence[Triple]]) -> None:
        take(batch, triples, self._stop_words, self._entries, self._passages, self._names, self._step)

    def _drop(self, pids: set[int]) -> None:
        """Remove documents by their first passage: the passages of a document are removed together."""
        for pid in pids:
            did = self._passages.pop(pid, None)
            if did is not None and (entry := self._entries.get(did)) is not None and pid == entry.pid:
                del self._entries[did]
        if pids:
            wanted = np.fromiter(pids, dtype=np.int64, count=len(pids))
            self._base = _dropped(self._base, wanted)
            self._folded = [_dropped(block, wanted) for block in self._folded]

    @property
    def wants_settling(self) -> bool:
        """Whether another process would have much to read again."""
        on_disk = self._settled == self._pid
        return not on_disk and self._loose + (len(self._base) if not self._settled else 0) > max(
            TAIL_LIMIT, GROWTH * len(self._base)
        )

    @property
    def _loose(self) -> int:
        return max(len(self._tail), len(self._passages))

    def settle(self, at_least: int = 0) -> None:
        """Write a new snapshot: seconds for 100k documents; searches go on meanwhile."""
        with self._lock:
            pid, removed, names = self._pid, self._removed, self._names
            parts = (self._base, self._tail)
            if self._settled == pid or len(self._base) + self._loose < TAIL_LIMIT or self._loose < at_least:
                return
        checkpoint = self._source.checkpoint(self._folder.name)
        whole = merged(parts, lambda concept: names.get(concept, ""))
        with contextlib.suppress(Timeout, OSError):  # another process does it, or no space: the tail stays
            self._save(whole, pid, removed, checkpoint)
            with self._lock:
                self._clear()
                self._open()
                self._read_new()  # what came while the snapshot was written

    @deadline.lifted()
    def rewrite(self) -> None:
        """Rewrite the snapshot without removed documents, where there is one; searches go on meanwhile."""
        if not self._folder.exists():
            return
        with self._lock:
            self._read_new()
            pid, removed, names, parts = self._pid, self._removed, self._names, (self._base, self._tail)
        checkpoint = self._source.checkpoint(self._folder.name)
        with acquire(self._folder / "lock", WAIT):
            found = snapshots.newest_first(self._folder)
            if found and found[0].name >= _named(pid, removed):
                snapshots.keep_only(found[0])
            elif found and (whole := merged(parts, lambda concept: names.get(concept, ""))):
                self._write(whole, pid, removed, checkpoint)
            else:
                snapshots.delete_all(self._folder)
        with self._lock:
            self._clear()
            self._open()
            self._read_new()

    @property
    def applied(self) -> int | None:
        """The last removal that the snapshot on disk has applied; None where there is no snapshot."""
        return snapshots.applied(self._folder)

    def discard(self) -> None:
        """Delete the snapshot; the next ``catch_up`` reads the records again."""
        with self._lock:
            snapshots.discard(self._folder)
            self._clear()
            self._seen = -1

    # --- the snapshot on disk -----------------------------------------------------------------------------------------

    def _save(self, block: Block, pid: int, removed: int, checkpoint: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with acquire(self._folder / "lock", 0):
            if not any(other.name >= _named(pid, removed) for other in snapshots.newest_first(self._folder)):
                self._write(block, pid, removed, checkpoint)  # else another process was first

    def _write(self, block: Block, pid: int, removed: int, checkpoint: Mapping[str, Any]) -> None:
        """Write a snapshot and delete the others; the caller holds the lock."""
        final = self._folder / _named(pid, removed)
        draft = self._folder / f"draft-{uuid.uuid4().hex}"
        draft.mkdir()
        for name in ARRAYS:
            column = getattr(block, name)
            np.save(draft / f"{name}.npy", snapshots.narrowed(column) if column.dtype == np.int64 else column)
        np.save(draft / "names.npy", block.names.text)
        np.save(draft / "ends.npy", block.names.ends)
        sums = snapshots.checksums(draft)
        state = {"identity": self._identity, "pid": pid, "removed": removed, "sums": sums}
        state["checkpoint"] = checkpoint
        (draft / "state.json").write_text(json.dumps(state))
        draft.rename(final)
        snapshots.keep_only(final)

    def _open(self) -> None:
        """Open the newest complete snapshot; delete damaged and foreign ones."""
        for folder in snapshots.newest_first(self._folder):
            try:
                block, state = _load(folder, self._identity)
                if not self._source.knows(self._folder.name, state["checkpoint"]):
                    raise snapshots.ForeignError(folder.name)
                if state["removed"] < self._source.pruned():
                    raise snapshots.PrunedError(folder.name)
            except TrivetError:  # of the records: it says nothing about the snapshot
                raise
            except Exception as error:
                self.deleted = snapshots.deletion_message(folder, error)
                snapshots.delete(folder)
                continue
            self._base, self._removed = block, state["removed"]
            self._pid = self._settled = state["pid"]
            return

    def problems(self) -> list[str]:
        """Return the files whose bytes are not those that were written."""
        return snapshots.problems(self._folder)

    @property
    def name(self) -> str:
        """The name of its folder, for messages."""
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the passages of the records."""
        from trivet.stores.indexes.differences import compare_graph

        return compare_graph(self.held(), self._source, report)

    def held(self) -> HeldGraph:
        """Return what it holds now, for a comparison."""
        from trivet.stores.indexes.differences import HeldGraph

        with self._lock:
            names = dict(self._names)
            blocks = (self._base, self._tail)
            return HeldGraph(self._folder.name, blocks, names, self._pid, self._removed, self._stop_words, self._step)


def take(
    batch: Sequence[tuple[int, int, str, str]],
    triples: Mapping[int, Sequence[Triple]],
    stop_words: frozenset[str],
    entries: dict[int, Entry],
    passages: dict[int, int],
    names: dict[int, str],
    step: int = 1,
) -> None:
    """Add these passages (pid, did, title, text) to the entries of their documents."""
    for pid, did, title, text in batch:
        known = entries.get(did)
        if known is None or passages.get(pid - step) != did:  # passages with consecutive numbers are of one document
            known = entries[did] = Entry(did, pid, {})
            _name(known, names, subjects(title), TITLE)
            for triple in triples.get(did, ()):
                _name(known, names, {key_of(end): end for end in (triple.subject, triple.object)}, 0)
            if title:
                _name(known, names, concepts(title, stop_words), 0)
        passages[pid] = did
        _name(known, names, concepts(text, stop_words), min((pid - known.pid) // step, LAST))


def _name(entry: Entry, names: dict[int, str], found: Concepts, mark: int) -> None:
    for key, written in found.items():
        value = digest(key)
        entry.named.setdefault(value, mark)
        names.setdefault(value, written)


def _load(folder: Path, identity: str) -> tuple[Block, dict[str, Any]]:
    if not (folder / "state.json").exists():
        raise snapshots.OutdatedError(f"{folder.name} was being deleted")
    state = json.loads((folder / "state.json").read_text())
    if state["identity"] != identity:
        raise snapshots.OutdatedError(f"{folder.name} is of another kind")
    if folder.name != _named(state["pid"], state["removed"]):
        raise ValueError("state.json is damaged")
    for name, checksum in state["sums"].items():
        if snapshots.checksum(folder / name) != checksum:
            raise ValueError(f"{name} is damaged")
    arrays = {name: np.load(folder / f"{name}.npy") for name in ARRAYS}
    arrays |= {name: arrays[name].astype(np.int64) for name in WIDE}
    # names are looked up a few at a time: mapped, they take no memory; plain arrays have faster slices
    text, ends = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ("names", "ends"))
    names = Names(text.view(np.ndarray), ends.view(np.ndarray))
    return Block.restored(arrays, names), state


def _named(pid: int, removed: int) -> str:
    return f"snapshot-{pid:016d}-{removed:016d}"


def _dropped(block: Block, pids: Ints) -> Block:
    gone = np.isin(block.pids, pids)
    return block.without(set(block.dids[gone].tolist())) if gone.any() else block
