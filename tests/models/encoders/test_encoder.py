from __future__ import annotations

import numpy as np

from trivet.models.encoders.encoder import Blocked


def test_blocks_hold_a_matrix_to_half_a_step() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 192)).astype(np.float32)
    blocked = Blocked.of(matrix)
    error = np.abs(blocked.floats() - matrix).reshape(5, 3, 64)
    assert (error <= blocked.scales[:, :, None] * 0.5001).all()


def test_an_outlier_only_affects_its_own_block() -> None:
    matrix = np.full((1, 128), 0.01, dtype=np.float32)
    matrix[0, 0] = 100.0
    near, other = np.abs(Blocked.of(matrix).floats() - matrix).reshape(2, 64)
    assert near[1:].max() > 0.009, "next to the outlier the small values are lost"
    assert other.max() < 1e-4
