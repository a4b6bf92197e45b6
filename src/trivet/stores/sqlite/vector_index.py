"""The vectors of one model, kept ready to scan.

The records hold the vectors. The index keeps quantized codes of most of them in a *snapshot* on disk and the rest in a
tail in memory. A scan over the codes proposes several times the depth and the exact cosine decides, so no score is
approximate. The vectors of the proposed rows are looked up in the records, from the second search on in a copy in
memory, where they are not too many. A snapshot is written under a temporary name and renamed, so it is complete or
absent; a damaged one is deleted and the records are read again. Very many new vectors are coded as they are read, so
they are never in memory all at once.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from filelock import Timeout

from trivet.concurrency import deadline
from trivet.errors import TrivetError
from trivet.stores.contract import Found
from trivet.stores.indexes import snapshots
from trivet.stores.indexes.file_locks import acquire
from trivet.stores.sqlite import quantized_codes
from trivet.stores.sqlite.half_precision import widened
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.vector_block import (
    HALF,
    Block,
    Filed,
    Floats,
    Halved,
    Part,
    Recorded,
    Room,
    joined,
)
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.stores.indexes.differences import Differences
    from trivet.stores.sqlite.verify_indexes import HeldVectors


SNAPSHOT_FROM = 8_192  # vectors; fewer are read from the records in milliseconds and scanned exactly in under one
GROWTH = 0.1  # share of the snapshot; a larger tail makes a new one: it is scanned exactly, 0.2 ms a thousand vectors
PORTION = 16_384  # vectors read from the records at a time
LOADED = 2_048  # vectors copied into memory at a time: freed memory of a background thread often stays with the process
BULK = 65_536  # vectors; more new ones are coded as they are read
IN_MEMORY = 128_000_000  # bytes of vectors in memory; of more, a query looks up what it compares
ALONE = 1  # searches without a copy in memory, which takes 200 ms for 89,000 vectors: a command asks only once
HIGHEST = 1.01  # a larger cosine means a damaged file
WAIT = 600.0  # seconds, for another process that writes a snapshot
PRUNED_TRIES = 3  # attempts to read what is new while other processes prune removals
_FORMAT = 9
_DRAFT = "vectors"  # the file of the vectors while they are coded


class Source(Protocol):
    """What the index reads from the records (``ChangeFeed``, or a list in a test)."""

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        """Return (last vid, pids, dids, float16 bytes) of the vectors of a model after ``vid``."""

    def vectors_between(self, mid: int, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]: ...

    def vectors_of(self, mid: int, pids: Sequence[int]) -> dict[int, bytes]:
        """Map those of the passages that have a vector to its float16 bytes."""

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int: ...

    def pruned(self) -> int: ...

    def checkpoint(self, name: str) -> dict[str, Any]: ...

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool: ...


class VectorIndex:
    """The vectors of one model in one collection: a snapshot on disk and a tail in memory."""

    def __init__(self, folder: Path, source: Source, dim: int, identity: str = "", mid: int = 0) -> None:
        self._folder, self._source, self._dim, self._identity, self._mid = folder, source, dim, identity, mid
        self._lock = threading.RLock()
        self._seen = -1
        self.deleted: list[str] = []  # what was on disk and could not be used, for ``verify``
        self._clear()
        self._open()

    def _clear(self) -> None:
        self._base, self._tail, self._room = joined([], self._dim), joined([], self._dim), Room(self._dim)
        self._searches = 0  # with the snapshot as it is
        self._vid, self._removed = 0, self._source.last_removed()  # what is read from now on needs no earlier one

    @property
    def size(self) -> int:
        with self._lock:
            return _alive(self._base) + _alive(self._tail)

    def catch_up(self, version: int) -> None:
        """Read everything that the records held at this version."""
        if version != self._seen:
            self._catch_up(version)

    @deadline.lifted()
    def _catch_up(self, version: int) -> None:
        with self._lock:
            if version != self._seen:
                self._read_new()
                self._seen = version
                self.deleted = []

    def _read_new(self) -> None:
        """Read what is new; all of it where another process has pruned removals that were not read yet."""
        for _ in range(PRUNED_TRIES):
            try:
                self._read()
                return
            except snapshots.PrunedError:
                self._clear()
                self._open()
        self._read()

    def _read(self) -> None:
        new: list[Part] = []
        vid, room = self._vid, True
        while True:
            vid, pids, dids, data = self._source.vectors_after(self._mid, vid, PORTION)
            if pids:
                new.append(self._usable(pids, dids, data))
            if len(pids) < PORTION:
                break
            if room and sum(len(part[0]) for part in new) > BULK:
                room = self._stream(new, vid)
                new, vid = (new, vid) if not room else ([], self._vid)
        removed = self._source.removed_after(self._removed)
        if new:
            self._tail = self._room.extended(self._tail, new)
        self._vid = max(vid, self._vid)
        if removed:
            gone = {pid for _, pid in removed}
            self._base, self._tail = _without(self._base, gone), _without(self._tail, gone)
            self._removed = removed[-1][0]

    def _usable(self, pids: list[int], dids: list[int], data: bytes) -> Part:
        fresh = widened(np.frombuffer(data, dtype="<f2")).reshape(len(pids), self._dim)
        usable = np.einsum("ij,ij->i", fresh, fresh) > 0  # the vector of an empty text is zero
        if usable.all():
            return np.asarray(pids, dtype=np.int64), np.asarray(dids, dtype=np.int64), fresh
        kept = np.flatnonzero(usable)
        return np.asarray(pids, dtype=np.int64)[kept], np.asarray(dids, dtype=np.int64)[kept], fresh[kept]

    def _stream(self, new: list[Part], vid: int) -> bool:
        """Write a snapshot of everything, reading from the records meanwhile. False: it cannot be written now."""

        def parts() -> Iterator[Part]:
            nonlocal vid
            yield from self._base.parts()
            yield from self._tail.parts()
            while new:
                yield new.pop(0)
            while True:
                vid, pids, dids, data = self._source.vectors_after(self._mid, vid, PORTION)
                if not pids:
                    return
                yield self._usable(pids, dids, data)

        known = list(new)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with acquire(self._folder / "lock", WAIT):
                self._open(beyond=vid)  # another process may have done the work
                if self._vid < vid:
                    self._snapshot(parts(), lambda: (vid, self._source.checkpoint(self._folder.name)), self._removed)
                    self._open()
        except (Timeout, OSError):  # no space: the vectors stay in memory
            new[:] = known
            return False
        return True

    @property
    def wants_compacting(self) -> bool:
        """Whether the tail is so large that a new snapshot is worth it."""
        return len(self._tail) > max(SNAPSHOT_FROM, GROWTH * len(self._base))

    def compact(self, at_least: int = 0) -> None:
        """Write snapshot and tail to a new snapshot: a second or two for 100k vectors; searches go on meanwhile."""
        with self._lock:
            if len(self._tail) <= at_least or len(self._tail) + len(self._base) <= SNAPSHOT_FROM:
                return
            base, tail, vid, removed = self._base, self._tail, self._vid, self._removed
        checkpoint = self._source.checkpoint(self._folder.name)
        with contextlib.suppress(Timeout, OSError):  # another process does it, or no space: the tail stays
            self._folder.mkdir(parents=True, exist_ok=True)
            with acquire(self._folder / "lock", 0):
                if not any(other.name >= _named(vid, removed) for other in snapshots.newest_first(self._folder)):
                    parts = (part for block in (base, tail) for part in block.parts())
                    self._snapshot(parts, lambda: (vid, checkpoint), removed)
            with self._lock:
                self._open()
                self._read_new()  # what came while the snapshot was written

    @deadline.lifted()
    def rewrite(self) -> None:
        """Rewrite the snapshot without removed vectors, where there is one; searches go on meanwhile."""
        if not self._folder.exists():
            return
        with self._lock:
            self._read_new()
            base, tail, vid, removed = self._base, self._tail, self._vid, self._removed
        checkpoint = self._source.checkpoint(self._folder.name)
        with acquire(self._folder / "lock", WAIT):
            found = snapshots.newest_first(self._folder)
            if found and found[0].name >= _named(vid, removed):
                snapshots.keep_only(found[0])
            elif _alive(base) + _alive(tail) > SNAPSHOT_FROM:
                parts = (part for block in (base, tail) for part in block.parts())
                self._snapshot(parts, lambda: (vid, checkpoint), removed)
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

    def best(self, query: Floats, depth: int, scope: Scope | None) -> list[Found]:
        """Return (cosine, pid, did), one for each document, best first. ``query`` has unit length."""
        with self._lock:
            blocks = [block for block in (self._base, self._tail) if len(block)]
            self._searches += 1
        found = [hit for block in blocks for hit in block.best(query, depth, scope)]
        # no cosine (NaN fails the comparison too): read the records instead of the snapshot
        if len(self._base) and not all(-HIGHEST <= hit[0] <= HIGHEST for hit in found):
            self.discard()
            with self._lock:
                self._read_new()
            return self.best(query, depth, scope)
        if len(blocks) < 2:
            return found
        best: dict[int, Found] = {}
        for hit in sorted(found, key=lambda hit: (-hit[0], hit[2])):
            best.setdefault(hit[2], hit)
            if len(best) == depth:
                break
        return list(best.values())

    @property
    def wants_loading(self) -> bool:
        """Whether a copy of the vectors in memory is worth it: there is a second search, and they are not too many."""
        rows = self._base.rows
        return isinstance(rows, Recorded) and self._searches > ALONE and _bytes(len(rows), self._dim) <= IN_MEMORY

    @deadline.lifted()
    def load(self) -> None:
        """Copy the vectors of the snapshot into memory; searches go on meanwhile."""
        with self._lock:
            rows, last = self._base.rows, self._vid
        if not isinstance(rows, Recorded):
            return
        held = np.zeros((len(rows), self._dim), dtype=HALF)
        order, vid = np.argsort(rows.pids, kind="stable"), 0
        while vid < last:
            vid, pids, _, data = self._source.vectors_after(self._mid, vid, LOADED)
            if not pids:
                break
            at = np.searchsorted(rows.pids, pids, sorter=order)
            places = order[np.minimum(at, len(order) - 1)]
            here = rows.pids[places] == pids
            held[places[here]] = np.frombuffer(data, dtype=HALF).reshape(len(pids), self._dim)[here]
        with self._lock:
            if self._base.rows is rows:  # no other snapshot was opened
                self._base = replace(self._base, rows=Halved(held))

    def is_near(self, version: int, writes: int) -> bool:
        """Tell whether it is up to date but for so many writes."""
        return 0 <= self._seen <= version <= self._seen + writes

    def discard(self) -> None:
        """Delete the snapshot; the next ``catch_up`` reads the records again."""
        with self._lock:
            snapshots.discard(self._folder)
            self._clear()
            self._seen = -1

    # --- the snapshot on disk -----------------------------------------------------------------------------------------

    def _snapshot(self, parts: Iterator[Part], last: Callable[[], tuple[int, dict[str, Any]]], removed: int) -> None:
        """Write a snapshot and delete the others; the caller holds the lock.

        ``last`` returns the last vector and the checkpoint, once all parts are read.
        """
        draft = self._folder / f"draft-{uuid.uuid4().hex}"
        draft.mkdir()
        try:
            pids, dids = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
            with (draft / _DRAFT).open("wb") as file:
                for pid, did, vectors in parts:
                    pids.append(pid)
                    dids.append(did)
                    file.write(vectors.astype(HALF).view(np.uint8).data)  # loses nothing: the records have no more bits
            vid, checkpoint = last()
            np.save(draft / "pids.npy", snapshots.narrowed(numbers := np.concatenate(pids)))
            np.save(draft / "dids.npy", snapshots.narrowed(np.concatenate(dids)))
            rows = Filed(draft / _DRAFT, len(numbers), self._dim)
            with_bytes = _bytes(len(numbers), self._dim) > IN_MEMORY
            coded = quantized_codes.build(rows.take, len(numbers), self._dim, with_bytes)
            (draft / _DRAFT).unlink()
            if coded is not None:
                quantized_codes.save(coded, draft)
            state = {"format": _FORMAT, "identity": self._identity, "dim": self._dim, "vid": vid, "removed": removed}
            state["sums"] = snapshots.checksums(draft)
            state["checkpoint"] = checkpoint
            (draft / "state.json").write_text(json.dumps(state))
            final = self._folder / _named(vid, removed)
            draft.rename(final)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        snapshots.keep_only(final)

    def _open(self, beyond: int = -1) -> None:
        """Open the newest complete snapshot that reaches ``beyond``; delete damaged and foreign ones."""
        for folder in snapshots.newest_first(self._folder):
            if folder.name < _named(beyond, 0):
                return
            try:
                base, state = self._load(folder)
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
            self._base, self._tail, self._room = base, joined([], self._dim), Room(self._dim)
            self._searches = 0
            self._vid = state["vid"]
            self._removed = state["removed"]
            return

    def _load(self, folder: Path) -> tuple[Block, dict[str, Any]]:
        """Load a snapshot; refuse one whose files are not those that were written."""
        if not (folder / "state.json").exists():
            raise snapshots.OutdatedError(f"{folder.name} was being deleted")
        state = json.loads((folder / "state.json").read_text())
        if state["format"] != _FORMAT or state["identity"] != self._identity:
            raise snapshots.OutdatedError(f"{folder.name} is of another kind")
        if folder.name != _named(state["vid"], state["removed"]):
            raise ValueError("state.json is damaged")
        for name, checksum in state["sums"].items():
            if snapshots.checksum(folder / name) != checksum:
                raise ValueError(f"{name} is damaged")
        pids, dids = (np.load(folder / name).astype(np.int64) for name in ("pids.npy", "dids.npy"))
        found = quantized_codes.load(folder)
        if not len(pids) == len(dids) == (len(pids) if found is None else len(found)) or state["dim"] != self._dim:
            raise ValueError("it is not whole")
        return Block(pids, dids, Recorded(pids, self._dim, partial(self._source.vectors_of, self._mid)), found), state

    def problems(self) -> list[str]:
        """Return the files whose bytes are not those that were written."""
        return snapshots.problems(self._folder)

    @property
    def name(self) -> str:
        """The name of its folder, for messages."""
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the vectors of the records."""
        from trivet.stores.sqlite.verify_indexes import compare_vectors

        return compare_vectors(self.held(), self._source, self._mid, report)

    def held(self) -> HeldVectors:
        """Return what it holds now, for a comparison."""
        from trivet.stores.sqlite.verify_indexes import HeldVectors

        with self._lock:
            return HeldVectors(self._folder.name, (self._base, self._tail), self._vid, self._removed, self._dim)


def _bytes(count: int, dim: int) -> int:
    """Return the size of so many vectors in memory."""
    return np.dtype(HALF).itemsize * count * dim


def _named(vid: int, removed: int) -> str:
    return f"snapshot-{max(vid, 0):016d}-{removed:016d}"


def _alive(block: Block) -> int:
    return int(np.count_nonzero(block.pids))


def _without(block: Block, pids: set[int]) -> Block:
    """Return the block without these passages; the old one stays, because another thread may scan it."""
    changed = replace(block)
    changed.remove(pids)
    return changed
