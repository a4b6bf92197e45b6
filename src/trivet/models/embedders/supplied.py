"""The embedder of a collection whose vectors all come from the caller: a text without a vector is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from trivet.errors import EmbedderError, InputError

if TYPE_CHECKING:
    from trivet.types import Vector


def load(argument: str) -> Supplied:
    """Return the embedder of the spec ``vectors:DIM``."""
    if not (argument.isascii() and argument.isdigit() and 1 <= int(argument) <= 65536):
        raise InputError(f"embedder 'vectors:{argument}': give the dimension, 1 to 65536, as in 'vectors:384'")
    return Supplied(int(argument))


@dataclass(frozen=True)
class Supplied:
    """An embedder that knows the size of the caller's vectors and embeds nothing."""

    dim: int
    unrelated: float = 0.0

    @property
    def spec(self) -> str:
        return f"vectors:{self.dim}"

    @property
    def id(self) -> str:
        return f"vectors/{self.dim}"

    def embed_queries(self, texts: list[str]) -> Vector:
        self._refuse("query", texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        self._refuse("document", texts)

    def _refuse(self, noun: str, texts: list[str]) -> NoReturn:
        shown = repr(texts[0][:60]) if texts else "none"
        raise EmbedderError(
            f"embedder {self.spec!r} embeds no text (the {noun} {shown} has no vector): give the vector "
            f"with the {noun}, or open the collection with an embedder such as 'granite'"
        )
