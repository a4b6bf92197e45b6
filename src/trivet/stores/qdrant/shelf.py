"""What is asked of one collection whose meaning is in Qdrant?

The companion's shelf answers everything but nearness. It is the truth, vectors included: what Qdrant has is made from
it, written right after it, and made again where it is missing (Qdrant was down, a process was killed). So a search may
find a point that is out of date, and passes over it, but nothing that was stored can be lost with Qdrant.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.errors import ModelReplacedError, StoreError
from trivet.filters import Filter, values_of
from trivet.stores.contract import Found, Model, Prepared, Shelf, State, Written
from trivet.stores.qdrant import tags
from trivet.stores.qdrant.points import Points
from trivet.types import Document

if TYPE_CHECKING:
    from qdrant_client import models

    from trivet.stores.contract import Progress
    from trivet.types import Vector

BATCH = 500  # documents compared at a time when Qdrant is brought up to date
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
                self._points.remove(self._place(mid), dids)

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._inner.add_vectors(mid, vectors)
        spans = self._inner.fetch_spans([pid for pid, _ in vectors])
        rows = [(pid, spans[pid][0], data) for pid, data in vectors if pid in spans]
        with self._noting(mid):
            self._put(mid, rows)

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        model = self._inner.add_model(identifier, spec, dim, answers)
        with contextlib.suppress(StoreError):  # made when it is needed
            self._points.make(self._place(model.mid), model.id, model.dim)
        return model

    def forget_other_models(self, mid: int) -> None:
        self._inner.forget_other_models(mid)
        with contextlib.suppress(StoreError):  # a leftover is never asked again
            for name in self._points.collections(f"{self._name}-"):
                if name != self._place(mid):
                    self._points.drop(name)
        with self._lock:
            self._sound &= {mid}

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
        vectors = self._inner.vectors_of(mid, dids)
        rows = [
            (pid, did, vectors[did][digest])
            for pid, did, _, _, _, digest in self._inner.passages_of(dids)
            if digest in vectors.get(did, {})
        ]
        self._put(mid, rows)
        if dids:
            self._points.remove(self._place(mid), dids, [pid for pid, _, _ in rows])

    def _put(self, mid: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
        import numpy as np

        documents = self._inner.fetch(list({did for _, did, _ in rows}))
        points = []
        for pid, did, data in rows:
            if did not in documents:
                continue
            vector = np.frombuffer(data, dtype="<f4")
            payload: dict[str, Any] = {"did": did, tags.FIELD: tags.tags_of(documents[did])}
            if not vector.any():  # a text without meaning is near to nothing
                payload[tags.FIELD] = [*payload[tags.FIELD], _BLANK]
            if self._tenant:
                payload["tenant"] = [str(value) for value in values_of(documents[did], self._tenant)]
            points.append((pid, vector.tolist(), payload))
        if points:
            model = self._inner.state().model
            name = model.id if model is not None and model.mid == mid else self._model_name(mid)
            self._points.put(self._place(mid), name, points)

    def _model_name(self, mid: int) -> str:
        """Of a model that does not answer yet."""
        return str(self._inner.model_id(mid))

    # --- finding ------------------------------------------------------------------------------------------------------

    def scope(self, where: Filter | None, exclude: Sequence[str], version: int) -> Narrowed | None:
        inner = self._inner.scope(where, exclude, version)
        return None if inner is None else Narrowed(inner, tags.compile_filter(where)[0] if where is not None else None)

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
        asked = tags.without_blank(_BLANK, scope.where if scope is not None else None)
        limit = depth + depth // 2 + 16
        while True:
            rows = self._points.near(self._place(model.mid), model.id, vector.tolist(), limit, asked)
            known = self._inner.fetch_spans([pid for _, pid, _ in rows])
            seen = [row for row in rows if row[1] in known and known[row[1]][0] == row[2]]
            if scope is not None:
                scope.expect(did for _, _, did in seen)
                seen = [row for row in seen if row[2] in scope]
            found = _best(seen, depth)
            if len(found) >= depth or len(rows) < limit:
                break
            limit *= 4
        state = self._inner.state()
        if state.model is None or state.model.mid != model.mid:
            raise ModelReplacedError(f"collection: {self._inner.name!r} was re-embedded with another model meanwhile")
        return found

    # --- care ---------------------------------------------------------------------------------------------------------

    def _mend(self, model: Model) -> None:
        """Compare Qdrant with the truth once, and again after something went wrong."""
        with self._lock:
            if model.mid in self._sound:
                return
            missed = model.mid in self._missed
        self._points.make(self._place(model.mid), model.id, model.dim)
        now = self._inner.state().model
        if missed or now is None or self._points.count(self._place(model.mid)) != now.vectors:
            self._compare(model)
        with self._lock:
            self._sound.add(model.mid)
            self._missed.discard(model.mid)

    def _compare(self, model: Model, progress: Progress | None = None) -> None:
        here = self._points.numbers(self._place(model.mid))
        total, after, done = self._inner.state().documents, 0, 0
        while batch := self._inner.page(None, after, BATCH):
            dids = [did for did, _ in batch]
            vectors = self._inner.vectors_of(model.mid, dids)
            rows = [
                (pid, did, vectors[did][digest])
                for pid, did, _, _, _, digest in self._inner.passages_of(dids)
                if digest in vectors.get(did, {})
            ]
            self._put(model.mid, [row for row in rows if row[0] not in here])
            here -= {row[0] for row in rows}
            after, done = batch[-1][0], done + len(batch)
            if progress:
                progress(done, max(total, done))
        if here:
            self._points.remove_points(self._place(model.mid), sorted(here))

    def read_connections(self) -> None:
        self._inner.read_connections()

    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None:
        self._inner.tidy_words(progress)
        model = self._inner.state().model
        if model is not None:
            with self._noting(model.mid):
                self._points.make(self._place(model.mid), model.id, model.dim)
                if self._points.count(self._place(model.mid)) != model.vectors:
                    self._compare(model, progress)

    def tidy_vectors(self) -> None:
        """They are Qdrant's, and are put there as they are written."""

    def verify(self) -> tuple[list[str], dict[str, int]]:
        problems, checked = self._inner.verify()
        model = self._inner.state().model
        if model is not None:
            name = self._place(model.mid)
            points = self._points.count(name) if self._points.exists(name) else 0
            checked["points"] = points
            if points != model.vectors:
                problems.append(f"meaning: Qdrant has {points:,} points, the truth {model.vectors:,}; run rebuild")
        return problems, checked

    def discard_projections(self) -> None:
        self._inner.discard_projections()
        self.drop_points()

    def drop_points(self) -> None:
        for name in self._points.collections(f"{self._name}-"):
            self._points.drop(name)
        with self._lock:
            self._sound.clear()


_BLANK = "@blank"


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


def _bare(scope: Narrowed | None) -> Any:
    return None if scope is None else scope.inner


def _best(rows: Sequence[Found], depth: int) -> list[Found]:
    found: dict[int, Found] = {}
    for row in sorted(rows, key=lambda row: (-row[0], row[2], row[1])):
        found.setdefault(row[2], row)
        if len(found) == depth:
            break
    return list(found.values())
