"""What is asked of one collection whose meaning is in Qdrant?

The companion's shelf answers everything but nearness. It is the truth, vectors included: what Qdrant has is made from
it, written right after it, and made again where it is missing (Qdrant was down, a process was killed). So a search may
find a point that is out of date, and passes over it, but nothing that was stored can be lost with Qdrant.

A companion that was restored from a backup gives row numbers and versions again to other content. So a marker in every
Qdrant collection names the state that its points were last written from, and where the companion does not know that
state, every point is compared with the truth before one of them is used.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.errors import ModelReplacedError, StoreError
from trivet.filters import Filter, both, values_of
from trivet.stores.contract import Found, Model, Prepared, Shelf, State, Written
from trivet.stores.qdrant import tags
from trivet.stores.qdrant.comparison import Difference, difference_of
from trivet.stores.qdrant.points import Mark, Points, Row
from trivet.types import Document

if TYPE_CHECKING:
    from qdrant_client import models

    from trivet.stores.contract import Progress, Steps
    from trivet.types import Vector

BATCH = 500  # documents compared at a time when Qdrant is brought up to date
TRIES = 3  # comparisons of everything, where somebody writes meanwhile
HIDDEN = "qdrant"  # the collection's name in Qdrant, in the companion's config


class Narrowed:
    """The companion's scope, and what of it the server can sift."""

    def __init__(self, inner: Any, where: models.Filter | None) -> None:
        self.inner, self.where = inner, where

    def __contains__(self, did: int) -> bool:
        return did in self.inner

    def expect(self, dids: Iterable[int]) -> None:
        self.inner.expect(dids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class QdrantShelf:
    """One collection. Whatever is not said here is the companion's."""

    def __init__(self, store: Any, inner: Shelf, points: Points, name: str, tenant: str | None) -> None:
        self.store, self._inner, self._points, self._name, self._tenant = store, inner, points, name, tenant
        self._lock = threading.Lock()
        self._sound: set[int] = set()  # models whose points were compared and have been kept up since
        self._missed: set[int] = set()  # those of which Qdrant did not take something
        #: The newest state of the companion that is known to follow each model's marker.
        self._marks: dict[int, Mark] = {}
        inner.swept = self._remove_points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def config(self) -> Mapping[str, Any]:
        return {key: value for key, value in self._inner.config.items() if key != HIDDEN}

    def _place(self, mid: int) -> str:
        return f"{self._name}-{mid}"

    # --- writing: the truth first, then Qdrant ------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        written = self._inner.write(batch, mid, within)
        brought = any(item.vector is not None for item in batch)
        if written.updated or brought:
            self._follow([item.document.id for item in batch])
        return written

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        stored, written = self._inner.remember(item, mid, same, likely, named, importance, within)
        if written is not None and written.updated:
            self._follow([stored])
        return stored, written

    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written:
        written = self._inner.amend(identifier, mid, change, within)
        self._follow([identifier])
        return written

    def remove(self, where: Filter, judged: bool = False) -> list[int]:
        dids = self._inner.remove(where, judged)
        self._remove_points(dids)
        return dids

    def _remove_points(self, dids: list[int]) -> None:
        for mid in self._kept() if dids else ():
            with self._noting(mid):
                self._put(mid, [], self._mark(mid, self._inner.state()))
                self._points.remove(self._place(mid), dids)

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._inner.add_vectors(mid, vectors)
        with self._noting(mid):
            with self._inner.snapshot():
                known = self._inner.hashes([pid for pid, _ in vectors])
                rows = self._rows([(pid, *known[pid], data) for pid, data in vectors if pid in known])
                mark = self._mark(mid, self._inner.state())
            self._put(mid, rows, mark)

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        model = self._inner.add_model(identifier, spec, dim, answers)
        with contextlib.suppress(StoreError):  # made when it is needed
            self._make(model)
        return model

    def forget_other_models(self, mid: int) -> None:
        self._inner.forget_other_models(mid)
        with contextlib.suppress(StoreError):  # a leftover is never asked again
            for name in self._points.collections(f"{self._name}-"):
                if name != self._place(mid):
                    self._points.drop(name)
        with self._lock:
            self._sound &= {mid}
            self._marks = {known: mark for known, mark in self._marks.items() if known == mid}

    @contextlib.contextmanager
    def _noting(self, mid: int) -> Any:
        """What Qdrant did not take is no error of the write: the truth has it, and the next search makes up for it."""
        try:
            yield
        except StoreError:
            self._miss(mid)

    def _miss(self, mid: int) -> None:
        with self._lock:
            self._sound.discard(mid)
            self._missed.add(mid)
            self._marks.pop(mid, None)

    def _kept(self) -> list[int]:
        with contextlib.suppress(StoreError):
            found = self._points.collections(f"{self._name}-")
            return [int(name.rpartition("-")[2]) for name in found]
        model = self._inner.state().model
        if model is not None:
            self._miss(model.mid)
        return []

    def _follow(self, ids: Sequence[str]) -> None:
        """Bring these documents' points up to date, tags and all."""
        dids = list(self._inner.dids(ids).values())
        for mid in self._kept():
            with self._noting(mid):
                self._refresh(mid, dids)

    def _refresh(self, mid: int, dids: Sequence[int]) -> None:
        with self._inner.snapshot():
            rows, mark = self._truth(mid, dids), self._mark(mid, self._inner.state())
        self._put(mid, rows, mark)
        if dids:
            self._points.remove(self._place(mid), dids, [pid for pid, _, _ in rows])

    def _truth(self, mid: int, dids: Sequence[int]) -> list[Row]:
        """The points that these documents should have."""
        vectors = self._inner.vectors_of(mid, dids)
        return self._rows(
            [
                (pid, did, digest, vectors[did][digest])
                for pid, did, _, _, _, digest in self._inner.passages_of(dids)
                if digest in vectors.get(did, {})
            ]
        )

    def _rows(self, passages: Sequence[tuple[int, int, bytes, bytes]]) -> list[Row]:
        """The points of passages, each (pid, did, hash, vector)."""
        import numpy as np

        documents = self._inner.fetch(list({did for _, did, _, _ in passages}))
        points: list[Row] = []
        for pid, did, digest, data in passages:
            if did not in documents:
                continue
            vector = np.frombuffer(data, dtype="<f4")
            payload: dict[str, Any] = {"did": did, "hash": digest.hex(), tags.FIELD: tags.tags_of(documents[did])}
            if not vector.any():  # a text without meaning is near to nothing
                payload[tags.FIELD] = [*payload[tags.FIELD], tags.BLANK]
            if self._tenant:
                payload["tenant"] = [str(value) for value in values_of(documents[did], self._tenant)]
            points.append((pid, vector.tolist(), payload))
        return points

    def _put(self, mid: int, rows: Sequence[Row], mark: Mark | None) -> None:
        if rows or mark is not None:
            self._points.put(self._place(mid), self._inner.model_id(mid), rows, mark)

    # --- the timeline -------------------------------------------------------------------------------------------------

    def _make(self, model: Model) -> None:
        """Make the collection in Qdrant where it is missing, or was made for another model of that number."""
        if self._points.make(self._place(model.mid), model.id, model.dim):
            state = self._inner.state()
            self._put(model.mid, [], Mark(state.version, state.token))
            with self._lock:
                self._marks.pop(model.mid, None)

    def _known(self, mid: int) -> Mark | None:
        """The newest state that the points are known to follow: what this process knows, or what the marker says."""
        with self._lock:
            known = self._marks.get(mid)
        return known or self._points.mark(self._place(mid))

    def _follows(self, mid: int, known: Mark | None, now: Mark) -> bool:
        """Tell whether points of the state ``known`` are on the timeline of this one."""
        if known is None or (known != now and not self._inner.knows_version(known.version, known.token)):
            return False
        with self._lock:
            self._marks[mid] = now
        return True

    def _mark(self, mid: int, state: State) -> Mark | None:
        """The marker for what is written from this state; None where the marker that is there has to stay.

        A marker of another timeline stays, or the points of that timeline would be taken for this one's: the next
        search compares them. One of a later state stays too: another thread, or process, was faster.
        """
        known, now = self._known(mid), Mark(state.version, state.token)
        if known is not None and known.version > now.version:
            return None
        if self._follows(mid, known, now):
            return now
        self._miss(mid)
        return None

    # --- finding ------------------------------------------------------------------------------------------------------

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Narrowed | None:
        inner, asked = self._inner.scope(where, exclude, version, within), both(within, where)
        return None if inner is None else Narrowed(inner, tags.compile_filter(asked)[0] if asked is not None else None)

    def only(self, did: int) -> Narrowed:
        return Narrowed(self._inner.only(did), tags.only(did))

    def find_words(self, query: Any, match: str, depth: int, scope: Narrowed | None, version: int) -> Any:
        return self._inner.find_words(query, match, depth, _bare(scope), version)

    @property
    def spelling(self) -> Any:
        return _Spelling(self._inner.spelling)

    def is_current(self, leg: str, state: State) -> bool:
        return leg != "dense" and self._inner.is_current(leg, state)

    def find_near(self, vector: Vector, model: Model, depth: int, scope: Narrowed | None, version: int) -> list[Found]:
        self._mend(model)
        found, foreign = self._near(vector, model, depth, scope)
        if foreign:  # a passage keeps its text for life: these points were put on another timeline
            self._miss(model.mid)
            self._mend(model)
            found, _ = self._near(vector, model, depth, scope)
        state = self._inner.state()
        if state.model is None or state.model.mid != model.mid:
            raise ModelReplacedError(f"collection: {self._inner.name!r} was re-embedded with another model meanwhile")
        return found

    def _near(self, vector: Vector, model: Model, depth: int, scope: Narrowed | None) -> tuple[list[Found], bool]:
        """(the nearest documents, whether a point was met that is not its passage's)."""
        asked = tags.without_blank(scope.where if isinstance(scope, Narrowed) else None)
        limit, foreign = depth + depth // 2 + 16, False
        while True:
            rows = self._points.near(self._place(model.mid), model.id, vector.tolist(), limit, asked)
            known = self._inner.hashes([pid for _, pid, _, _ in rows])
            seen: list[Found] = []
            for score, pid, did, digest in rows:
                if pid not in known:  # its document is gone
                    continue
                if (known[pid][0], known[pid][1].hex()) == (did, digest):
                    seen.append((score, pid, did))
                else:
                    foreign = True
            if scope is not None:
                scope.expect(did for _, _, did in seen)
                seen = [row for row in seen if row[2] in scope]
            found = _best(seen, depth)
            if len(found) >= depth or len(rows) < limit:
                return found, foreign
            limit *= 4

    # --- care ---------------------------------------------------------------------------------------------------------

    def _mend(self, model: Model, progress: Progress | None = None) -> None:
        """Compare Qdrant with the truth once, and again after something went wrong or the companion was set back."""
        mid = model.mid
        with self._lock:
            sound, missed = mid in self._sound, mid in self._missed
        if sound and self._follows(mid, self._known(mid), self._now()):
            return
        self._make(model)
        known, begun = self._points.mark(self._place(mid)), self._now()  # in this order: the state is the later one
        follows = self._follows(mid, known, begun)
        now = self._inner.state().model
        if missed or not follows or now is None or self._points.count(self._place(mid)) != now.vectors:
            self._compare(model, not follows, progress)
            ended = self._now()
            if not self._inner.knows_version(begun.version, begun.token):
                raise StoreError(f"store: {self._name!r}: the companion was set back meanwhile; repeat the call")
            self._put(mid, [], ended)
            with self._lock:
                self._marks[mid] = ended
        with self._lock:
            self._sound.add(mid)
            self._missed.discard(mid)

    def _now(self) -> Mark:
        state = self._inner.state()
        return Mark(state.version, state.token)

    def _compare(self, model: Model, vectors: bool, progress: Progress | None = None) -> None:
        """Make the points what they should be: by number and payload, and by vector where one cannot be trusted."""
        total, done = self._inner.state().documents, 0
        for size, difference in self._differences(model, vectors):
            self._put(model.mid, difference.wrong, None)
            if difference.strays:
                self._points.remove_points(self._place(model.mid), difference.strays)
            done += size
            if progress and size:
                progress(done, max(total, done))

    def _differences(self, model: Model, vectors: bool) -> Iterator[tuple[int, Difference]]:
        """(documents, what is wrong with their points), some at a time; at the end the points that no document has."""
        strays, after = self._points.numbers(self._place(model.mid)), 0
        while batch := self._inner.page(None, after, BATCH):
            with self._inner.snapshot():
                rows = self._truth(model.mid, [did for did, _ in batch])
            here = self._points.read(self._place(model.mid), model.id, [pid for pid, _, _ in rows], vectors)
            yield len(batch), difference_of(rows, here, vectors)
            strays -= {pid for pid, _, _ in rows}
            after = batch[-1][0]
        yield 0, Difference(strays=sorted(strays))

    def read_connections(self) -> None:
        self._inner.read_connections()

    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None:
        self._inner.tidy_words(progress)
        model = self._inner.state().model
        if model is not None:
            with self._noting(model.mid):
                self._make(model)
                if self._points.count(self._place(model.mid)) != model.vectors:
                    self._miss(model.mid)
                self._mend(model, progress)

    def tidy_vectors(self) -> None:
        """They are Qdrant's, and are put there as they are written."""

    def verify(self, progress: Steps | None = None) -> tuple[list[str], dict[str, int]]:
        problems, checked = self._inner.verify(progress)
        model = self._inner.state().model
        if model is not None:
            name = self._place(model.mid)
            points = self._points.count(name) if self._points.exists(name) else 0
            checked["points"] = points
            if points:
                problems += self._problems(model)
            elif model.vectors:
                problems.append(f"meaning: Qdrant has no points, the truth {model.vectors:,} vectors; run rebuild")
        return problems, checked

    def _problems(self, model: Model) -> list[str]:
        """Compare every point with the truth, vectors included."""
        if not self._points.is_for(self._place(model.mid), model.id, model.dim):
            return [f"meaning: the Qdrant collection {self._place(model.mid)!r} is another model's; run rebuild"]
        for _ in range(TRIES):  # somebody may be writing: then what differs now may be there the next time
            before, found = self._now(), Difference()
            for _, difference in self._differences(model, vectors=True):
                found += difference
            if before == self._now():
                break
        return [
            f"meaning: {len(numbers):,} points {kind} in Qdrant (the first is {numbers[0]}); run rebuild"
            for kind, numbers in found.named()
            if numbers
        ]

    def discard_projections(self) -> None:
        self._inner.discard_projections()
        self.drop_points()

    def drop_points(self) -> None:
        for name in self._points.collections(f"{self._name}-"):
            self._points.drop(name)
        with self._lock:
            self._sound.clear()
            self._marks.clear()


class _Spelling:
    """The companion's, with the companion's own scope."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        if hasattr(inner, "find_alike"):
            self.find_alike = self._find_alike

    def _find_alike(self, keywords: str, threshold: float, depth: int, scope: Any, version: int) -> Any:
        return self._inner.find_alike(keywords, threshold, depth, _bare(scope), version)

    def find_trigrams(self, terms: Sequence[str], depth: int, scope: Any, version: int) -> Any:
        return self._inner.find_trigrams(terms, depth, _bare(scope), version)

    def passage_texts(self, pids: Sequence[int]) -> Any:
        return self._inner.passage_texts(pids)


def _bare(scope: Any) -> Any:
    return scope.inner if isinstance(scope, Narrowed) else scope


def _best(rows: Sequence[Found], depth: int) -> list[Found]:
    found: dict[int, Found] = {}
    for row in sorted(rows, key=lambda row: (-row[0], row[2], row[1])):
        found.setdefault(row[2], row)
        if len(found) == depth:
            break
    return list(found.values())
