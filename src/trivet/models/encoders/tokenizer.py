"""Tokenizers: what a session needs of them, and those of the package ``tokenizers``, for models that users bring.

The built-in models have tokenizers of their own (``byte_pairs.py``, ``word_pieces.py``): with what it
needs, the package takes 37 MB, and it reads the built-in model's JSON in 65 ms.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trivet.errors import MissingExtraError

if TYPE_CHECKING:
    import tokenizers

#: The characters that Unicode calls white space. Python's own ``isspace`` has four control characters more.
WHITE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


class Encoding(NamedTuple):
    """The tokens of a text, or of two: their ids, and 0 for those of the first, 1 for those of the second."""

    ids: list[int]
    type_ids: list[int]

    @property
    def attention_mask(self) -> list[int]:
        return [1] * len(self.ids)


class Tokenizer(Protocol):
    """Turns texts into tokens."""

    limit: int  # tokens of a text, or of both; the rest is cut off

    def encode(self, text: str, pair: str | None = None) -> Encoding: ...


class TokenizersPackage:
    """A tokenizer of the package ``tokenizers``."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, limit: int) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(limit)  # of a pair, the longer text is cut first
        self._tokenizer, self.limit = tokenizer, limit

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        found = self._tokenizer.encode(text, pair)
        return Encoding(found.ids, found.type_ids)


def check_package(model: str) -> None:
    """Raise MissingExtraError where the package ``tokenizers`` is not installed."""
    if find_spec("tokenizers") is None:
        raise MissingExtraError(f"{model} needs the package tokenizers: pip install 'trivet[folder]'")


# --- classes of characters --------------------------------------------------------------------------------------------


class CharacterClass:
    """A set of characters, as sorted ranges."""

    def __init__(self, edges: Sequence[int]) -> None:
        """``edges`` are where a range begins, where it has ended, where the next one begins, …"""
        self._edges = edges

    def __contains__(self, code: int) -> bool:
        return bool(bisect.bisect_right(self._edges, code) % 2)


@cache
def character_classes() -> dict[str, CharacterClass]:
    """Return the classes as ``tokenizers`` has them: letters, numbers, punctuation, and removed.

    Unicode grows: Python's own tables would give a text other tokens in another Python. ``removed`` has the characters
    that BERT's normaliser drops: marks and what controls.
    """
    text = resources.files("trivet.data").joinpath("characters.txt").read_text(encoding="ascii")
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {name: CharacterClass([*accumulate(int(step, 36) for step in steps)]) for name, *steps in rows}
