"""The vectors of one model, kept ready to scan.

The records hold the vectors. The index keeps most of them in a *snapshot* on disk (with quantized codes for faiss) and
the rest in a tail in memory. A scan over the codes proposes several times the depth and the exact cosine decides, so no
score is approximate. A snapshot is written under a temporary name and renamed, so it is complete or absent; a damaged
one is deleted and the records are read again. Very many new vectors are copied to a snapshot in portions, so they are
never in memory all at once.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
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
    DamagedError,
    Filed,
    Floats,
    Held,
    Part,
    Room,
    Rows,
    Sums,
    joined,
    row_sums,
)
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.stores.indexes.differences import Differences
    from trivet.stores.sqlite.verify_indexes import HeldVectors


SNAPSHOT_FROM = 8_192  # vectors; fewer are read from the records in milliseconds and scanned exactly in under one
GROWTH = 0.1  # share of the snapshot; a larger tail makes a new one: it is scanned exactly, 0.2 ms a thousand vectors
PORTION = 16_384  # vectors read from the records at a time
BULK = 65_536  # vectors; more new ones are written to disk as they are read
IN_MEMORY = 256_000_000  # bytes of vectors in memory; more stay in their file, and a query reads what it compares
HIGHEST = 1.01  # a larger cosine means a damaged file
WAIT = 600.0  # seconds, for another process that writes a snapshot
PRUNED_TRIES = 3  # attempts to read what is new while other processes prune removals
_FORMAT, _WIDE_FORMAT = 8, 7
_VECTORS, _SUMS = "vectors.f16", "sums.npy"
_STORED = {_FORMAT: (_VECTORS, HALF), _WIDE_FORMAT: ("vectors.f32", "<f4")}  # by format: the file, and its numbers


class Source(Protocol):
    """What the index reads from the records (``ChangeFeed``, or a list in a test)."""

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        """Return (last vid, pids, dids, float16 bytes) of the vectors of a model after ``vid``."""

    def vectors_between(self, mid: int, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]: ...

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
                try:
                    self._read_new()
                except DamagedError:  # met while the old snapshot was copied into a new one
                    self.discard()
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
            try:
                with acquire(self._folder / "lock", 0):
                    if not any(other.name >= _named(vid, removed) for other in snapshots.newest_first(self._folder)):
                        parts = (part for block in (base, tail) for part in block.parts())
                        self._snapshot(parts, lambda: (vid, checkpoint), removed)
            except DamagedError:  # of the old snapshot
                self.discard()
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
            if found and found[0].name >= _named(vid, removed) and (found[0] / _VECTORS).exists():
                snapshots.keep_only(found[0])
            elif found and _alive(base) + _alive(tail) > SNAPSHOT_FROM:
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
        try:
            found = [hit for block in blocks for hit in block.best(query, depth, scope)]
            damaged = bool(len(self._base)) and not all(-HIGHEST <= hit[0] <= HIGHEST for hit in found)
        except DamagedError:
            damaged = True
        if damaged:  # or no cosine (NaN fails the comparison too): read the records instead of the snapshot
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
            sums: list[Sums] = [np.zeros(0, dtype=np.uint64)]
            with (draft / _VECTORS).open("wb") as file:
                for pid, did, vectors in parts:
                    pids.append(pid)
                    dids.append(did)
                    stored = vectors.astype("<f2")  # loses nothing: the records have no more bits
                    sums.append(row_sums(stored))
                    file.write(stored.view(np.uint8).data)
            vid, checkpoint = last()
            np.save(draft / "pids.npy", numbers := np.concatenate(pids))
            np.save(draft / "dids.npy", np.concatenate(dids))
            np.save(draft / _SUMS, np.concatenate(sums))
            rows = _rows(draft / _VECTORS, np.concatenate(sums), self._dim)
            coded = quantized_codes.build(rows.take, len(numbers), self._dim, isinstance(rows, Filed))
            if coded is not None:
                quantized_codes.save(coded, draft)
            state = {"format": _FORMAT, "identity": self._identity, "vid": vid, "removed": removed}
            state["sums"] = snapshots.checksums(draft)
            state["checkpoint"] = checkpoint
            (draft / "state.json").write_text(json.dumps(state))
            final = self._folder / _named(vid, removed)
            if final.exists():  # the same vectors with 32 bits a number
                final.rename(draft.with_name(f"{draft.name}-old"))
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
                base, state = _load(folder, self._dim, self._identity)
                if not self._source.knows(self._folder.name, state["checkpoint"]):
                    raise snapshots.ForeignError(folder.name)
                if state["removed"] < self._source.pruned():
                    raise snapshots.PrunedError(folder.name)
            except TrivetError:  # of the records: it says nothing about the snapshot
                raise
            except Exception as error:
                self.deleted = snapshots.deletion_message(self._folder.name, error)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self._base, self._tail, self._room = base, joined([], self._dim), Room(self._dim)
            self._vid = state["vid"]
            self._removed = state["removed"]
            return

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


def _load(folder: Path, dim: int, identity: str) -> tuple[Block, dict[str, Any]]:
    """Load a snapshot; refuse one whose files are not those that were written.

    Vectors in memory are compared with their checksums here, those that stay in their file when they are read.
    """
    if not (folder / "state.json").exists():
        raise snapshots.OutdatedError(f"{folder.name} was being deleted")
    state = json.loads((folder / "state.json").read_text())
    if state["format"] not in _STORED or state["identity"] != identity:
        raise snapshots.OutdatedError(f"{folder.name} is of another kind")
    vectors, stored = _STORED[state["format"]]
    if folder.name != _named(state["vid"], state["removed"]):
        raise ValueError("state.json is damaged")
    for name, checksum in state["sums"].items():
        if name != vectors and snapshots.checksum(folder / name) != checksum:
            raise ValueError(f"{name} is damaged")
    pids, dids, sums = (np.load(folder / name) for name in ("pids.npy", "dids.npy", _SUMS))
    found = quantized_codes.load(folder)
    coded = len(pids) if found is None else len(found)
    size = np.dtype(stored).itemsize * dim * len(pids)
    if not len(pids) == len(dids) == len(sums) == coded or (folder / vectors).stat().st_size != size:
        raise ValueError("it is not whole")
    return Block(pids, dids, _rows(folder / vectors, sums, dim, stored), found), state


def _rows(path: Path, sums: Sums, dim: int, stored: str = HALF) -> Rows:
    if 4 * len(sums) * dim > IN_MEMORY:
        return Filed(path, sums, dim, stored)
    held = np.empty((len(sums), dim), dtype=np.float32)
    with path.open("rb") as file:
        for start in range(0, len(sums), quantized_codes.SLICE):  # a part fits into the caches of a core
            part = held[start : start + quantized_codes.SLICE]
            rows = np.fromfile(file, dtype=stored, count=part.size).reshape(part.shape)
            if not np.array_equal(row_sums(rows), sums[start : start + len(part)]):
                raise DamagedError(f"{path.name} is damaged")
            part[:] = widened(rows.astype(HALF, copy=False))
    return Held(held)


def _named(vid: int, removed: int) -> str:
    return f"snapshot-{max(vid, 0):016d}-{removed:016d}"


def _alive(block: Block) -> int:
    return int(np.count_nonzero(block.pids))


def _without(block: Block, pids: set[int]) -> Block:
    """Return the block without these passages; the old one stays, because another thread may scan it."""
    changed = replace(block)
    changed.remove(pids)
    return changed
