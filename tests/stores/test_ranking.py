"""The best passage of each document (``trivet.stores.ranking``)."""

from __future__ import annotations

import random

import pytest

from trivet.stores.ranking import best_passages, rows_for, rows_of_part, rows_where_few_are_left


def test_each_document_has_its_best_passage_and_the_best_documents_come_first() -> None:
    rows = [(0.2, 1, 10), (0.9, 2, 10), (0.5, 3, 20), (0.1, 4, 30)]
    assert best_passages(rows, 2) == [(0.9, 2, 10), (0.5, 3, 20)]


def test_equal_scores_are_ordered_by_document_and_passage() -> None:
    assert best_passages([(0.5, 9, 2), (0.5, 8, 2), (0.5, 7, 3)], 5) == [(0.5, 8, 2), (0.5, 7, 3)]


def test_nothing_was_found() -> None:
    assert best_passages([], 5) == []


def test_a_few_rows_more_than_are_needed_are_read_where_a_document_has_one_passage() -> None:
    assert rows_for(100, documents=5_000, passages=5_000) == 116
    assert rows_for(100, documents=5_000, passages=5_500) == 137  # a tenth of the documents has a second passage
    assert rows_for(100, documents=5_000, passages=40_000) == 166 == rows_for(100, 0, 40_000)


@pytest.mark.parametrize("allowed", [100, 500, 900, 1_000])
def test_a_filter_that_allows_a_share_leaves_enough_of_the_rows(allowed: int) -> None:
    draw, rows = random.Random(1), rows_for(100, 1_000, 1_000, allowed)
    enough = sum(sum(draw.random() < allowed / 1_000 for _ in range(rows)) >= 100 for _ in range(300))
    assert enough >= 298
    assert rows < 1.7 * 100_000 / allowed  # 1.5 times those of a search without a filter, and a half more, before


def test_no_document_is_allowed() -> None:
    assert rows_for(10, 1_000, 1_000, 0) > 10_000


@pytest.mark.parametrize("parts", [1, 2, 8, 64])
def test_the_nearest_of_each_part_have_nearly_always_the_nearest_of_all(parts: int) -> None:
    draw, each = random.Random(2), rows_of_part(166, parts)
    searches = 200
    again = 0
    for _ in range(searches):
        counts = [0] * parts
        for _ in range(166):
            counts[draw.randrange(parts)] += 1
        again += max(counts) > each
    assert again <= 6 and each <= 166
    assert parts == 1 or each < 2 * 166 // parts + 16


def test_more_rows_are_read_by_how_many_of_the_first_may_be_seen() -> None:
    assert rows_where_few_are_left(159, 40, 100) == 597  # a quarter of them: 250 are needed, and a half more
    assert rows_where_few_are_left(159, 99, 100) == 318
    assert rows_where_few_are_left(159, 0, 100) == rows_where_few_are_left(159, 5, 100) == 8 * 159
