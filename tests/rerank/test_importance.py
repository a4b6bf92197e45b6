from __future__ import annotations

from collections.abc import Callable
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank.importance import Importance
from trivet.types import Adjustment, Hit, Query

MakeHit = Callable[..., Hit]

QUERY = Query("anything")
importances = st.floats(0.0, 1.0)


def test_by_hand(hit: MakeHit) -> None:
    hits = [hit("plain", 0.5, importance=0.0), hit("vital", 0.4, importance=1.0), hit("usual", 0.2, importance=0.5)]
    ranked = Importance().rerank(hits, QUERY)
    assert [(h.rank, h.id) for h in ranked] == [(1, "vital"), (2, "plain"), (3, "usual")]
    assert [h.score for h in ranked] == pytest.approx([0.4 * 1.0, 0.5 * 0.7, 0.2 * (0.7 + 0.3 * 0.5)])


def test_every_change_is_written_down(hit: MakeHit) -> None:
    plain, vital = Importance().rerank([hit("plain", 1.0, importance=0.0), hit("vital", 0.6, importance=1.0)], QUERY)
    assert plain.adjustments == (Adjustment("importance", 1.0, 0.7, "importance 0.00: × 0.700"),)
    assert vital.adjustments == ()
    assert (plain.relevance, plain.fused) == (0.5, 1.0)


def test_equal_scores_stay_in_order(hit: MakeHit) -> None:
    hits = [hit(id, 0.3, importance=0.5) for id in "cab"]
    assert [h.id for h in Importance().rerank(hits, QUERY)] == ["c", "a", "b"]


def test_below_zero_the_unimportant_sink_too(hit: MakeHit) -> None:
    """-1 × 0.7 would be a promotion."""
    hits = [hit("plain", -1.0, importance=0.0), hit("vital", -1.0, importance=1.0)]
    assert [(h.id, h.score) for h in Importance().rerank(hits, QUERY)] == [("vital", -1.0), ("plain", -1.3)]


@pytest.mark.parametrize(("importance", "factor"), [(7.0, 1.0), (-1.0, 0.7), (float("nan"), 0.7)])
def test_an_importance_off_the_scale_counts_as_its_end(hit: MakeHit, importance: float, factor: float) -> None:
    assert Importance().rerank([hit("a", 1.0, importance=importance)], QUERY)[0].score == pytest.approx(factor)


@given(st.lists(st.tuples(st.floats(0.001, 1.0), importances), max_size=8), st.floats(0.0, 1.0))
def test_a_hit_is_overtaken_only_by_scores_of_at_least_floor_times_its_own(
    hit: MakeHit, made: list[tuple[float, float]], least: float
) -> None:
    hits = [hit(str(i), score, importance=worth) for i, (score, worth) in enumerate(sorted(made, reverse=True))]
    ranked = Importance(floor=least).rerank(hits, QUERY)
    for place, ahead in enumerate(ranked):
        for behind in ranked[place + 1 :]:
            assert ahead.fused >= least * behind.fused - 1e-12


@given(st.lists(importances, min_size=1, max_size=50), st.sampled_from([4, 10, 60]), st.sampled_from([0.5, 0.7, 0.9]))
def test_on_one_rrf_list_the_displacement_is_bounded_in_ranks(
    hit: MakeHit, worths: list[float], rrf_k: int, least: float
) -> None:
    hits = [hit(str(r), 1 / (rrf_k + r), rank=r, importance=worth) for r, worth in enumerate(worths, start=1)]
    ranked = Importance(floor=least).rerank(hits, QUERY)
    for now in ranked:
        was = int(now.id)
        bound = floor((rrf_k + was) / least - rrf_k + 1e-9)
        assert now.rank <= max(was, bound)
        assert all(int(ahead.id) <= max(was, bound) for ahead in ranked[: now.rank])


@pytest.mark.parametrize(("rrf_k", "last"), [(60, 27), (4, 3)])
def test_the_bound_of_the_docstring_is_reached(hit: MakeHit, rrf_k: int, last: int) -> None:
    for rank, first in ((last, str(last)), (last + 1, "1")):
        hits = [hit("1", 1 / (rrf_k + 1), importance=0.0), hit(str(rank), 1 / (rrf_k + rank), importance=1.0)]
        assert Importance().rerank(hits, QUERY)[0].id == first
