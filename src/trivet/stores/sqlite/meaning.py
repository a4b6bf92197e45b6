"""Which passages mean something like this?

Vectors live in the truth; this projection keeps them ready to scan. The bulk is a *snapshot* on disk (vectors
memory-mapped, one bit a dimension in a faiss RaBitQ index), the rest a tail in memory. A scan over the codes proposes
``REFINE`` times the depth and the exact cosine decides, so scores are never approximate. A snapshot is written under
a temporary name and renamed, so it is whole or absent; a damaged one is deleted and read again from the truth.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from trivet.errors import StoreError
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.tail import Found

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

SNAPSHOT_FROM = 8_192  # vectors; below this reading the truth takes milliseconds and an exact scan under one
GROWTH = 0.1  # a tail this large beside its snapshot makes a new one: the tail is scanned exactly, at 0.2 ms a thousand
FEW_ROWS = 2_048  # a scope this small is compared exactly, row by row
IN_MEMORY = 256_000_000  # bytes of vectors read at once; more are mapped, and each query pays for the pages it touches
HIGHEST = 1.01  # a cosine beyond this is a damaged file
REFINE, AT_LEAST = 5, 400  # candidates a wanted document, and in all, that the codes propose for the exact comparison
_FORMAT = 3


class Source(Protocol):
    """What the projection reads from the truth."""

    def vectors_after(self, vid: int) -> tuple[int, list[int], list[int], bytes]:
        """(last vid, pids, dids, float32 bytes) of every vector after ``vid``."""

    def removed_after(self, seq: int) -> list[tuple[int, int]]: ...

    def newest(self) -> tuple[int, int]:
        """The last vector and the last removal there ever was."""


@dataclass(slots=True)
class Block:
    """Vectors side by side with the passage and document each belongs to; a removed row has pid 0."""

    pids: Ints
    dids: Ints
    vectors: Floats
    codes: Any = None  # a faiss index, for a large block
    gone: bool = False  # is any row removed?

    def __len__(self) -> int:
        return len(self.pids)

    def best(self, query: Floats, depth: int, scope: Scope | None) -> list[Found]:
        alive: npt.NDArray[np.bool_] | None = (self.pids > 0) if self.gone else None
        if scope is not None:
            seen = scope.rows(self.dids)
            alive = seen if alive is None else alive & seen
        if alive is None:
            return self._scan(query, depth, None) if self.codes is not None else self._exact(query, depth, None)
        rows = np.flatnonzero(alive)
        if self.codes is None or len(rows) <= FEW_ROWS:
            return self._exact(query, depth, rows)
        return self._scan(query, depth, alive)

    def _exact(self, query: Floats, depth: int, rows: Ints | None) -> list[Found]:
        vectors = self.vectors if rows is None else self.vectors[rows]
        scores = vectors @ query
        return self._top(scores, rows, depth)

    def _scan(self, query: Floats, depth: int, alive: npt.NDArray[np.bool_] | None) -> list[Found]:
        import faiss

        # One query is too short to share: on a busy machine the threads' barrier costs more than the scan (8 ms, not
        # 1.3). OpenMP keeps this number per thread, so nobody else's faiss is slowed.
        faiss.omp_set_num_threads(1)
        wanted = max(AT_LEAST, depth * REFINE)
        parameters = None
        if alive is not None:
            bits = np.packbits(alive, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(alive), faiss.swig_ptr(bits))
            parameters = faiss.RaBitQSearchParameters(sel=selector, qb=self.codes.qb)  # type: ignore[call-arg]
        while True:
            wanted = min(wanted, len(self))
            _, found = self.codes.search(query[None, :], wanted, params=parameters)
            rows = np.sort(found[0][found[0] >= 0])  # in order of the file: the memory map reads forward
            top = self._exact(query, depth, rows)
            if len(top) >= depth or len(rows) < wanted or wanted == len(self):
                return top
            wanted *= 4  # a few long documents filled the list with their passages

    def _top(self, scores: Floats, rows: Ints | None, depth: int) -> list[Found]:
        """Best passage of each of the best ``depth`` documents."""
        wanted = depth + depth // 2 + 16
        while True:
            partial = wanted < len(scores)
            order = np.argpartition(-scores, wanted)[:wanted] if partial else np.arange(len(scores))
            where = order if rows is None else rows[order]
            order = order[np.lexsort((self.dids[where], -scores[order]))]
            where = order if rows is None else rows[order]
            best: dict[int, Found] = {}
            listed = zip(scores[order].tolist(), self.pids[where].tolist(), self.dids[where].tolist(), strict=True)
            for score, pid, did in listed:
                best.setdefault(did, (score, pid, did))
                if len(best) == depth:
                    break
            if len(best) == depth or wanted >= len(scores):
                return list(best.values())
            wanted *= 4

    def remove(self, pids: set[int]) -> None:
        dead = np.isin(self.pids, np.fromiter(pids, dtype=np.int64, count=len(pids)))
        if dead.any():
            self.pids = np.where(dead, 0, self.pids)
            self.gone = True


class VectorIndex:
    def __init__(self, folder: Path, source: Source, dim: int, identity: str = "") -> None:
        self._folder, self._source, self._dim, self._identity = folder, source, dim, identity
        self._lock = threading.RLock()
        self._seen = -1
        self._clear()
        self._open()

    def _clear(self) -> None:
        self._base, self._tail = self._empty(), self._empty()
        self._vid = self._removed = 0

    def _empty(self) -> Block:
        none = np.zeros(0, dtype=np.int64)
        return Block(none, none, np.zeros((0, self._dim), dtype=np.float32))

    @property
    def size(self) -> int:
        with self._lock:
            return int(sum(np.count_nonzero(block.pids) for block in (self._base, self._tail)))

    def catch_up(self, version: int) -> None:
        with self._lock:
            if version != self._seen:
                self._read_news()
                self._seen = version

    def _read_news(self) -> None:
        vid, pids, dids, data = self._source.vectors_after(self._vid)
        removed = self._source.removed_after(self._removed)
        if pids:
            self._tail = self._extended(pids, dids, data)
            self._vid = vid
        if removed:
            gone = {pid for _, pid in removed}
            self._base, self._tail = _without(self._base, gone), _without(self._tail, gone)
            self._removed = removed[-1][0]

    @property
    def wants_compacting(self) -> bool:
        return len(self._tail) > max(SNAPSHOT_FROM, GROWTH * len(self._base))

    def compact(self, at_least: int = 0) -> None:
        """Fold the tail into a new snapshot: a second or two at 100k vectors, and searches go on meanwhile."""
        with self._lock:
            if len(self._tail) <= at_least or len(self._tail) + len(self._base) <= SNAPSHOT_FROM:
                return
            base, tail, vid, removed = self._base, self._tail, self._vid, self._removed
        with contextlib.suppress(Timeout, OSError):  # another process at it, or no room: the tail serves
            self._snapshot(base, tail, vid, removed)
            with self._lock:
                self._open()
                self._read_news()  # what came while the snapshot was written

    def best(self, query: Floats, depth: int, scope: Scope | None) -> list[Found]:
        """(cosine, pid, did), one per document, best first. ``query`` has unit length."""
        with self._lock:
            blocks = [block for block in (self._base, self._tail) if len(block)]
        found = [hit for block in blocks for hit in block.best(query, depth, scope)]
        if blocks and blocks[0].codes is not None and not all(-HIGHEST <= hit[0] <= HIGHEST for hit in found):
            # no cosine (NaN fails the comparison too): the snapshot is damaged, the truth is read in its place
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

    def is_current(self, version: int) -> bool:
        return version == self._seen

    def discard(self) -> None:
        """Throw the snapshot away; the next catch-up reads the truth again."""
        with self._lock:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._clear()
            self._seen = -1

    def _extended(self, pids: list[int], dids: list[int], data: bytes) -> Block:
        fresh = np.frombuffer(data, dtype="<f4").reshape(len(pids), self._dim)
        usable = np.einsum("ij,ij->i", fresh, fresh) > 0  # an empty text has no meaning to be near to
        tail = self._tail
        return Block(
            np.concatenate([tail.pids, np.asarray(pids, dtype=np.int64)[usable]]),
            np.concatenate([tail.dids, np.asarray(dids, dtype=np.int64)[usable]]),
            np.concatenate([tail.vectors, fresh[usable].astype(np.float32, copy=False)]),
            gone=tail.gone,
        )

    # --- the snapshot on disk -----------------------------------------------------------------------------------------

    def _snapshot(self, base: Block, tail: Block, vid: int, removed: int) -> None:
        import faiss

        self._folder.mkdir(parents=True, exist_ok=True)
        final = self._folder / f"snapshot-{vid:016d}-{removed:016d}"
        with FileLock(self._folder / "lock", timeout=0):
            if any(other.name >= final.name for other in self._snapshots()):
                return  # another process was here first
            pids, dids = (np.concatenate([getattr(base, name), getattr(tail, name)]) for name in ("pids", "dids"))
            vectors = np.concatenate([base.vectors, tail.vectors])
            alive = pids > 0
            pids, dids, vectors = pids[alive], dids[alive], vectors[alive]
            draft = self._folder / f"draft-{uuid.uuid4().hex}"
            draft.mkdir()
            np.save(draft / "pids.npy", pids)
            np.save(draft / "dids.npy", dids)
            np.save(draft / "vectors.npy", vectors)
            # not RaBitQfs: its scan is a fifth faster, takes no mask, and crashed on small blocks (faiss 1.15)
            codes = faiss.index_factory(self._dim, "RaBitQ", faiss.METRIC_INNER_PRODUCT)
            codes.train(vectors)
            codes.add(vectors)
            faiss.write_index(codes, str(draft / "codes.faiss"))
            sums = {path.name: _checksum(path) for path in draft.iterdir()}
            state = {"format": _FORMAT, "identity": self._identity, "vid": vid, "removed": removed, "sums": sums}
            (draft / "state.json").write_text(json.dumps(state))
            draft.rename(final)
            for old in self._folder.iterdir():  # a reader that has one mapped keeps it until it lets go
                if old.is_dir() and old != final:
                    shutil.rmtree(old, ignore_errors=True)

    def _snapshots(self) -> list[Path]:
        return sorted((path for path in self._folder.glob("snapshot-*") if path.is_dir()), reverse=True)

    def _open(self) -> None:
        """Take the newest whole snapshot; delete damaged and foreign ones."""
        for folder in self._snapshots():
            try:
                base, state = _load(folder, self._dim, self._identity)
                newest = self._source.newest()  # after the snapshot was read: another process may be ahead of us
                if state["vid"] > newest[0] or state["removed"] > newest[1]:
                    raise ValueError(f"{folder.name} is of a later state of the store")
            except StoreError:
                raise
            except Exception:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self._base, self._tail = base, self._empty()
            self._vid = state["vid"]
            self._removed = state["removed"]
            return

    def problems(self) -> list[str]:
        """Files whose bytes are not those that were written."""
        found = []
        for folder in self._snapshots()[:1]:
            with contextlib.suppress(FileNotFoundError):  # replaced by another process meanwhile
                for name, checksum in json.loads((folder / "state.json").read_text())["sums"].items():
                    if _checksum(folder / name) != checksum:
                        found.append(f"{self._folder.name}: {name} is damaged; run rebuild")
        return found


def _load(folder: Path, dim: int, identity: str) -> tuple[Block, dict[str, Any]]:
    """A snapshot whose files are those that were written. The vectors, too large to read through, are told by their
    size here and by a score out of range when they are used; ``problems`` reads them."""
    import faiss

    state = json.loads((folder / "state.json").read_text())
    if state["format"] != _FORMAT or state["identity"] != identity:
        raise ValueError(f"{folder.name} is of another kind")
    for name in ("pids.npy", "dids.npy", "codes.faiss"):
        if _checksum(folder / name) != state["sums"][name]:
            raise ValueError(f"{folder.name}/{name} is damaged")
    pids, dids = np.load(folder / "pids.npy"), np.load(folder / "dids.npy")
    file = folder / "vectors.npy"
    vectors = np.load(file, mmap_mode=None if file.stat().st_size <= IN_MEMORY else "r")
    codes = faiss.read_index(str(folder / "codes.faiss"))
    if not len(pids) == len(dids) == len(vectors) == codes.ntotal or vectors.shape[1:] != (dim,):
        raise ValueError(f"{folder.name} is not whole")
    return Block(pids, dids, vectors, codes), state


def _checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            total = zlib.crc32(part, total)
    return total


def _without(block: Block, pids: set[int]) -> Block:
    """Blocks are replaced, not changed: another thread may be scanning the old one."""
    changed = replace(block)
    changed.remove(pids)
    return changed
