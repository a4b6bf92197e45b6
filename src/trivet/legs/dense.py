"""Which documents mean something like the question?

Cosine between the question's vector and the passages', exact after a quantised scan.
"""

from __future__ import annotations

import math
import time
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from trivet.errors import EmbedderError
from trivet.legs.question import Found, Question, ranking
from trivet.types import Embedder, Ranking

if TYPE_CHECKING:
    from trivet.types import Vector


def reads(embedder: Embedder, text: str) -> bool:
    """Can this model make much of the text? One that says nothing of ``scripts`` is trusted with all of them."""
    scripts = getattr(embedder, "scripts", ())
    letters = [letter for letter in text if letter.isalpha()]
    if not scripts or not letters:
        return True
    known = sum(unicodedata.name(letter, "").startswith(scripts) for letter in letters)
    return known * 2 >= len(letters)


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
            vector = self._one(self.embedder.embed_queries([question.text]))
            notes = (f"embed {(time.perf_counter() - started) * 1000:.1f} ms",)
        if not vector.any():
            return Ranking(self.name, notes=("nothing in the question to embed",))
        found = self.meaning.find_near(vector, self.model, depth, question.scope, question.version)
        at_home = reads(self.embedder, question.text)
        if not at_home:
            notes = (*notes, "the model does not read this script")
        listed = ranking(
            self.name, found, floor=-1.0, unrelated=self.embedder.unrelated, gate=question.gate, notes=notes
        )
        return listed if at_home else replace(listed, at_home=False)

    def _one(self, rows: Any) -> Vector:
        """The question's vector, of unit length; a caller's own embedder may have given anything."""
        if getattr(rows, "shape", None) != (1, self.embedder.dim):
            shape = getattr(rows, "shape", type(rows).__name__)
            raise EmbedderError(
                f"embedder {self.embedder.spec!r} gave {shape} for one question, not (1, {self.embedder.dim})"
            )
        vector: Vector = rows[0]
        length = math.hypot(*vector.tolist())  # no overflow and no underflow, however odd the numbers are
        if not math.isfinite(length):
            raise EmbedderError(f"embedder {self.embedder.spec!r} gave a NaN or infinite value for the question")
        return vector if length == 0.0 or abs(length - 1.0) <= 1e-4 else vector / length
