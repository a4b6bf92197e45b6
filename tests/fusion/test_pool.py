from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from trivet.fusion.pool import FusedPool
from trivet.types import Candidate, Contribution, Ranking

RANKINGS = [Ranking("lexical", ("a", "b"), (2.0, 1.0)), Ranking("dense", ("b",), (0.5,))]


def test_union_with_accounts() -> None:
    b = (Contribution("lexical", 2, 1.0, 0.2, 2.0, 0.4), Contribution("dense", 1, 0.5, 0.7, 1.0, 0.7))
    a = (Contribution("lexical", 1, 2.0, 0.3, 2.0, 0.6),)
    assert FusedPool(RANKINGS, [2.0, 1.0], [[0.3, 0.2], [0.7]]) == [
        Candidate("b", 0.4 + 0.7, b),
        Candidate("a", 0.6, a),
    ]


def test_agreement() -> None:
    assert [c.score for c in FusedPool(RANKINGS, [2.0, 1.0], [[0.3, 0.2], [0.7]], agreement=True)] == pytest.approx(
        [2.2, 0.6]
    )


@pytest.mark.parametrize("kind", [Candidate, Contribution])
def test_what_comes_out_is_a_frozen_value_like_any_other(kind: type) -> None:
    """They are not made by their own __init__, for speed: a field added to the type must be filled here too."""
    candidate = FusedPool(RANKINGS, [1.0, 1.0], [[1.0, 0.5], [1.0]])[0]
    made = candidate if kind is Candidate else candidate.contributions[0]
    assert type(made) is kind
    twin = kind(**{field.name: getattr(made, field.name) for field in fields(kind)})
    assert made == twin
    assert hash(made) == hash(twin)
    assert repr(made) == repr(twin)
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(kind)[0].name, None)
