from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from trivet.errors import InputError
from trivet.rerank.composite import Composite
from trivet.types import Hit, Query

MakeHit = Callable[..., Hit]

NOW = datetime(2026, 5, 1, tzinfo=UTC)
QUERY = Query("anything", at=NOW)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def test_additive_by_hand(hit: MakeHit) -> None:
    hits = [hit("a", 0.04, importance=0.2, accessed=ago(60)), hit("b", 0.03, importance=1.0, accessed=ago(30))]
    a, b = Composite().rerank(hits, QUERY)
    assert (a.id, b.id) == ("a", "b")
    assert a.score == pytest.approx(0.80 * (0.04 / 0.04) + 0.05 * 0.25 + 0.15 * 0.2)
    assert b.score == pytest.approx(0.80 * (0.03 / 0.04) + 0.05 * 0.5 + 0.15 * 1.0)


def test_multiplicative_by_hand(hit: MakeHit) -> None:
    hits = [hit("a", 0.04, importance=0.2, accessed=ago(60)), hit("b", 0.03, importance=1.0, accessed=ago(30))]
    a, b = Composite(form="multiplicative").rerank(hits, QUERY)
    quality_a, quality_b = (0.25 * 0.05 + 0.2 * 0.15) / 0.20, (0.5 * 0.05 + 1.0 * 0.15) / 0.20
    assert a.score == pytest.approx((0.04 / 0.04) * (0.80 + 0.20 * quality_a))
    assert b.score == pytest.approx((0.03 / 0.04) * (0.80 + 0.20 * quality_b))


def test_multiplied_no_prior_makes_up_for_a_missing_match(hit: MakeHit) -> None:
    """The additive form lets irrelevant but important documents past a weak match."""
    hits = [hit("best", 1.0, importance=0), hit("weak", 0.1, importance=0), hit("off", 0.0, importance=1, accessed=NOW)]
    assert [h.id for h in Composite().rerank(hits, QUERY)] == ["best", "off", "weak"]
    assert [h.id for h in Composite(form="multiplicative").rerank(hits, QUERY)] == ["best", "weak", "off"]


@pytest.mark.parametrize(
    ("times", "recency"),
    [
        ({}, 0.0),
        ({"created": ago(30)}, 0.5),
        ({"created": ago(90), "updated": ago(30)}, 0.5),
        ({"created": ago(90), "updated": ago(60), "accessed": ago(30)}, 0.5),
        ({"accessed": NOW}, 1.0),
        ({"accessed": NOW + timedelta(days=400)}, 1.0),
        ({"accessed": ago(700_000)}, 0.0),
        ({"accessed": ago(30).replace(tzinfo=None)}, 0.5),
        ({"accessed": ago(30).astimezone(timezone(timedelta(hours=9)))}, 0.5),
    ],
)
def test_recency(hit: MakeHit, times: dict[str, datetime], recency: float) -> None:
    only_recency = Composite(relevance=0.0, recency=1.0, importance=0.0)
    assert only_recency.rerank([hit("a", 1.0, **times)], QUERY)[0].score == pytest.approx(recency)


def test_half_life_and_a_query_without_a_zone_or_a_time(hit: MakeHit) -> None:
    only_recency = Composite(relevance=0.0, recency=1.0, importance=0.0, half_life=7.0)
    old = hit("a", 1.0, accessed=ago(14))
    assert only_recency.rerank([old], Query("q", at=NOW.replace(tzinfo=None)))[0].score == pytest.approx(0.25)
    fresh = hit("a", 1.0, accessed=datetime.now(UTC))
    assert only_recency.rerank([fresh], Query("q"))[0].score == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("form", ["additive", "multiplicative"])
@pytest.mark.parametrize("scores", [(0.0, 0.0, 0.0), (-1.0, -2.0, -3.0), (2.0, 0.0, -9.0)])
def test_scores_at_or_below_zero_are_no_match(hit: MakeHit, form: str, scores: tuple[float, ...]) -> None:
    ranked = Composite(form=form).rerank([hit(str(i), s) for i, s in enumerate(scores)], QUERY)
    assert [h.id for h in ranked] == ["0", "1", "2"]
    assert all(0.0 <= h.score <= 1.0 for h in ranked)


def test_stable_and_empty(hit: MakeHit) -> None:
    assert Composite().rerank([], QUERY) == []
    assert [h.id for h in Composite().rerank([hit(id, 0.3) for id in "cab"], QUERY)] == ["c", "a", "b"]


def test_the_change_is_written_down_and_the_relevance_kept(hit: MakeHit) -> None:
    (one,) = Composite().rerank([hit("a", 0.04, importance=1.0, accessed=NOW)], QUERY)
    (note,) = one.adjustments
    assert (note.reranker, note.before, note.after) == ("composite", 0.04, one.score)
    assert note.reason == "additive: relevance 1.000, recency 1.000, importance 1.00"
    assert one.relevance == 0.5


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(InputError, match="relevance, recency and importance are all 0"):
        Composite(relevance=0.0, recency=0.0, importance=0.0)
