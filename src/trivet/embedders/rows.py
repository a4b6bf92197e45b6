"""What holds for every row of vectors, whichever model made it?

Unit length or all zero, float32, finite: the legs take cosines as dot products and never look for NaN again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.errors import EmbedderError

if TYPE_CHECKING:
    import numpy.typing as npt

    from trivet.types import Vector


def unit_rows(values: npt.ArrayLike, model: str) -> Vector:
    """``values`` as L2-normalised float32 rows; a zero row stays zero, a NaN or infinity is the model's failure."""
    rows: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise EmbedderError(
            f"embedder {model!r} gave a NaN or infinite value in row {bad}: check the model or endpoint"
        )
    scaled = rows / _or_one(np.abs(rows).max(axis=1, initial=0.0))  # first, because the squares of huge values overflow
    return (scaled / _or_one(np.linalg.norm(scaled, axis=1))).astype(np.float32)


def _or_one(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(sizes > 0.0, sizes, 1.0)[:, None]


def scatter(texts: list[str], dim: int, rows: Any, live: list[int]) -> Vector:
    """Put the rows of the non-blank texts back in their places; blank ones stay zero."""
    out = np.zeros((len(texts), dim), dtype=np.float32)
    if live:
        out[live] = rows
    return out


def live_texts(texts: list[str]) -> tuple[list[int], list[str]]:
    """Which texts have something to embed, as valid Unicode (a lone surrogate, as broken files hold, becomes "?")."""
    places = [place for place, text in enumerate(texts) if text.strip()]
    return places, [texts[place].encode("utf-8", "replace").decode("utf-8") for place in places]
