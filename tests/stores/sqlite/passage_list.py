"""The records as a list: what the indexes read from where there is no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from trivet.stores.indexes.snapshots import PrunedError

Vector = npt.NDArray[np.float32]


class Checkpoints:
    """The checkpoints that were made: records that do not know one are of another timeline."""

    def __init__(self) -> None:
        self._made: set[tuple[str, str]] = set()

    def made(self, name: str) -> dict[str, Any]:
        token = uuid4().hex
        self._made.add((name, token))
        return {"id": token}

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        return (name, checkpoint["id"]) in self._made

    def forget(self) -> None:
        self._made.clear()


class Removals:
    """The log of removed passages, of which the first may be pruned."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self.last = self.pruned = 0

    def add(self, pid: int) -> None:
        self.last += 1
        self.rows.append((self.last, pid))

    def prune(self) -> None:
        self.rows, self.pruned = [], self.last

    def after(self, seq: int) -> list[tuple[int, int]]:
        if seq < self.pruned:
            raise PrunedError
        return [row for row in self.rows if row[0] > seq]


class PassageList:
    """Passages and removals that grow as a store's do: numbers are never used twice."""

    def __init__(self) -> None:
        self.passages: dict[int, tuple[int, str, str]] = {}
        self.removals = Removals()
        self.version = 0
        self._last = 0
        self.checkpoints = Checkpoints()

    def add(self, did: int, text: str, title: str = "") -> int:
        self._last += 1
        self.version += 1
        self.passages[self._last] = (did, title, text)
        return self._last

    def add_all(self, texts: Sequence[str]) -> None:
        """One passage each, of documents numbered from 1 on."""
        for did, text in enumerate(texts, start=len(self.passages) + 1):
            self.add(did, text)

    def remove(self, pid: int) -> None:
        self.version += 1
        del self.passages[pid]
        self.removals.add(pid)

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        rows = [(number, *row) for number, row in sorted(self.passages.items()) if number > pid]
        return [(number, did, title, text) for number, did, title, text in rows][:limit]

    def pids_of(self, dids: Sequence[int], most: int) -> list[tuple[int, int]]:
        return [(pid, did) for pid, (did, _, _) in self.passages.items() if did in dids][:most]

    def newest(self) -> int:
        return self._last

    def checkpoint(self, name: str) -> dict[str, Any]:
        return self.checkpoints.made(name)

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        return self.checkpoints.knows(name, checkpoint)

    def count_after(self, pid: int) -> int:
        return sum(number > pid for number in self.passages)

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return self.removals.after(seq)

    def last_removed(self) -> int:
        return self.removals.last

    def pruned(self) -> int:
        return self.removals.pruned


class VectorList:
    """Vectors by passage, likewise, rounded to 16 bits a number as the records are."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int, Vector]] = {}
        self.removals = Removals()
        self.version = 0
        self._last = 0
        self.checkpoints = Checkpoints()

    def add(self, did: int, vector: Vector, pid: int | None = None) -> int:
        """The passage has the number of its vector unless it is given."""
        self._last += 1
        self.version += 1
        pid = self._last if pid is None else pid
        self.rows[self._last] = (pid, did, np.asarray(vector).astype(np.float16).astype(np.float32))
        return pid

    def remove(self, pid: int) -> None:
        self.version += 1
        self.rows = {vid: row for vid, row in self.rows.items() if row[0] != pid}
        self.removals.add(pid)

    def checkpoint(self, name: str) -> dict[str, Any]:
        return self.checkpoints.made(name)

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        return self.checkpoints.knows(name, checkpoint)

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        rows = [(number, *row) for number, row in sorted(self.rows.items()) if number > vid]
        rows = rows if limit < 0 else rows[:limit]
        if not rows:
            return vid, [], [], b""
        data = b"".join(row[3].astype("<f2").tobytes() for row in rows)
        return rows[-1][0], [row[1] for row in rows], [row[2] for row in rows], data

    def vectors_of(self, mid: int, pids: Sequence[int]) -> dict[int, bytes]:
        wanted = set(pids)
        return {pid: vector.astype("<f2").tobytes() for pid, _, vector in self.rows.values() if pid in wanted}

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return self.removals.after(seq)

    def last_removed(self) -> int:
        return self.removals.last

    def pruned(self) -> int:
        return self.removals.pruned

    def cosines(self, query: Vector) -> list[tuple[float, int, int]]:
        """(cosine, pid, did), the best passage of each document, best first: what an exact search finds."""
        best: dict[int, tuple[float, int, int]] = {}
        for pid, did, vector in self.rows.values():
            if vector.any():
                score = float(vector.astype(np.float64) @ query.astype(np.float64))
                if did not in best or score > best[did][0]:
                    best[did] = (score, pid, did)
        return sorted(best.values(), key=lambda hit: (-hit[0], hit[2]))
