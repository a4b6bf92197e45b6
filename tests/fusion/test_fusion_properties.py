"""Properties that hold for every fusion, normaliser and input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import fsum, isfinite

from hypothesis import assume, given
from hypothesis import strategies as st

from trivet.fusion import FUSIONS, LARGEST, NORMALIZERS, fuse
from trivet.types import Key, Ranking

LEGS = ("lexical", "dense", "trigram", "graph")

any_score = st.floats(-LARGEST, LARGEST)
plain_score = st.integers(-1000, 1000).map(lambda n: n / 8)  # exact in binary: affine changes round the same way
weight = st.floats(0.01, 10.0)
methods, normalizers = st.sampled_from(sorted(FUSIONS)), st.sampled_from(sorted(NORMALIZERS))
rrf_ks = st.floats(-0.9, 200.0)


@st.composite
def a_ranking(draw: st.DrawFn, leg: str, score: st.SearchStrategy[float] = any_score) -> Ranking:
    keys = draw(st.lists(st.integers(0, 15), unique=True, max_size=12))
    scores = sorted(draw(st.lists(score, min_size=len(keys), max_size=len(keys))), reverse=True)
    return Ranking(leg, tuple(keys), tuple(scores), floor=draw(st.sampled_from([0.0, -1.0])))


def some_rankings(score: st.SearchStrategy[float] = any_score) -> st.SearchStrategy[list[Ranking]]:
    return st.integers(1, len(LEGS)).flatmap(
        lambda n: st.tuples(*[a_ranking(leg, score) for leg in LEGS[:n]]).map(list)
    )


some_weights = st.dictionaries(st.sampled_from(LEGS), weight)


def scores(method: str, rankings: Sequence[Ranking], weights: dict[str, float], **settings: object) -> dict[Key, float]:
    return {c.key: c.score for c in fuse(method, rankings, weights, **settings)}  # type: ignore[arg-type]


def close(one: dict[Key, float], other: dict[Key, float], within: float = 1e-9) -> bool:
    return one.keys() == other.keys() and all(
        abs(one[key] - other[key]) <= within * max(1.0, abs(one[key])) for key in one
    )


@given(methods, normalizers, some_rankings(), some_weights, rrf_ks)
def test_the_pool_is_the_union_in_order_and_the_account_adds_up(
    method: str, normalize: str, rankings: list[Ranking], weights: dict[str, float], rrf_k: float
) -> None:
    fused = fuse(method, rankings, weights, normalize=normalize, rrf_k=rrf_k)
    assert sorted(c.key for c in fused) == sorted({key for ranking in rankings for key in ranking.keys})
    assert all(a.score >= b.score for a, b in pairwise(fused))
    for candidate in fused:
        assert isfinite(candidate.score)
        assert fsum(c.share for c in candidate.contributions) == candidate.score
        for c in candidate.contributions:
            ranking = next(r for r in rankings if r.leg == c.leg)
            assert ranking.keys[c.rank - 1] == candidate.key
            assert ranking.scores[c.rank - 1] == c.raw
        assert {c.leg for c in candidate.contributions} == {r.leg for r in rankings if candidate.key in r.keys}


@given(methods, normalizers, some_rankings(), some_weights, st.randoms())
def test_the_order_of_the_legs_changes_no_score(
    method: str, normalize: str, rankings: list[Ranking], weights: dict[str, float], random: object
) -> None:
    shuffled = list(rankings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (scores(method, order, weights, normalize=normalize) for order in (rankings, shuffled))
    assert close(one, other) if method == "convex" else one == other  # convex: the sum of the weights is rounded


@given(methods, normalizers, some_rankings(), some_weights)
def test_equal_scores_stay_in_first_seen_order(
    method: str, normalize: str, rankings: list[Ranking], weights: dict[str, float]
) -> None:
    seen = list(dict.fromkeys(key for ranking in rankings for key in ranking.keys))
    fused = fuse(method, rankings, weights, normalize=normalize)
    for a, b in pairwise(fused):
        assert a.score > b.score or seen.index(a.key) < seen.index(b.key)


@given(methods, normalizers, some_rankings(), some_weights, st.sampled_from(LEGS))
def test_weight_zero_is_the_leg_left_out(
    method: str, normalize: str, rankings: list[Ranking], weights: dict[str, float], off: str
) -> None:
    without = [ranking for ranking in rankings if ranking.leg != off]
    assert fuse(method, rankings, {**weights, off: 0.0}, normalize=normalize) == fuse(
        method, without, weights, normalize=normalize
    )


@given(
    methods,
    st.sampled_from(["minmax", "tm2c2", "zscore", "dbsf"]),
    some_rankings(plain_score),
    st.sampled_from(LEGS),
    weight,
    weight,
)
def test_more_weight_on_a_leg_never_costs_its_documents(
    method: str, normalize: str, rankings: list[Ranking], leg: str, light: float, more: float
) -> None:
    """Convex weights are proportions, so there the claim is about the sum before it is divided."""

    def undivided(heavy: float) -> dict[Key, float]:
        total = fsum(heavy if r.leg == leg else 1.0 for r in rankings) if method == "convex" else 1.0
        return {key: s * total for key, s in scores(method, rankings, {leg: heavy}, normalize=normalize).items()}

    low, high = undivided(light), undivided(light + more)
    listed = {key for ranking in rankings if ranking.leg == leg for key in ranking.keys}
    for key in low:
        assert high[key] >= low[key] - 1e-9
        assert key in listed or abs(high[key] - low[key]) <= 1e-9


@given(st.sampled_from(["rrf", "isr"]), some_rankings(plain_score), some_weights, st.floats(0.01, 100))
def test_rank_fusion_sees_no_scores(
    method: str, rankings: list[Ranking], weights: dict[str, float], stretch: float
) -> None:
    changed = [replace(r, scores=tuple(s * stretch for s in r.scores)) for r in rankings]
    assert scores(method, rankings, weights) == scores(method, changed, weights)


@given(
    st.sampled_from(["convex", "comb_sum", "comb_mnz"]),
    st.sampled_from(["minmax", "zscore", "dbsf"]),
    some_rankings(plain_score),
    some_weights,
    st.sampled_from([0.25, 2.0, 8.0]),
    st.integers(-100, 100),
)
def test_a_positive_affine_change_of_one_legs_scores_changes_nothing(
    method: str, normalize: str, rankings: list[Ranking], weights: dict[str, float], stretch: float, shift: int
) -> None:
    first = rankings[0]
    changed = [replace(first, scores=tuple(s * stretch + shift for s in first.scores)), *rankings[1:]]
    before, after = (scores(method, lists, weights, normalize=normalize) for lists in (rankings, changed))
    assert close(before, after)


@given(st.sampled_from(["minmax", "tm2c2", "dbsf"]), some_rankings(), some_weights)
def test_convex_is_bounded(normalize: str, rankings: list[Ranking], weights: dict[str, float]) -> None:
    assert all(0.0 <= s <= 1.0 + 1e-12 for s in scores("convex", rankings, weights, normalize=normalize).values())


@given(normalizers, some_rankings(plain_score), some_weights)
def test_convex_and_comb_sum_give_one_order(normalize: str, rankings: list[Ranking], weights: dict[str, float]) -> None:
    convex, summed = (scores(m, rankings, weights, normalize=normalize) for m in ("convex", "comb_sum"))
    total = fsum(weights.get(r.leg, 1.0) for r in rankings)
    assert close({key: s * total for key, s in convex.items()}, summed)


@given(normalizers, a_ranking("leg"))
def test_a_normaliser_keeps_the_order(normalize: str, ranking: Ranking) -> None:
    points = NORMALIZERS[normalize](ranking)
    assert len(points) == len(ranking)
    assert all(isfinite(p) for p in points)
    assert all(a >= b for a, b in pairwise(points))


@given(st.sampled_from(["minmax", "tm2c2", "zscore", "dbsf"]), a_ranking("leg"))
def test_absent_is_never_better_than_present(normalize: str, ranking: Ranking) -> None:
    assume(len(ranking))
    assert min(NORMALIZERS[normalize](ranking)) >= 0.0
