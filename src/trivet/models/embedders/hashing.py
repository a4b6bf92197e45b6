"""An embedder without a model: feature hashing (Weinberger et al. 2009).

Words and character trigrams of the folded text are hashed to signed dimensions. It knows spelling, not meaning: for
tests, and for machines without room for a model. The vectors are the same on every platform and in every version, so
golden files may hold them.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from typing import TYPE_CHECKING

import numpy as np

from trivet.errors import InputError
from trivet.models.embedders.rows import unit_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from trivet.types import Vector

DEFAULT_DIM = 256
WORD_WEIGHT = 2.0  # of a word, beside 1 of a trigram: sharing a word must beat sharing a suffix

_WORD = re.compile(r"\w+")
#: Odd 64-bit multipliers, one for each place in a trigram (Knuth's multiplicative hashing).
_PLACES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def load(argument: str) -> Hashing:
    """Return the embedder of the spec ``hashing`` or ``hashing:DIM``."""
    if argument and not (argument.isascii() and argument.isdigit() and 8 <= int(argument) <= 65536):
        raise InputError(f"embedder 'hashing:{argument}': the dimension must be 8 to 65536, as in 'hashing:256'")
    return Hashing(int(argument or DEFAULT_DIM))


class Hashing:
    """Signed feature hashing into ``dim`` dimensions."""

    unrelated = 0.0

    def __init__(self, dim: int = DEFAULT_DIM) -> None:
        self.dim = dim
        self.spec = f"hashing:{dim}"
        self.id = f"hashing/{dim}/1"

    def embed_queries(self, texts: list[str]) -> Vector:
        return self.embed_passages(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return unit_rows(np.stack([self._counts(text) for text in texts]), self.spec)

    def _counts(self, text: str) -> npt.NDArray[np.float64]:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        codes = np.array([ord(char) for char in f" {' '.join(words)} "], dtype=np.uint64)
        trigrams = np.lib.stride_tricks.sliding_window_view(codes, 3) if words else np.zeros((0, 3), dtype=np.uint64)
        spelt = (trigrams * _PLACES).sum(axis=1, dtype=np.uint64)
        named = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], dtype=np.uint64) * _PLACES[0]
        mixed = np.concatenate([spelt, named])
        mixed ^= mixed >> np.uint64(29)
        mixed *= _PLACES[1]
        # The high bits of a product are mixed best: the dimension is taken from the top half, the sign from below it.
        places = ((mixed >> np.uint64(32)) % np.uint64(self.dim)).astype(np.int64)
        signs = np.where(mixed & np.uint64(1 << 31), 1.0, -1.0)
        signs[len(spelt) :] *= WORD_WEIGHT
        return np.bincount(places, weights=signs, minlength=self.dim).astype(np.float64)
