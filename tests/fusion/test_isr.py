from __future__ import annotations

import pytest

from trivet.fusion import fuse
from trivet.types import Ranking

LEXICAL = Ranking("lexical", ("a", "b", "c"), (9.0, 5.0, 1.0))
DENSE = Ranking("dense", ("d", "c", "b"), (0.8, 0.6, 0.4))


def test_by_hand() -> None:
    fused = {c.key: c.score for c in fuse("isr", [LEXICAL, DENSE], {})}
    assert fused == pytest.approx(
        {"a": 1 * 1 / 1**2, "b": 2 * (1 / 2**2 + 1 / 3**2), "c": 2 * (1 / 3**2 + 1 / 2**2), "d": 1 * 1 / 1**2}
    )


def test_weighted() -> None:
    fused = {c.key: c.score for c in fuse("isr", [LEXICAL, DENSE], {"lexical": 0.5, "dense": 3.0})}
    assert fused == pytest.approx(
        {"a": 0.5, "b": 2 * (0.5 / 2**2 + 3 / 3**2), "c": 2 * (0.5 / 3**2 + 3 / 2**2), "d": 3.0}
    )


def test_shares_carry_the_factor() -> None:
    account = next(c for c in fuse("isr", [LEXICAL, DENSE], {}) if c.key == "b").contributions
    assert [c.share for c in account] == pytest.approx([2 / 2**2, 2 / 3**2])
