"""``temporal`` promotes documents from the period of the query, ``recency`` newer ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import exp

import pytest

from trivet.rerank.recency import Recency
from trivet.rerank.temporal import Temporal
from trivet.types import Hit, Query, Understood, Window

MakeHit = Callable[..., Hit]
MAY = Window(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC), "in May")


def asked(window: Window | None = MAY) -> Query:
    return Query(
        "what happened", at=datetime(2026, 7, 1, tzinfo=UTC), understood=Understood("what happened", window=window)
    )


def test_in_the_window_by_its_weight_of_the_spread(hit: MakeHit) -> None:
    hits = [
        hit("april", 2.0, created=datetime(2026, 4, 1, tzinfo=UTC)),
        hit("may", 1.5, created=datetime(2026, 5, 9, tzinfo=UTC)),
        hit("never", 1.0),
    ]
    ranked = Temporal(weight=0.8).rerank(hits, asked())
    scores = {h.id: h.score for h in ranked}
    assert ranked[0].id == "may"
    assert scores["may"] == pytest.approx(1.5 + 0.8 * 1.0)
    assert scores["april"] == pytest.approx(2.0 + 0.8 * exp(-30 / (31 * 0.25)))
    assert scores["never"] == 1.0
    assert ranked[0].adjustments[0].reason == "2026-05-09 fits 1.00"


def test_what_is_told_soon_after_fits_better_than_what_came_as_long_before(hit: MakeHit) -> None:
    hits = [hit("before", 1.0, created=datetime(2026, 4, 21, tzinfo=UTC)), hit("none", 0.0)]
    hits.insert(1, hit("after", 1.0, created=datetime(2026, 6, 11, tzinfo=UTC)))
    assert [h.id for h in Temporal().rerank(hits, asked())][:2] == ["after", "before"]


def test_a_named_day_counts_twice_as_much(hit: MakeHit) -> None:
    day = Window(datetime(2026, 5, 9, tzinfo=UTC), datetime(2026, 5, 10, tzinfo=UTC), "9 May", named=True)
    hits = [hit("a", 1.0), hit("b", 0.0, created=datetime(2026, 5, 9, 12, tzinfo=UTC))]
    scores = {h.id: h.score for h in Temporal(weight=0.4).rerank(hits, asked(day))}
    assert scores["b"] == pytest.approx(0.8)


def test_a_question_without_a_time_is_none_of_its_business(hit: MakeHit) -> None:
    hits = [hit("a", 1.0, created=datetime(2026, 5, 9, tzinfo=UTC))]
    for query in (asked(None), Query("x")):
        assert not Temporal().concerns(query)
        assert Temporal().rerank(hits, query) == hits


class TestRecency:
    def test_the_newer_of_equals_comes_first_and_freshness_halves(self, hit: MakeHit) -> None:
        now = datetime(2026, 7, 1, tzinfo=UTC)
        hits = [
            hit("top", 1.0),
            hit("old", 0.5, created=datetime(2026, 6, 1, tzinfo=UTC)),
            hit("new", 0.5, created=now),
            hit("low", 0.0),
        ]
        scores = {h.id: h.score for h in Recency(weight=0.1).rerank(hits, Query("x", at=now))}
        assert scores == pytest.approx({"top": 1.0, "new": 0.6, "old": 0.55, "low": 0.0})

    def test_it_is_light(self, hit: MakeHit) -> None:
        now = datetime(2026, 7, 1, tzinfo=UTC)
        hits = [hit("right", 1.0), hit("fresh", 0.9, created=now), hit("low", 0.0)]
        assert Recency().rerank(hits, Query("x", at=now))[0].id == "right"
