"""The embedding object of a framework as an embedder of trivet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trivet.errors import EmbedderError
from trivet.models.embedders.rows import embed_texts, unit_rows
from trivet.models.embedders.sentences import unrelated_cosine

if TYPE_CHECKING:
    from trivet.types import Vector

Embed = Callable[[list[str]], Sequence[Sequence[float]]]

_NAMES = ("model", "model_name", "model_id")  # where the classes of the frameworks keep the name of their model


class FrameworkEmbedder:
    """An embedder that calls two functions of a framework's embedding object.

    Vectors are stored under the names of its class and model. A collection is opened again with an object of the same
    class and model; without it, a search is by words, and says so.
    """

    def __init__(self, framework: str, model: Any, queries: Embed, passages: Embed) -> None:
        name = next((str(getattr(model, each)) for each in _NAMES if getattr(model, each, None)), "")
        self.id = "/".join(part for part in (framework, type(model).__name__, name) if part)
        self.spec = f"{framework}-object:{self.id}"
        self._queries, self._passages = queries, passages

    @cached_property
    def dim(self) -> int:
        """The length of a vector, of one text that is embedded to learn it."""
        return len(self._call(self._passages, ["dimension"])[0])

    @cached_property
    def unrelated(self) -> float:
        """The cosine similarity that two unrelated texts typically have."""
        return unrelated_cosine(self)

    def embed_queries(self, texts: list[str]) -> Vector:
        """Return one row of unit length for each query."""
        return embed_texts(texts, lambda: self.dim, lambda live: self._call(self._queries, live))

    def embed_passages(self, texts: list[str]) -> Vector:
        """Return the vectors of passages in the same form."""
        return embed_texts(texts, lambda: self.dim, lambda live: self._call(self._passages, live))

    def _call(self, embed: Embed, texts: list[str]) -> Vector:
        try:
            return unit_rows(embed(texts), self.id)
        except EmbedderError:
            raise
        except Exception as error:  # such as an unreachable endpoint: the framework's message says which
            raise EmbedderError(f"embedder {self.id!r} failed: {error}") from error
