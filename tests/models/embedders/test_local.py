from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from trivet.errors import EmbedderError
from trivet.models.embedders.local import BULK, LocalModel

if TYPE_CHECKING:
    from trivet.types import Vector


class Counting:
    """Stands in for an opened model: every text is (its length, 1), and what was asked is kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vector(self, text: str) -> Vector | None:
        self.asked.append(text)
        return None if text == "nothing" else np.array([len(text), 1.0], dtype=np.float32)


class Opener:
    def __init__(self) -> None:
        self.model, self.times = Counting(), 0

    def __call__(self) -> Counting:
        self.times += 1
        return self.model


def local(opener: Opener, **known: object) -> LocalModel:
    return LocalModel(spec="s", id="i", open=opener, **{"dim": 2, "unrelated": 0.1, **known})  # type: ignore[arg-type]


def test_nothing_is_opened_before_the_first_text() -> None:
    opener = Opener()
    model = local(opener)
    assert (model.spec, model.id, model.dim, model.unrelated) == ("s", "i", 2, 0.1)
    model.embed_passages([])
    model.embed_passages(["  "])
    assert opener.times == 0
    model.embed_passages(["cat"])
    assert opener.times == 1


def test_many_threads_open_the_model_once() -> None:
    opener, together = Opener(), threading.Barrier(8)
    model = local(opener)

    def embed(_: int) -> Vector:
        together.wait()
        return model.embed_passages(["cat"])

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(embed, range(8)))
    assert opener.times == 1
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def test_bulk_rows_come_back_in_order() -> None:
    texts = ["a" * (1 + place % 7) for place in range(5 * BULK)]
    lengths = np.array([len(text) for text in texts])
    rows = local(Opener()).embed_passages(texts)
    np.testing.assert_allclose(rows[:, 0] / rows[:, 1], lengths, rtol=1e-5)


def test_a_query_asked_again_costs_nothing() -> None:
    opener = Opener()
    model = local(opener)
    first = model.embed_queries(["cat", "dog", "cat"])
    again = model.embed_queries(["dog", "cat"])
    assert opener.model.asked == ["cat", "dog"]
    assert np.array_equal(again, first[[1, 0]])


def test_queries_may_have_a_model_of_their_own() -> None:
    passages, queries = Opener(), Opener()
    model = local(passages, query_id="i-queries", open_queries=queries)
    model.embed_queries(["who"])
    assert (passages.times, queries.times, queries.model.asked) == (0, 1, ["who"])
    model.embed_passages(["cat"])
    assert (passages.times, queries.times, passages.model.asked) == (1, 1, ["cat"])
    assert (model.id, model.query_id, local(Opener()).query_id) == ("i", "i-queries", "i")


def test_prompts_are_put_before_texts_and_never_before_nothing() -> None:
    opener = Opener()
    model = local(opener, query_prompt="query: ", passage_prompt="passage: ")
    rows = model.embed_queries(["cat", " "])
    model.embed_passages(["dog", ""])
    assert opener.model.asked == ["query: cat", "passage: dog"]
    assert not rows[1].any()


def test_a_text_the_tokenizer_finds_nothing_in_is_a_zero_row() -> None:
    assert local(Opener()).embed_passages(["nothing", "cat"]).any(axis=1).tolist() == [False, True]


def test_vectors_of_another_size_than_declared_are_refused() -> None:
    with pytest.raises(EmbedderError, match=r"shape \(2,\), its files say 3"):
        local(Opener(), dim=3).embed_passages(["cat"])


def test_unrelated_is_measured_where_it_is_not_known() -> None:
    """(length, 1) vectors of sentences all point the same way, so everything is as related as can be."""
    assert 0.99 < local(Opener(), unrelated=None).unrelated <= 1.0
