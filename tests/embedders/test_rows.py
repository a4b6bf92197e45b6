from __future__ import annotations

import numpy as np
import pytest

from trivet.embedders.rows import live_texts, scatter, unit_rows
from trivet.errors import EmbedderError


def test_rows_are_scaled_to_length_one_and_zero_stays_zero() -> None:
    rows = unit_rows([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e200, 0.0]], "m")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_no_number_is_the_models_failure(bad: float) -> None:
    with pytest.raises(EmbedderError, match=r"'m' gave a NaN or infinite value in row 1"):
        unit_rows([[1.0, 0.0], [bad, 0.0]], "m")


def test_blank_texts_are_left_out_and_put_back_as_zeros() -> None:
    places, live = live_texts(["", "a", " \t", "b\udfff"])
    assert (places, live) == ([1, 3], ["a", "b?"])
    rows = scatter(["", "a", " \t", "b"], 2, np.ones((2, 2), dtype=np.float32), places)
    assert rows.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
