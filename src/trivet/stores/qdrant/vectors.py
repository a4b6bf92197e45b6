"""The vectors of a collection in Qdrant, and in the record store that they are copied from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivet.errors import ModelReplacedError
from trivet.stores.contract import Collection, Found, Model, State
from trivet.stores.qdrant import tags
from trivet.stores.qdrant.filters import QdrantScope
from trivet.stores.qdrant.sync import PointSync
from trivet.stores.ranking import best_passages

if TYPE_CHECKING:
    from trivet.types import Vector


class QdrantVectors:
    """The vectors of one collection."""

    def __init__(self, records: Collection, sync: PointSync) -> None:
        self._records, self._sync = records, sync
        stored = records.vectors
        self.model_id, self.missing, self.next_missing = stored.model_id, stored.missing, stored.next_missing
        self.known, self.of_documents, self.by_hash = stored.known, stored.of_documents, stored.by_hash
        self.embedding_lock = stored.embedding_lock

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._records.vectors.add(mid, vectors)
        self._sync.add(mid, vectors)

    def add_model(self, id: str, spec: str, dim: int, answers: bool) -> Model:
        model = self._records.vectors.add_model(id, spec, dim, answers)
        self._sync.add_model(model)
        return model

    def remove_other_models(self, mid: int) -> None:
        self._records.vectors.remove_other_models(mid)
        self._sync.remove_other_models(mid)

    def is_current(self, state: State) -> bool:
        return False  # a search reads from Qdrant

    def search(self, vector: Vector, model: Model, depth: int, scope: QdrantScope | None, version: int) -> list[Found]:
        self._sync.repair(model)
        found, foreign = self._nearest(vector, model, depth, scope)
        if foreign:
            self._sync.miss(model.mid)
            self._sync.repair(model)
            found, _ = self._nearest(vector, model, depth, scope)
        state = self._records.state()
        if state.model is None or state.model.mid != model.mid:
            raise ModelReplacedError(f"collection: {self._records.name!r} was re-embedded with another model meanwhile")
        return found

    def _nearest(self, vector: Vector, model: Model, depth: int, scope: QdrantScope | None) -> tuple[list[Found], bool]:
        """Return the nearest passages, and whether a point has another text than its passage.

        A passage never changes its text, so such a point was written before the record store was set back.
        """
        where = tags.without_blank(scope.where if scope is not None else None)
        name, limit, foreign = self._sync.name_of(model.mid), depth + depth // 2 + 16, False
        while True:
            rows = self._sync.points.nearest(name, model.id, vector.tolist(), limit, where)
            known = self._records.documents.hashes([pid for _, pid, _, _ in rows])
            seen: list[Found] = []
            for score, pid, did, digest in rows:
                if pid not in known:  # the document was deleted
                    continue
                if (known[pid][0], known[pid][1].hex()) == (did, digest):
                    seen.append((score, pid, did))
                else:
                    foreign = True
            if scope is not None:
                scope.expect(did for _, _, did in seen)
                seen = [row for row in seen if row[2] in scope]
            found = best_passages(seen, depth)
            if len(found) >= depth or len(rows) < limit:
                return found, foreign
            limit *= 4
