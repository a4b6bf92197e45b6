from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trivet.models.embedders.query_cache import QueryCache

if TYPE_CHECKING:
    from trivet.types import Vector


class Model:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Vector:
        self.asked.append(list(texts))
        return np.array([[len(text), 1] for text in texts], dtype=np.float32).reshape(len(texts), 2)


def test_only_new_texts_are_embedded_each_once() -> None:
    cache, model = QueryCache(), Model()
    assert cache.rows(["a", "bb", "a"], model)[:, 0].tolist() == [1, 2, 1]
    assert cache.rows(["ccc", "a"], model)[:, 0].tolist() == [3, 1]
    assert model.asked == [["a", "bb"], ["ccc"]]


def test_the_longest_unasked_is_forgotten_first() -> None:
    cache, model = QueryCache(2), Model()
    for text in ("a", "b", "a", "c", "a", "b"):
        cache.rows([text], model)
    assert model.asked == [["a"], ["b"], ["c"], ["b"]]


def test_more_texts_than_fit_are_all_answered() -> None:
    assert QueryCache(1).rows(["a", "bb", "ccc"], Model())[:, 0].tolist() == [1, 2, 3]


def test_what_a_caller_does_to_its_rows_stays_with_it() -> None:
    cache, model = QueryCache(), Model()
    cache.rows(["a"], model)[:] = 9.0
    assert cache.rows(["a"], model).tolist() == [[1, 1]]


def test_no_texts_are_no_rows() -> None:
    assert QueryCache().rows([], Model()).shape == (0, 2)
