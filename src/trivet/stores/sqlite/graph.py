"""Which documents name which concepts, kept ready to walk?

A projection of the passages: the bulk is a *snapshot* on disk, the rest a tail in memory, both of them ``Block``s. It
knows the last passage and the last removal it has applied and reads what comes after; a snapshot is written under
another name and renamed, so it is whole or absent, and a damaged or foreign one is deleted and made again. Made when a
profile first gives the graph a weight; links, metadata and sessions are no part of it: they are read from the truth
(``ties.py``), since they change without a passage changing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from filelock import Timeout

from trivet import deadline
from trivet.concepts import CONCEPTS_VERSION, Concepts, Triple, concepts, digest, key_of, subjects
from trivet.errors import TrivetError
from trivet.graph.block import ARRAYS, LAST, TITLE, Block, Entry, Graph, Ints, Names, merged, named
from trivet.stores.sqlite import snapshots
from trivet.stores.sqlite.waiting import acquire

if TYPE_CHECKING:
    from trivet.stores.sqlite.comparison import Differences, HeldGraph

TAIL_LIMIT = 1_000  # documents, or passages of few long ones: a third of a second, which a new process would pay
GROWTH = 0.02  # and beside a large snapshot this part of it: the tail is assembled anew with every write
BATCH = 2_000  # passages read from the truth at a time
SLICE = 32  # passages taken between two looks at whether somebody is waiting: some milliseconds
MANY = 20_000  # documents taken in one go before their arrays are made: as Python objects they are ten times as large
WAIT = 600.0  # seconds, for another process that writes a snapshot
PRUNED_TRIES = 3  # times that removals may be pruned by others while the news are read
_FORMAT = 2

Progress = Callable[[int, int], None]


class Source(Protocol):
    """What the projection reads from the truth."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """(seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int: ...

    def pruned(self) -> int: ...

    def newest(self) -> int:
        """The last passage there ever was."""

    def checkpoint(self, name: str) -> dict[str, Any]: ...

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool: ...

    def triples_of(self, dids: Sequence[int]) -> Mapping[int, Sequence[Triple]]:
        """The triples of those documents that have some."""


class GraphIndex:
    def __init__(self, folder: Path, source: Source, identity: str, stop_words: frozenset[str] = frozenset()) -> None:
        self._folder, self._source, self._stop_words = folder, source, stop_words
        self._identity = f"{_FORMAT}/{CONCEPTS_VERSION}/{identity}"
        self._lock = threading.RLock()
        self._seen = -1
        self.deleted: list[str] = []  # what lay on disk and was not used, for ``verify``; until it is made anew
        self._clear()
        self._open()

    def _clear(self) -> None:
        self._base = self._tail = Block.of([])
        self._entries: dict[int, Entry] = {}
        self._passages: dict[int, int] = {}  # pid → did, of the tail
        self._names: dict[int, str] = {}
        self._folded: list[Block] = []  # on their way into the bulk
        self._pid = self._settled = self._left = 0
        self._removed = self._source.last_removed()  # what is read from now on needs none before
        self._graph: Graph | None = None

    # --- catching up --------------------------------------------------------------------------------------------------

    def graph(self, version: int) -> Graph:
        """Everything the truth held when its version number was read."""
        with self._lock:
            self.catch_up(version)
            if self._graph is None:
                names = self._names  # only ever added to, and replaced as a whole
                self._graph = Graph((self._base, self._tail), lambda concept: names.get(concept, ""))
            return self._graph

    @deadline.lifted()
    def catch_up(
        self, version: int, progress: Progress | None = None, give_way: Callable[[], None] | None = None
    ) -> None:
        """``give_way`` is called every few milliseconds: whoever reads in the background need not be in a hurry."""
        with self._lock:
            if version != self._seen:
                self._read_news(progress, give_way)
                self._seen = version
                self.deleted = []

    def is_current(self, version: int) -> bool:
        return version == self._seen

    @property
    def behind(self) -> int:
        """Passages it has not read yet; about so many where it is reading."""
        return self._left if self._left else self._source.count_after(self._pid)

    def is_far_behind(self, passages: int) -> bool:
        """Has it more than so many to read? Row numbers tell mostly, and counting a million rows takes a while."""
        return self._source.newest() - self._pid > passages and self.behind > passages

    def _read_news(self, progress: Progress | None = None, give_way: Callable[[], None] | None = None) -> None:
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
            # read behind the passages, applied before them: a document that was written anew loses its old passages
            # first, and one that went between the two readings is not taken at all
            removed = self._source.removed_after(self._removed)
            gone = {pid for _, pid in removed}
            self._drop(gone)
            self._removed = removed[-1][0] if removed else self._removed
            changed = changed or bool(batch or removed)
            if not batch:
                break
            news = [item for item in batch if item[0] not in gone]
            triples = self._source.triples_of(sorted({did for _, did, _, _ in news}))
            for start in range(0, len(news), SLICE):
                self._take(news[start : start + SLICE], triples)
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
        """Make arrays of the tail, in memory; all but the last document, whose passages may not have been read yet."""
        (last, unfinished) = self._entries.popitem()
        block = Block.of(list(self._entries.values()))
        self._folded.append(named(block, self._names))
        self._entries = {last: unfinished}
        self._passages = {pid: did for pid, did in self._passages.items() if did == last}
        self._names = {value: name for value, name in self._names.items() if value in unfinished.named}

    def _join(self) -> None:
        """What was folded becomes part of the bulk, all at once; a name is written as it was the last time."""
        if self._folded:
            self._base = merged((*reversed(self._folded), self._base), lambda concept: "")
            self._folded = []

    def _take(self, batch: Sequence[tuple[int, int, str, str]], triples: Mapping[int, Sequence[Triple]]) -> None:
        take(batch, triples, self._stop_words, self._entries, self._passages, self._names)

    def _drop(self, pids: set[int]) -> None:
        """A document's passages go together, so its first one tells."""
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
        """Is there much that another process would have to read again?"""
        on_disk = self._settled == self._pid
        return not on_disk and self._loose + (len(self._base) if not self._settled else 0) > max(
            TAIL_LIMIT, GROWTH * len(self._base)
        )

    @property
    def _loose(self) -> int:
        return max(len(self._tail), len(self._passages))

    def settle(self, at_least: int = 0) -> None:
        """Write a new snapshot: seconds at 100k documents, and searches go on meanwhile."""
        with self._lock:
            pid, removed, names = self._pid, self._removed, self._names
            parts = (self._base, self._tail)
            if self._settled == pid or len(self._base) + self._loose < TAIL_LIMIT or self._loose < at_least:
                return
        checkpoint = self._source.checkpoint(self._folder.name)
        whole = merged(parts, lambda concept: names.get(concept, ""))
        with contextlib.suppress(Timeout, OSError):  # another process at it, or no room: the tail serves
            self._save(whole, pid, removed, checkpoint)
            with self._lock:
                self._clear()
                self._open()
                self._read_news()  # what came while the snapshot was written

    @deadline.lifted()
    def rewrite(self) -> None:
        """Write the snapshot anew without removed documents, where there is one; searches go on meanwhile."""
        if not self._folder.exists():
            return
        with self._lock:
            self._read_news()
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
            self._read_news()

    @property
    def applied(self) -> int | None:
        """The last removal that the snapshot on disk has applied; None where there is none."""
        return snapshots.applied(self._folder)

    def discard(self) -> None:
        """Throw the snapshot away; the next catch-up reads the truth again."""
        with self._lock:
            snapshots.discard(self._folder)
            self._clear()
            self._seen = -1

    # --- the snapshot on disk -----------------------------------------------------------------------------------------

    def _save(self, block: Block, pid: int, removed: int, checkpoint: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with acquire(self._folder / "lock", 0):
            if not any(other.name >= _named(pid, removed) for other in snapshots.newest_first(self._folder)):
                self._write(block, pid, removed, checkpoint)  # else another process was here first

    def _write(self, block: Block, pid: int, removed: int, checkpoint: Mapping[str, Any]) -> None:
        """Write a snapshot and delete the others. The lock is held."""
        final = self._folder / _named(pid, removed)
        draft = self._folder / f"draft-{uuid.uuid4().hex}"
        draft.mkdir()
        for name in ARRAYS:
            np.save(draft / f"{name}.npy", getattr(block, name))
        np.save(draft / "names.npy", block.names.text)
        np.save(draft / "ends.npy", block.names.ends)
        sums = snapshots.checksums(draft)
        state = {"identity": self._identity, "pid": pid, "removed": removed, "sums": sums}
        state["checkpoint"] = checkpoint
        (draft / "state.json").write_text(json.dumps(state))
        draft.rename(final)
        snapshots.keep_only(final)

    def _open(self) -> None:
        """Take the newest whole snapshot; delete damaged and foreign ones."""
        for folder in snapshots.newest_first(self._folder):
            try:
                block, state = _load(folder, self._identity)
                if not self._source.knows(self._folder.name, state["checkpoint"]):
                    raise snapshots.ForeignError(folder.name)
                if state["removed"] < self._source.pruned():
                    raise snapshots.PrunedError(folder.name)
            except TrivetError:  # of the truth, which says nothing about the snapshot
                raise
            except Exception as error:
                self.deleted = snapshots.told(self._folder.name, error)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self._base, self._removed = block, state["removed"]
            self._pid = self._settled = state["pid"]
            return

    def problems(self) -> list[str]:
        """Files whose bytes are not those that were written."""
        return snapshots.problems(self._folder)

    @property
    def name(self) -> str:
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the passages of the truth."""
        from trivet.stores.sqlite.comparison import compare_graph

        return compare_graph(self.held(), self._source, report)

    def held(self) -> HeldGraph:
        """What it holds now, for a comparison."""
        from trivet.stores.sqlite.comparison import HeldGraph

        with self._lock:
            names = dict(self._names)
            blocks = (self._base, self._tail)
            return HeldGraph(self._folder.name, blocks, names, self._pid, self._removed, self._stop_words)


def take(
    batch: Sequence[tuple[int, int, str, str]],
    triples: Mapping[int, Sequence[Triple]],
    stop_words: frozenset[str],
    entries: dict[int, Entry],
    passages: dict[int, int],
    names: dict[int, str],
) -> None:
    """Add these passages (pid, did, title, text) to the entries of their documents."""
    for pid, did, title, text in batch:
        known = entries.get(did)
        if known is None or passages.get(pid - 1) != did:  # numbers side by side are of one document
            known = entries[did] = Entry(did, pid, {})
            _name(known, names, subjects(title), TITLE)
            for triple in triples.get(did, ()):
                _name(known, names, {key_of(end): end for end in (triple.subject, triple.object)}, 0)
            if title:
                _name(known, names, concepts(title, stop_words), 0)
        passages[pid] = did
        _name(known, names, concepts(text, stop_words), min(pid - known.pid, LAST))


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
    # names are looked up a few at a time: mapped, they take no memory (and as plain arrays, whose slices are quicker)
    text, ends = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ("names", "ends"))
    names = Names(text.view(np.ndarray), ends.view(np.ndarray))
    return Block.restored(arrays, names), state


def _named(pid: int, removed: int) -> str:
    return f"snapshot-{pid:016d}-{removed:016d}"


def _dropped(block: Block, pids: Ints) -> Block:
    gone = np.isin(block.pids, pids)
    return block.without(set(block.dids[gone].tolist())) if gone.any() else block
