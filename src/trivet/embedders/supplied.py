"""What if the caller brings every vector?

Then the store needs only their size, and a text without a vector is a mistake to be told at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from trivet.errors import EmbedderError, InputError

if TYPE_CHECKING:
    from trivet.types import Vector


def load(argument: str) -> Supplied:
    """``vectors:DIM``."""
    if not (argument.isascii() and argument.isdigit() and 1 <= int(argument) <= 65536):
        raise InputError(f"embedder 'vectors:{argument}': give the dimension, 1 to 65536, as in 'vectors:384'")
    return Supplied(int(argument))


@dataclass(frozen=True)
class Supplied:
    """A stand-in that knows the size of the caller's vectors and embeds nothing."""

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
            f"embedder {self.spec!r} embeds no text (asked for a {noun}: {shown}): give the vector with the {noun}, "
            "or open the collection with an embedder such as 'granite'"
        )
