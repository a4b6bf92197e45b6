"""Our fusion gives the same scores as ranx for the same methods.

One ranx call per method over many random queries at once: its first call of each compiles.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

from trivet.fusion import NORMALIZERS, fuse
from trivet.types import Key, Ranking

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ranx = pytest.importorskip("ranx")

pytestmark = [
    pytest.mark.slow,  # its first run compiles for half a minute; later ones are served from numba's cache
    pytest.mark.filterwarnings("ignore"),  # numba's and ranx's own
]

QUERIES = [f"q{i}" for i in range(40)]
Runs = dict[str, dict[str, Ranking]]


@pytest.fixture(scope="module")
def legs() -> Runs:
    """leg -> query -> ranking; scores of a leg's own scale, distinct, because ranx orders ties its own way."""
    dice = random.Random(7)

    def ranking(leg: str, low: float, high: float) -> Ranking:
        keys = dice.sample([f"d{i}" for i in range(60)], dice.randint(2, 40))
        scores = sorted({dice.uniform(low, high) for _ in keys}, reverse=True)
        return Ranking(leg, tuple(keys), tuple(scores))

    scales = {"lexical": (0.5, 30.0), "dense": (-0.2, 0.9), "graph": (0.0, 1e-3)}
    return {leg: {q: ranking(leg, *scale) for q in QUERIES} for leg, scale in scales.items()}


@pytest.fixture(scope="module")
def runs(legs: Runs) -> list[Any]:
    return [
        ranx.Run({q: dict(zip(r.keys, r.scores, strict=True)) for q, r in ranked.items()}, name=leg)
        for leg, ranked in legs.items()
    ]


def ours(
    legs: Runs, method: str, weights: dict[str, float] | None = None, **settings: Any
) -> dict[str, dict[Key, float]]:
    return {
        q: {c.key: c.score for c in fuse(method, [legs[leg][q] for leg in legs], weights or {}, **settings)}
        for q in QUERIES
    }


def assert_same(mine: dict[str, dict[Key, float]], theirs: Any) -> None:
    for q in QUERIES:
        assert mine[q] == pytest.approx({str(k): float(v) for k, v in dict(theirs.run[q]).items()}, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("method", "settings", "norm", "theirs", "params"),
    [
        ("rrf", {"rrf_k": 60}, None, "rrf", {"k": 60}),
        ("rrf", {"rrf_k": 5}, None, "rrf", {"k": 5}),
        ("isr", {}, None, "isr", {}),
        ("comb_sum", {"normalize": "none"}, None, "sum", {}),
        ("comb_sum", {"normalize": "minmax"}, "min-max", "sum", {}),
        ("comb_mnz", {"normalize": "minmax"}, "min-max", "mnz", {}),
    ],
)
def test_unweighted(
    legs: Runs,
    runs: list[Any],
    method: str,
    settings: dict[str, Any],
    norm: str | None,
    theirs: str,
    params: dict[str, Any],
) -> None:
    assert_same(ours(legs, method, **settings), ranx.fuse(runs, norm=norm, method=theirs, params=params))


def test_weighted_sum_of_minmax(legs: Runs, runs: list[Any]) -> None:
    weights = {"lexical": 0.3, "dense": 0.6, "graph": 0.1}
    theirs = ranx.fuse(runs, norm="min-max", method="wsum", params={"weights": tuple(weights.values())})
    assert_same(ours(legs, "convex", weights, normalize="minmax"), theirs)
    assert_same(ours(legs, "comb_sum", weights, normalize="minmax"), theirs)


def test_zscore_is_zmuv_counted_from_the_lowest(legs: Runs, runs: list[Any]) -> None:
    from ranx.normalization import zmuv_norm

    for run, ranked in zip(runs, legs.values(), strict=True):
        theirs = zmuv_norm(run).run
        for q in QUERIES:
            z = {str(k): float(v) for k, v in dict(theirs[q]).items()}
            low = min(z.values())
            mine = dict(zip(ranked[q].keys, NORMALIZERS["zscore"](ranked[q]), strict=True))
            assert mine == pytest.approx({k: v - low for k, v in z.items()}, rel=1e-9, abs=1e-9)
