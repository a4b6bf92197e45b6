"""Which passages mean something like this?

Vectors live in the truth; this projection keeps them ready to scan. The bulk is a *snapshot* on disk (the vectors, and
codes of them for faiss), the rest a tail in memory. A scan over the codes proposes several times the depth and the
exact cosine decides, so scores are never approximate. A snapshot is written under a temporary name and renamed, so it
is whole or absent; a damaged one is deleted and read again from the truth. Very many vectors at once go from the truth
to a snapshot in portions: they are never in memory all together.
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

from trivet import deadline
from trivet.errors import TrivetError
from trivet.stores.sqlite import codes, snapshots
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.tail import Found
from trivet.stores.sqlite.vectors import (
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
from trivet.stores.sqlite.waiting import acquire

if TYPE_CHECKING:
    from trivet.stores.sqlite.comparison import Differences, HeldVectors

Progress = Callable[[int, int], None]

SNAPSHOT_FROM = 8_192  # vectors; below this reading the truth takes milliseconds and an exact scan under one
GROWTH = 0.1  # a tail this large beside its snapshot makes a new one: the tail is scanned exactly, at 0.2 ms a thousand
PORTION = 16_384  # vectors read from the truth at a time
BULK = 65_536  # vectors; more that are new at once go to disk as they are read
IN_MEMORY = 256_000_000  # bytes of vectors read at once; more stay in their file, and each query reads what it compares
HIGHEST = 1.01  # a cosine beyond this is a damaged file
WAIT = 600.0  # seconds, for another process that writes a snapshot of what would not fit in memory
PRUNED_TRIES = 3  # times that removals may be pruned by others while the news are read
_FORMAT = 7
_VECTORS, _SUMS = "vectors.f32", "sums.npy"


class Source(Protocol):
    """What the projection reads from the truth."""

    def vectors_after(self, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        """(last vid, pids, dids, float32 bytes) of the vectors after ``vid``; so many at most."""

    def vectors_between(self, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """(seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int: ...

    def pruned(self) -> int: ...

    def checkpoint(self, name: str) -> dict[str, Any]: ...

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool: ...


class VectorIndex:
    def __init__(self, folder: Path, source: Source, dim: int, identity: str = "") -> None:
        self._folder, self._source, self._dim, self._identity = folder, source, dim, identity
        self._lock = threading.RLock()
        self._seen = -1
        self.deleted: list[str] = []  # what lay on disk and was not used, for ``verify``; until it is made anew
        self._clear()
        self._open()

    def _clear(self) -> None:
        self._base, self._tail, self._room = joined([], self._dim), joined([], self._dim), Room(self._dim)
        self._vid, self._removed = 0, self._source.last_removed()  # what is read from now on needs none before

    @property
    def size(self) -> int:
        with self._lock:
            return _alive(self._base) + _alive(self._tail)

    @deadline.lifted()
    def catch_up(self, version: int) -> None:
        with self._lock:
            if version != self._seen:
                try:
                    self._read_news()
                except DamagedError:  # met while the old snapshot was copied into a new one
                    self.discard()
                    self._read_news()
                self._seen = version
                self.deleted = []

    def _read_news(self) -> None:
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
        news: list[Part] = []
        vid, room = self._vid, True
        while True:
            vid, pids, dids, data = self._source.vectors_after(vid, PORTION)
            if pids:
                news.append(self._usable(pids, dids, data))
            if len(pids) < PORTION:
                break
            if room and sum(len(part[0]) for part in news) > BULK:
                room = self._stream(news, vid)
                news, vid = (news, vid) if not room else ([], self._vid)
        removed = self._source.removed_after(self._removed)
        if news:
            self._tail = self._room.extended(self._tail, news)
        self._vid = max(vid, self._vid)
        if removed:
            gone = {pid for _, pid in removed}
            self._base, self._tail = _without(self._base, gone), _without(self._tail, gone)
            self._removed = removed[-1][0]

    def _usable(self, pids: list[int], dids: list[int], data: bytes) -> Part:
        fresh = np.frombuffer(data, dtype="<f4").reshape(len(pids), self._dim)
        usable = np.einsum("ij,ij->i", fresh, fresh) > 0  # an empty text has no meaning to be near to
        if usable.all():
            return np.asarray(pids, dtype=np.int64), np.asarray(dids, dtype=np.int64), fresh.astype("f4", copy=False)
        kept = np.flatnonzero(usable)
        return np.asarray(pids, dtype=np.int64)[kept], np.asarray(dids, dtype=np.int64)[kept], fresh[kept]

    def _stream(self, news: list[Part], vid: int) -> bool:
        """A snapshot of all there is, those in the truth read as they are written. False: it cannot be written now."""

        def parts() -> Iterator[Part]:
            nonlocal vid
            yield from self._base.parts()
            yield from self._tail.parts()
            while news:
                yield news.pop(0)
            while True:
                vid, pids, dids, data = self._source.vectors_after(vid, PORTION)
                if not pids:
                    return
                yield self._usable(pids, dids, data)

        known = list(news)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with acquire(self._folder / "lock", WAIT):
                self._open(beyond=vid)  # another process may have done the work
                if self._vid < vid:
                    self._snapshot(parts(), lambda: (vid, self._source.checkpoint(self._folder.name)), self._removed)
                    self._open()
        except (Timeout, OSError):  # no room: then it is held
            news[:] = known
            return False
        return True

    @property
    def wants_compacting(self) -> bool:
        return len(self._tail) > max(SNAPSHOT_FROM, GROWTH * len(self._base))

    def compact(self, at_least: int = 0) -> None:
        """Fold the tail into a new snapshot: a second or two at 100k vectors, and searches go on meanwhile."""
        with self._lock:
            if len(self._tail) <= at_least or len(self._tail) + len(self._base) <= SNAPSHOT_FROM:
                return
            base, tail, vid, removed = self._base, self._tail, self._vid, self._removed
        checkpoint = self._source.checkpoint(self._folder.name)
        with contextlib.suppress(Timeout, OSError):  # another process at it, or no room: the tail serves
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
                self._read_news()  # what came while the snapshot was written

    @deadline.lifted()
    def rewrite(self) -> None:
        """Write the snapshot anew without removed vectors, where there is one; searches go on meanwhile."""
        if not self._folder.exists():
            return
        with self._lock:
            self._read_news()
            base, tail, vid, removed = self._base, self._tail, self._vid, self._removed
        checkpoint = self._source.checkpoint(self._folder.name)
        with acquire(self._folder / "lock", WAIT):
            found = snapshots.newest_first(self._folder)
            if found and found[0].name >= _named(vid, removed):
                snapshots.keep_only(found[0])
            elif found and _alive(base) + _alive(tail) > SNAPSHOT_FROM:
                parts = (part for block in (base, tail) for part in block.parts())
                self._snapshot(parts, lambda: (vid, checkpoint), removed)
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

    def best(self, query: Floats, depth: int, scope: Scope | None) -> list[Found]:
        """(cosine, pid, did), one per document, best first. ``query`` has unit length."""
        with self._lock:
            blocks = [block for block in (self._base, self._tail) if len(block)]
        try:
            found = [hit for block in blocks for hit in block.best(query, depth, scope)]
            damaged = bool(len(self._base)) and not all(-HIGHEST <= hit[0] <= HIGHEST for hit in found)
        except DamagedError:
            damaged = True
        if damaged:  # or no cosine (NaN fails the comparison too): the truth is read in the snapshot's place
            self.discard()
            with self._lock:
                self._read_news()
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
        """Has it caught up but for so many?"""
        return 0 <= self._seen <= version <= self._seen + writes

    def discard(self) -> None:
        """Throw the snapshot away; the next catch-up reads the truth again."""
        with self._lock:
            snapshots.discard(self._folder)
            self._clear()
            self._seen = -1

    # --- the snapshot on disk -----------------------------------------------------------------------------------------

    def _snapshot(self, parts: Iterator[Part], last: Callable[[], tuple[int, dict[str, Any]]], removed: int) -> None:
        """Write one and delete the others. The lock is held. ``last`` says up to which vector, and at which checkpoint,
        once all are read."""
        draft = self._folder / f"draft-{uuid.uuid4().hex}"
        draft.mkdir()
        try:
            pids, dids = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
            sums: list[Sums] = [np.zeros(0, dtype=np.uint64)]
            with (draft / _VECTORS).open("wb") as file:
                for pid, did, vectors in parts:
                    pids.append(pid)
                    dids.append(did)
                    sums.append(row_sums(vectors))
                    file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            vid, checkpoint = last()
            np.save(draft / "pids.npy", numbers := np.concatenate(pids))
            np.save(draft / "dids.npy", np.concatenate(dids))
            np.save(draft / _SUMS, np.concatenate(sums))
            rows = _rows(draft / _VECTORS, np.concatenate(sums), self._dim)
            coded = codes.made(rows.take, len(numbers), self._dim, isinstance(rows, Filed))
            if coded is not None:
                codes.save(coded, draft)
            state = {"format": _FORMAT, "identity": self._identity, "vid": vid, "removed": removed}
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
        """Take the newest whole snapshot; delete damaged and foreign ones. None that ends before ``beyond``."""
        for folder in snapshots.newest_first(self._folder):
            if folder.name < _named(beyond, 0):
                return
            try:
                base, state = _load(folder, self._dim, self._identity)
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
            self._base, self._tail, self._room = base, joined([], self._dim), Room(self._dim)
            self._vid = state["vid"]
            self._removed = state["removed"]
            return

    def problems(self) -> list[str]:
        """Files whose bytes are not those that were written."""
        return snapshots.problems(self._folder)

    @property
    def name(self) -> str:
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the vectors of the truth."""
        from trivet.stores.sqlite.comparison import compare_vectors

        return compare_vectors(self.held(), self._source, report)

    def held(self) -> HeldVectors:
        """What it holds now, for a comparison."""
        from trivet.stores.sqlite.comparison import HeldVectors

        with self._lock:
            return HeldVectors(self._folder.name, (self._base, self._tail), self._vid, self._removed, self._dim)


def _load(folder: Path, dim: int, identity: str) -> tuple[Block, dict[str, Any]]:
    """A snapshot whose files are those that were written.

    Vectors that are held are compared with their sums here; those that stay in their file, when they are read.
    """
    if not (folder / "state.json").exists():
        raise snapshots.OutdatedError(f"{folder.name} was being deleted")
    state = json.loads((folder / "state.json").read_text())
    if state["format"] != _FORMAT or state["identity"] != identity:
        raise snapshots.OutdatedError(f"{folder.name} is of another kind")
    if folder.name != _named(state["vid"], state["removed"]):
        raise ValueError("state.json is damaged")
    for name, checksum in state["sums"].items():
        if name != _VECTORS and snapshots.checksum(folder / name) != checksum:
            raise ValueError(f"{name} is damaged")
    pids, dids, sums = (np.load(folder / name) for name in ("pids.npy", "dids.npy", _SUMS))
    found = codes.load(folder)
    coded = len(pids) if found is None else len(found)
    if not len(pids) == len(dids) == len(sums) == coded or (folder / _VECTORS).stat().st_size != 4 * dim * len(pids):
        raise ValueError("it is not whole")
    return Block(pids, dids, _rows(folder / _VECTORS, sums, dim), found), state


def _rows(path: Path, sums: Sums, dim: int) -> Rows:
    if 4 * len(sums) * dim > IN_MEMORY:
        return Filed(path, sums, dim)
    held = np.fromfile(path, dtype="<f4").reshape(len(sums), dim).astype(np.float32, copy=False)
    if not np.array_equal(row_sums(held), sums):
        raise DamagedError(f"{path.name} is damaged")
    return Held(held)


def _named(vid: int, removed: int) -> str:
    return f"snapshot-{max(vid, 0):016d}-{removed:016d}"


def _alive(block: Block) -> int:
    return int(np.count_nonzero(block.pids))


def _without(block: Block, pids: set[int]) -> Block:
    """Blocks are replaced, not changed: another thread may be scanning the old one."""
    changed = replace(block)
    changed.remove(pids)
    return changed
