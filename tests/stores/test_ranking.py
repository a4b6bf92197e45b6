"""The best passage of each document (``trivet.stores.ranking``)."""

from __future__ import annotations

from trivet.stores.ranking import best_passages


def test_each_document_has_its_best_passage_and_the_best_documents_come_first() -> None:
    rows = [(0.2, 1, 10), (0.9, 2, 10), (0.5, 3, 20), (0.1, 4, 30)]
    assert best_passages(rows, 2) == [(0.9, 2, 10), (0.5, 3, 20)]


def test_equal_scores_are_ordered_by_document_and_passage() -> None:
    assert best_passages([(0.5, 9, 2), (0.5, 8, 2), (0.5, 7, 3)], 5) == [(0.5, 8, 2), (0.5, 7, 3)]


def test_nothing_was_found() -> None:
    assert best_passages([], 5) == []
