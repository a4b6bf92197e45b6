from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf, nan
from typing import Any

import pytest

from trivet.errors import ScorerError
from trivet.models.scorers.cached import CachedScorer, checked


class Counting:
    """Scores a passage by its length, and keeps what it was asked."""

    spec, batch = "counting", 8

    def __init__(self, id: str = "counting/1") -> None:
        self.id = id
        self.asked: list[str] = []

    def scores(self, query: str, passages: list[str]) -> list[float]:
        self.asked += passages
        return [float(len(passage)) for passage in passages]


@pytest.fixture
def cached() -> Any:
    made = CachedScorer(Counting())
    yield made
    made.close()


def test_scores_are_cached(cached: CachedScorer) -> None:
    assert cached.known("q", ["a", "bb"]) == [None, None]
    assert cached.ask("q", ["a", "bb", "a"]).result(60) == [1.0, 2.0, 1.0]
    assert cached.scorer.asked == ["a", "bb"], "each passage once"  # type: ignore[attr-defined]
    assert cached.known("q", ["bb", "c", "a"]) == [2.0, None, 1.0]


def test_the_cache_tells_query_passage_and_scorer_apart(cached: CachedScorer) -> None:
    cached.score("question", ["passage"])
    assert cached.known("question ", ["passage"]) == [None]
    assert cached.known("questionp", ["assage"]) == [None], "the parts are kept apart"
    cached.scorer.id = "counting/2"  # type: ignore[misc]
    assert cached.known("question", ["passage"]) == [None]


def test_a_score_of_zero_is_a_score(cached: CachedScorer) -> None:
    cached.score("q", [""])
    assert cached.known("q", [""]) == [0.0]


def test_the_least_recently_used_go_first() -> None:
    cached = CachedScorer(Counting(), size=2)
    cached.score("q", ["a", "bb"])
    cached.known("q", ["a"])
    cached.score("q", ["ccc"])
    assert cached.known("q", ["a", "bb", "ccc"]) == [1.0, None, 3.0]
    cached.close()


def test_broken_text_is_no_failure(cached: CachedScorer) -> None:
    assert cached.ask("q\ud800", ["a\udfff"]).result(60) == [2.0]
    assert cached.known("q\ud800", ["a\udfff"]) == [2.0]


def test_one_that_hangs_does_not_stop_another() -> None:
    gate = threading.Event()

    class Stuck(Counting):
        def scores(self, query: str, passages: list[str]) -> list[float]:
            assert query != "stuck" or gate.wait(60)
            return super().scores(query, passages)

    cached = CachedScorer(Stuck())
    late = cached.ask("stuck", ["a"])
    assert cached.ask("other", ["a"]).result(60) == [1.0]
    assert not late.done()
    gate.set()
    assert late.result(60) == [1.0]
    assert cached.known("stuck", ["a"]) == [1.0], "too late for its search, and still cached"
    cached.close()


def test_it_is_opened_once_and_again_where_that_failed() -> None:
    class Heavy(Counting):
        opened = 0

        def open(self) -> None:
            self.opened += 1
            if self.opened == 1:
                raise OSError("not yet")

    heavy = Heavy()
    cached = CachedScorer(heavy)
    with pytest.raises(OSError, match="not yet"):
        cached.open().result(60)
    assert cached.open().result(60) is None
    assert cached.open().result(60) is None
    assert heavy.opened == 2
    cached.close()


def test_one_without_anything_to_open_is_open(cached: CachedScorer) -> None:
    assert cached.open().result(60) is None


def test_a_closed_one_says_so(cached: CachedScorer) -> None:
    cached.close()
    with pytest.raises(ScorerError, match="was closed while a search was under way"):
        cached.ask("q", ["a"])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0], "scorer 'me' gave 1 scores for 2 passages"),
        ([1.0, 2.0, 3.0], "gave 3 scores for 2 passages"),
        ([1.0, nan], "gave nan as a score"),
        ([-inf, 0.0], "gave -inf as a score"),
        ([None, 1.0], "not a list of numbers"),
        (["high", 1.0], "not a list of numbers"),
        (None, "not a list of numbers"),
    ],
)
def test_what_is_no_score_is_the_scorers_failure(scores: Sequence[float], message: str) -> None:
    with pytest.raises(ScorerError, match=message):
        checked(scores, 2, "me")


def test_a_wrong_score_is_not_cached(cached: CachedScorer) -> None:
    cached.scorer.scores = lambda query, passages: [nan]  # type: ignore[method-assign]
    with pytest.raises(ScorerError):
        cached.score("q", ["a"])
    assert cached.known("q", ["a"]) == [None]


def test_numpy_scores_are_scores() -> None:
    import numpy as np

    assert checked(np.array([1.5, 2.5], dtype=np.float32), 2, "me") == [1.5, 2.5]  # type: ignore[arg-type]
