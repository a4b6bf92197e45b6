from __future__ import annotations

import numpy as np
import pytest

from trivet.errors import EmbedderError
from trivet.models.embedders.rows import embed_texts, unit_rows


def test_rows_are_scaled_to_length_one_and_zero_stays_zero() -> None:
    rows = unit_rows([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e200, 0.0]], "m")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_no_number_is_the_models_failure(bad: float) -> None:
    with pytest.raises(EmbedderError, match=r"'m' gave a NaN or infinite value in row 1"):
        unit_rows([[1.0, 0.0], [bad, 0.0]], "m")


def test_blank_texts_are_left_out_and_put_back_as_zeros() -> None:
    given: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        given.extend(texts)
        return np.ones((len(texts), 2), dtype=np.float32)

    rows = embed_texts(["", "a", " \t", "b\udfff"], lambda: 2, embed)
    assert rows.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert given == ["a", "b?"]
    assert embed_texts([" "], lambda: 2, embed).tolist() == [[0, 0]]
    assert given == ["a", "b?"], "nothing to embed, so nothing is called"
