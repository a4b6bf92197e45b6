"""Neighbours add a part of their scores: by hand, and as properties."""

from __future__ import annotations

from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from trivet.fusion import fuse
from trivet.fusion.context import SOURCES, Lifted, Share, shares
from trivet.fusion.pool import scores_of
from trivet.types import Candidate, Key, Ranking

keys = st.integers(1, 30)
weights = st.floats(0.01, 1.0)


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    found = draw(st.dictionaries(keys, st.integers(-80, 80).map(lambda n: n / 8), max_size=20))
    ordered = sorted(found.items(), key=lambda item: item[1], reverse=True)
    return [Candidate(key, score, ()) for key, score in ordered]


def in_a_row(*sessions: list[int]) -> dict[int, tuple[int | None, int | None]]:
    """Return the neighbours of turns that stand in these orders."""
    return {
        turn: (before, after)
        for turns in sessions
        for before, turn, after in zip([None, *turns], turns, [*turns[1:], None], strict=False)
    }


def lifted(
    pool: list[Candidate], adjacent: dict[int, tuple[int | None, int | None]], weight: float
) -> dict[Key, float]:
    scores = scores_of(pool)
    return scores_of(Lifted(pool, scores, shares(scores, adjacent, weight)))


EVERYONE = in_a_row(list(range(33)))  # every key of a pool is in one session


def test_by_hand() -> None:
    pool = [Candidate(2, 4.0, ()), Candidate(7, 3.0, ()), Candidate(1, 2.0, ()), Candidate(9, 1.0, ())]
    found = shares(scores_of(pool), in_a_row([1, 2, 3], [9, 10]), 0.25)
    assert found == {1: Share(2, 0.25 * 4), 2: Share(1, 0.25 * 2), 3: Share(2, 0.25 * 4), 10: Share(9, 0.25 * 1)}
    assert list(Lifted(pool, scores_of(pool), found)) == [
        Candidate(2, 4.0 + 0.5, ()),
        Candidate(7, 3.0, ()),
        Candidate(1, 2.0 + 1.0, ()),  # the same score as document 7, which was before it
        Candidate(9, 1.0, ()),
        Candidate(3, 1.0, ()),  # no leg found it
        Candidate(10, 0.25, ()),
    ]


def test_a_score_below_zero_takes_nothing_away() -> None:
    pool = [Candidate(1, 2.0, ()), Candidate(2, -1.0, ())]
    assert shares(scores_of(pool), in_a_row([1, 2, 3]), 0.5) == {2: Share(1, 1.0)}


def test_only_the_best_candidates_pass_a_part_on() -> None:
    pool = [Candidate(key, 1000.0 - key, ()) for key in range(1, SOURCES + 20)]
    found = shares(scores_of(pool), in_a_row(list(range(1, SOURCES + 20))), 0.5)
    assert {share.neighbour for share in found.values()} == set(range(1, SOURCES + 1))


def test_the_contributions_of_the_legs_stay() -> None:
    pool = fuse("convex", [Ranking("lexical", (1, 2), (3.0, 2.0)), Ranking("dense", (2, 5), (0.9, 0.8))], {})
    scores = scores_of(pool)
    assert list(scores.items()) == [(candidate.key, candidate.score) for candidate in pool]
    found = Lifted(pool, scores, {5: Share(2, 9.0)})
    assert found[0].key == 5 and found[0].contributions == next(c.contributions for c in pool if c.key == 5)
    assert found[0].score == scores[5] + 9.0 and len(found) == len(pool) and found[:1] == [found[0]]


@given(pools(), weights)
def test_without_neighbours_nothing_changes(pool: list[Candidate], weight: float) -> None:
    assert shares(scores_of(pool), {}, weight) == {}
    assert list(Lifted(pool, scores_of(pool), {})) == pool


@given(pools(), weights)
def test_no_score_falls_and_all_stay_in_order(pool: list[Candidate], weight: float) -> None:
    before, after = scores_of(pool), lifted(pool, EVERYONE, weight)
    assert before.keys() <= after.keys()
    assert all(after[key] >= score for key, score in before.items())
    assert all(after[key] > 0.0 for key in after.keys() - before.keys())
    assert list(after.values()) == sorted(after.values(), reverse=True)


@given(pools(), weights)
def test_what_is_added_is_what_is_told(pool: list[Candidate], weight: float) -> None:
    before = scores_of(pool)
    told, after = shares(before, EVERYONE, weight), lifted(pool, EVERYONE, weight)
    for key, score in after.items():
        share = told.get(key, Share(key, 0.0))
        assert score == before.get(key, 0.0) + share.amount
        assert share.amount == 0.0 or share.amount == weight * before[share.neighbour]


@given(pools(), weights)
def test_of_two_neighbours_the_better_one_counts(pool: list[Candidate], weight: float) -> None:
    scores = scores_of(pool)
    for key, share in shares(scores, EVERYONE, weight).items():
        around = [scores.get(other, 0.0) for other in EVERYONE[int(key)] if other is not None]
        assert share.amount == weight * max(around)


@given(pools(), weights, st.sampled_from([0.125, 0.5, 2.0, 64.0]))
def test_the_scale_of_the_scores_does_not_matter(pool: list[Candidate], weight: float, scale: float) -> None:
    scaled = [Candidate(candidate.key, candidate.score * scale, ()) for candidate in pool]
    assert list(lifted(scaled, EVERYONE, weight)) == list(lifted(pool, EVERYONE, weight))


@given(keys, keys, st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.01, 0.99))
def test_two_neighbours_do_not_change_places(one: int, other: int, high: float, low: float, weight: float) -> None:
    if one == other:
        other = one + 1
    high, low = max(high, low), min(high, low)
    pool = [Candidate(one, high, ()), Candidate(other, low, ()), Candidate(99, 0.0, ())]
    after = lifted(pool, in_a_row([one, other]), weight)
    assert after[one] >= after[other] or isclose(after[one], after[other])
