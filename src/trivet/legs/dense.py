"""The dense leg: cosine of the query's vector with the passages' vectors, exact after a quantised scan."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from trivet.concurrency.admission import SEARCHES
from trivet.errors import EmbedderError
from trivet.legs.leg import LegContext, LegQuery
from trivet.models.embedders import languages_of
from trivet.text.languages import NOT_READ, is_foreign
from trivet.text.scripts import written_in
from trivet.types import Degraded, Embedder, Ranking

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, Model, State
    from trivet.types import Vector


def reads(embedder: Embedder, text: str) -> bool:
    """Tell whether the model knows the script of the text; one without ``scripts`` is trusted with all of them."""
    scripts = getattr(embedder, "scripts", ())
    return not scripts or written_in(text, tuple(scripts))


def _is_foreign(embedder: Embedder, text: str) -> bool:
    return bool(getattr(embedder, "scripts", ())) and is_foreign(text, languages_of(embedder.spec))


def _pending(context: LegContext) -> str:
    """Say that passages wait to be embedded; without a number where the caller may not see all of them."""
    state, collection = context.state, context.collection
    if collection.bound is not None:
        counts = collection.documents.counts()
        return "some passages are not embedded yet" if counts.passages > counts.embedded else ""
    known = f"{state.pending:,} of {state.passages:,} passages are not embedded yet"
    message = "some passages are perhaps not embedded yet" if context.filtered else known
    return f"{message} ({context.embed_error})" if context.embed_error else message


@dataclass(frozen=True, slots=True)
class Dense:
    """Nearest vectors of the collection's model."""

    collection: Collection
    embedder: Embedder
    model: Model
    incomplete: str = ""
    name: ClassVar[str] = "dense"
    seeded: ClassVar[bool] = False

    @classmethod
    def build(cls, context: LegContext) -> Dense | Degraded:
        model, embedder = context.state.model, context.embedder
        if model is None or embedder is None:
            alone = "found by words alone: " if context.by_words else ""
            return Degraded("dense", f"{alone}{context.no_embedder}")
        if model.spec.startswith("vectors:") and not context.has_vector:
            return Degraded("dense", "the caller brings the vectors of this collection, and gave none")
        return cls(context.collection, embedder, model, _pending(context) if context.state.pending else "")

    def is_current(self, state: State) -> bool:
        return self.collection.vectors.is_current(state)

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        notes: tuple[str, ...] = ("vector given",)
        vector = query.vector
        if vector is None:
            started = time.perf_counter()
            with SEARCHES.aside():
                vector = self._one(self.embedder.embed_queries([query.text]))
            notes = (f"embed {(time.perf_counter() - started) * 1000:.1f} ms",)
        if not vector.any():
            return Ranking(self.name, notes=("nothing in the query to embed",))
        found = self.collection.vectors.search(vector, self.model, depth, query.scope, query.version)
        suits_query = reads(self.embedder, query.text)
        if not suits_query:
            notes = (*notes, f"{NOT_READ} this script")
        elif query.vector is None and _is_foreign(self.embedder, query.text):
            notes = (*notes, f"{NOT_READ} the language of the query")
        return Ranking.of(
            self.name,
            found,
            gate=query.gate,
            floor=-1.0,
            unrelated=self.embedder.unrelated,
            notes=notes,
            suits_query=suits_query,
        )

    def _one(self, rows: Any) -> Vector:
        """Return the query's vector at unit length; a caller's own embedder may return anything."""
        if getattr(rows, "shape", None) != (1, self.embedder.dim):
            shape = getattr(rows, "shape", type(rows).__name__)
            raise EmbedderError(
                f"embedder {self.embedder.spec!r} gave {shape} for one query, not (1, {self.embedder.dim})"
            )
        vector: Vector = rows[0]
        length = math.hypot(*vector.tolist())  # no overflow and no underflow, however odd the numbers are
        if not math.isfinite(length):
            raise EmbedderError(f"embedder {self.embedder.spec!r} gave a NaN or infinite value for the query")
        return vector if length == 0.0 or abs(length - 1.0) <= 1e-4 else vector / length
