"""The points of one collection in Qdrant, kept the same as its records.

The record store has everything, vectors included. Points are made from it, written right after it, and made again where
they are missing (Qdrant was down, a process was killed). So a search may find a point that is out of date, and drops
it; nothing that was stored can be lost with Qdrant.

A record store that was restored from a backup gives numbers and versions again to other content. So a marker in every
Qdrant collection names the state that its points were last written from. Where the record store does not know that
state, every point is compared with the records before one of them is used.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from trivet.errors import StoreError
from trivet.filters import values_of
from trivet.stores.contract import Collection, Model, State
from trivet.stores.qdrant import tags
from trivet.stores.qdrant.comparison import Difference, difference_of
from trivet.stores.qdrant.points import Mark, Points, Row
from trivet.types import Progress

BATCH = 500  # documents compared at a time
TRIES = 3  # comparisons of all points, where another process writes meanwhile


class PointSync:
    """The points of one collection; ``name`` is the beginning of its names in Qdrant."""

    def __init__(self, records: Collection, points: Points, name: str, tenant: str | None) -> None:
        """``tenant`` is a metadata field whose values a server keeps together."""
        self._records, self.points, self._name, self._tenant = records, points, name, tenant
        self._lock = threading.Lock()
        self._complete: set[int] = set()  # models whose points were compared, and written with every change since
        self._missed: set[int] = set()  # models of which Qdrant did not take something
        self._marks: dict[int, Mark] = {}  # the newest state that is known to follow the marker of each model

    def name_of(self, mid: int) -> str:
        """Return the name of the Qdrant collection of a model."""
        return f"{self._name}-{mid}"

    # --- after a write of the record store ----------------------------------------------------------------------------

    def refresh(self, ids: Sequence[str]) -> None:
        """Write the points of documents again, with their tags."""
        dids = list(self._records.documents.numbers(ids).values())
        for mid in self._models():
            with self._noting(mid):
                with self._records.snapshot():
                    rows, mark = self._expected(mid, dids), self._mark(mid, self._records.state())
                self._put(mid, rows, mark)
                if dids:
                    self.points.remove(self.name_of(mid), dids, [pid for pid, _, _ in rows])

    def remove(self, dids: Sequence[int]) -> None:
        """Remove the points of documents."""
        for mid in self._models() if dids else ():
            with self._noting(mid):
                self._put(mid, [], self._mark(mid, self._records.state()))
                self.points.remove(self.name_of(mid), dids)

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Write the points of passages whose vectors were added."""
        with self._noting(mid):
            with self._records.snapshot():
                known = self._records.documents.hashes([pid for pid, _ in vectors])
                rows = self._rows([(pid, *known[pid], data) for pid, data in vectors if pid in known])
                mark = self._mark(mid, self._records.state())
            self._put(mid, rows, mark)

    def add_model(self, model: Model) -> None:
        """Create the Qdrant collection of a model; a search does where it fails."""
        with contextlib.suppress(StoreError):
            self._create(model)

    def remove_other_models(self, mid: int) -> None:
        """Drop the Qdrant collections of all other models."""
        with contextlib.suppress(StoreError):  # a collection that is left over is never used
            for name in self.points.collections(f"{self._name}-"):
                if name != self.name_of(mid):
                    self.points.drop(name)
        with self._lock:
            self._complete &= {mid}
            self._marks = {known: mark for known, mark in self._marks.items() if known == mid}

    def drop(self) -> None:
        """Drop the Qdrant collections of all models."""
        for name in self.points.collections(f"{self._name}-"):
            self.points.drop(name)
        with self._lock:
            self._complete.clear()
            self._marks.clear()

    def miss(self, mid: int) -> None:
        """Take note that points of a model are missing or wrong: the next search compares them."""
        with self._lock:
            self._complete.discard(mid)
            self._missed.add(mid)
            self._marks.pop(mid, None)

    @contextlib.contextmanager
    def _noting(self, mid: int) -> Iterator[None]:
        """Take note of an error of Qdrant instead of raising it: the records are stored."""
        try:
            yield
        except StoreError:
            self.miss(mid)

    def _models(self) -> list[int]:
        """Return the models that have a Qdrant collection; none where Qdrant cannot be reached."""
        with contextlib.suppress(StoreError):
            return [int(name.rpartition("-")[2]) for name in self.points.collections(f"{self._name}-")]
        model = self._records.state().model
        if model is not None:
            self.miss(model.mid)
        return []

    def _expected(self, mid: int, dids: Sequence[int]) -> list[Row]:
        """Return the points that documents should have."""
        vectors = self._records.vectors.by_hash(mid, dids)
        return self._rows(
            [
                (pid, did, digest, vectors[did][digest])
                for pid, did, _, _, _, digest in self._records.documents.passages(dids)
                if digest in vectors.get(did, {})
            ]
        )

    def _rows(self, passages: Sequence[tuple[int, int, bytes, bytes]]) -> list[Row]:
        """Return the points of passages, each (passage, document, hash, vector)."""
        import numpy as np

        documents = self._records.documents.fetch(list({did for _, did, _, _ in passages}))
        points: list[Row] = []
        for pid, did, digest, data in passages:
            if did not in documents:
                continue
            vector = np.frombuffer(data, dtype="<f4")
            payload: dict[str, Any] = {"did": did, "hash": digest.hex(), tags.FIELD: tags.tags_of(documents[did])}
            if not vector.any():
                payload[tags.FIELD] = [*payload[tags.FIELD], tags.BLANK]
            if self._tenant:
                payload["tenant"] = [str(value) for value in values_of(documents[did], self._tenant)]
            points.append((pid, vector.tolist(), payload))
        return points

    def _put(self, mid: int, rows: Sequence[Row], mark: Mark | None) -> None:
        if rows or mark is not None:
            self.points.put(self.name_of(mid), self._records.vectors.model_id(mid), rows, mark)

    # --- marks --------------------------------------------------------------------------------------------------------

    def _create(self, model: Model) -> None:
        """Create the Qdrant collection where it is missing or belongs to another model of that number."""
        if self.points.create(self.name_of(model.mid), model.id, model.dim):
            self._put(model.mid, [], self._now())
            with self._lock:
                self._marks.pop(model.mid, None)

    def _known(self, mid: int) -> Mark | None:
        """Return the newest state that the points follow: the one this process knows, or that of the marker."""
        with self._lock:
            known = self._marks.get(mid)
        return known or self.points.mark(self.name_of(mid))

    def _follows(self, mid: int, known: Mark | None, now: Mark) -> bool:
        """Tell whether the state ``known`` is in the past of this one."""
        if known is None or (known != now and not self._records.knows_version(known.version, known.token)):
            return False
        with self._lock:
            self._marks[mid] = now
        return True

    def _mark(self, mid: int, state: State) -> Mark | None:
        """Return the marker for what is written from this state; None where the marker that is there has to stay.

        A marker that is not in the past of this state stays, so that the next search compares the points. One of a
        later state stays too: another thread or process was faster.
        """
        known, now = self._known(mid), Mark(state.version, state.token)
        if known is not None and known.version > now.version:
            return None
        if self._follows(mid, known, now):
            return now
        self.miss(mid)
        return None

    def _now(self) -> Mark:
        state = self._records.state()
        return Mark(state.version, state.token)

    # --- comparison ---------------------------------------------------------------------------------------------------

    def repair(self, model: Model, progress: Progress | None = None) -> None:
        """Compare the points with the records, once, and after an error or where the record store was set back."""
        mid = model.mid
        with self._lock:
            complete, missed = mid in self._complete, mid in self._missed
        if complete and self._follows(mid, self._known(mid), self._now()):
            return
        self._create(model)
        known, before = self.points.mark(self.name_of(mid)), self._now()  # in this order: the state is the later one
        follows = self._follows(mid, known, before)
        current = self._records.state().model
        if missed or not follows or current is None or self.points.count(self.name_of(mid)) != current.vectors:
            self._write_differences(model, not follows, progress)
            after = self._now()
            if not self._records.knows_version(before.version, before.token):
                raise StoreError(f"store: {self._name!r}: the record store was set back meanwhile; repeat the call")
            self._put(mid, [], after)
            with self._lock:
                self._marks[mid] = after
        with self._lock:
            self._complete.add(mid)
            self._missed.discard(mid)

    def update(self, model: Model, progress: Progress | None = None) -> None:
        """Bring the points up to date as far as Qdrant can be reached."""
        with self._noting(model.mid):
            self._create(model)
            if self.points.count(self.name_of(model.mid)) != model.vectors:
                self.miss(model.mid)
            self.repair(model, progress)

    def _write_differences(self, model: Model, vectors: bool, progress: Progress | None = None) -> None:
        total, done = self._records.state().documents, 0
        for size, difference in self._differences(model, vectors):
            self._put(model.mid, difference.wrong, None)
            if difference.strays:
                self.points.remove_points(self.name_of(model.mid), difference.strays)
            done += size
            if progress and size:
                progress(done, max(total, done))

    def _differences(self, model: Model, vectors: bool) -> Iterator[tuple[int, Difference]]:
        """Yield (documents, what is wrong with their points) by batch, and at the end the points without a document."""
        name = self.name_of(model.mid)
        strays, after = self.points.numbers(name), 0
        while batch := self._records.documents.page(None, after, BATCH):
            with self._records.snapshot():
                rows = self._expected(model.mid, [did for did, _ in batch])
            here = self.points.read(name, model.id, [pid for pid, _, _ in rows], vectors)
            yield len(batch), difference_of(rows, here, vectors)
            strays -= {pid for pid, _, _ in rows}
            after = batch[-1][0]
        yield 0, Difference(strays=sorted(strays))

    def verify(self, model: Model) -> tuple[list[str], int]:
        """Compare every point with the records, vectors included; return the problems and the number of points."""
        name = self.name_of(model.mid)
        count = self.points.count(name) if self.points.exists(name) else 0
        if not count:
            problem = f"vectors: Qdrant has no points, the record store {model.vectors:,} vectors; run rebuild"
            return [problem] if model.vectors else [], 0
        if not self.points.is_for(name, model.id, model.dim):
            return [f"vectors: the Qdrant collection {name!r} belongs to another model; run rebuild"], count
        for _ in range(TRIES):  # another process may write: what differs now may be there the next time
            before, found = self._now(), Difference()
            for _, difference in self._differences(model, vectors=True):
                found += difference
            if before == self._now():
                break
        return [
            f"vectors: {len(numbers):,} points {kind} in Qdrant (the first is {numbers[0]}); run rebuild"
            for kind, numbers in found.by_kind()
            if numbers
        ], count
