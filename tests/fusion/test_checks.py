from __future__ import annotations

from math import inf, nan

import pytest

from trivet.errors import InputError
from trivet.fusion import check, check_rrf_k, fuse
from trivet.types import Ranking


@pytest.mark.parametrize(
    "good",
    [
        Ranking("lexical"),
        Ranking("lexical", ("a",), (0.0,)),
        Ranking("dense", (1, 2, 3), (-0.1, -0.5, -0.5), floor=-1.0),
        Ranking("dense", ("a", "b"), (1e100, -1e100)),
    ],
)
def test_a_ranking_that_keeps_its_promise_passes(good: Ranking) -> None:
    check(good)
    assert len(fuse("rrf", [good], {})) == len(good.keys)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Ranking("lexical", ("a",), ()), "'lexical' has 1 keys and 0 scores"),
        (Ranking("lexical", ("a", "b", "a"), (3, 2, 1)), "'lexical' holds the key 'a' twice"),
        (Ranking("lexical", ("a",), (nan,)), "'lexical' has the score nan for key 'a' at rank 1"),
        (Ranking("lexical", ("a", "b", "c"), (2.0, nan, 1.0)), "the score nan for key 'b' at rank 2"),
        (Ranking("lexical", ("a", "b"), (inf, 1.0)), "the score inf for key 'a' at rank 1"),
        (Ranking("lexical", ("a", "b"), (1.0, -inf)), "the score -inf for key 'b' at rank 2"),
        (Ranking("lexical", ("a",), (1e101,)), "the score 1e.101 for key 'a'"),
        (Ranking("dense", ("a", "b"), (0.1, 0.2)), "'dense' is not best first: rank 2 has 0.2, above 0.1"),
        (Ranking("dense", ("a",), (0.1,), floor=-inf), "'dense' has the floor -inf"),
    ],
)
def test_one_that_does_not_is_refused_with_the_place(bad: Ranking, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check(bad)


@pytest.mark.parametrize("rrf_k", [-1, -60, nan, inf, "60", True])
def test_a_constant_that_could_divide_by_zero_is_refused(rrf_k: float) -> None:
    with pytest.raises(InputError, match=f"rrf_k is {rrf_k!r}"):
        check_rrf_k(rrf_k)


@pytest.mark.parametrize("rrf_k", [-0.5, 0, 4, 60.0])
def test_one_that_cannot_passes(rrf_k: float) -> None:
    check_rrf_k(rrf_k)
    (fused,) = fuse("rrf", [Ranking("lexical", ("a",), (1.0,))], {}, rrf_k=rrf_k)
    assert fused.score == pytest.approx(1 / (rrf_k + 1))
