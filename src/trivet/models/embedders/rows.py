"""Rows of vectors as the legs expect them: float32, finite, of unit length or all zero.

The legs take cosines as dot products and never check for NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from trivet.errors import EmbedderError

if TYPE_CHECKING:
    import numpy.typing as npt

    from trivet.types import Vector


def unit_rows(values: npt.ArrayLike, model: str) -> Vector:
    """Return L2-normalised float32 rows; a zero row stays zero, a NaN or infinity raises ``EmbedderError``."""
    rows: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise EmbedderError(
            f"embedder {model!r} gave a NaN or infinite value in row {bad}: check the model or endpoint"
        )
    scaled = rows / _or_one(np.abs(rows).max(axis=1, initial=0.0))  # first, or the squares of huge values overflow
    return (scaled / _or_one(np.linalg.norm(scaled, axis=1))).astype(np.float32)


def _or_one(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(sizes > 0.0, sizes, 1.0)[:, None]


def embed_texts(texts: list[str], dim: Callable[[], int], embed: Callable[[list[str]], Vector]) -> Vector:
    """Return a row for each text: those of ``embed``, and zeros for blank texts, which it is not given.

    ``dim`` is called afterwards, since an endpoint's size is known from its first response. The texts are made valid
    Unicode: a lone surrogate, as in broken files, becomes "?".
    """
    live = [place for place, text in enumerate(texts) if text.strip()]
    found = embed([texts[place].encode("utf-8", "replace").decode("utf-8") for place in live]) if live else None
    rows = np.zeros((len(texts), dim()), dtype=np.float32)
    if found is not None:
        rows[live] = found
    return rows
