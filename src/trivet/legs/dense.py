"""Which documents mean something like the question?

Cosine between the question's vector and the passages', exact after a quantised scan.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trivet.errors import EmbedderError
from trivet.legs.question import Found, Question, ranking
from trivet.types import Embedder, Ranking

if TYPE_CHECKING:
    from trivet.types import Vector


class Meaning(Protocol):
    def find_near(self, vector: Vector, model: Any, depth: int, scope: Any, version: int) -> list[Found]: ...


@dataclass(frozen=True, slots=True)
class Dense:
    embedder: Embedder
    model: Any
    meaning: Meaning
    name: str = "dense"

    def rank(self, question: Question, depth: int) -> Ranking:
        notes: tuple[str, ...] = ("vector given",)
        vector = question.vector
        if vector is None:
            started = time.perf_counter()
            vector = self.embedder.embed_queries([question.text])[0]
            notes = (f"embed {(time.perf_counter() - started) * 1000:.1f} ms",)
        if not vector.any():
            return Ranking(self.name, notes=("nothing in the question to embed",))
        length = math.sqrt(float(vector @ vector))  # a caller's own embedder may give anything
        if not math.isfinite(length):
            raise EmbedderError(f"embedder {self.embedder.spec!r} gave a NaN or infinite value for the question")
        if abs(length - 1.0) > 1e-4:
            vector = vector / length
        found = self.meaning.find_near(vector, self.model, depth, question.scope, question.version)
        return ranking(self.name, found, floor=-1.0, unrelated=self.embedder.unrelated, gate=question.gate, notes=notes)
