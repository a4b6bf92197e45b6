"""The dense leg embeds the query once, and only where it must."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trivet.errors import EmbedderError
from trivet.legs.dense import Dense, reads
from trivet.legs.leg import LegQuery

MODEL = SimpleNamespace(mid=3, dim=2)


class Index:
    """A vector index that records what it is asked and returns what it was given."""

    def __init__(self, *found: tuple[float, int, int]) -> None:
        self.found, self.asked = list(found), []

    def search(self, *asked: Any) -> Any:
        self.asked.append(asked)
        return self.found


def leg(model: Any, index: Index) -> Dense:
    collection: Any = SimpleNamespace(vectors=index)
    return Dense(collection, model, MODEL)  # type: ignore[arg-type]


def test_what_is_asked(taught: Any) -> None:
    index, scope, model = Index(), object(), taught("cat", "dog")
    leg(model, index).rank(LegQuery("a dog", 42, scope), 7)
    ((vector, asked_model, depth, seen, version),) = index.asked
    assert vector.tolist() == [0.0, 1.0]
    assert asked_model is MODEL
    assert seen is scope
    assert (depth, version) == (7, 42)
    assert model.queries == ["a dog"]


def test_what_is_answered(taught: Any) -> None:
    model = taught("cat")
    model.unrelated = 0.5
    made = leg(model, Index((0.9, 5, 1), (0.4, 6, 2))).rank(LegQuery("cat", 1), 10)
    assert (made.leg, made.keys, made.scores, made.passages) == ("dense", (1, 2), (0.9, 0.4), (5, 6))
    assert (made.floor, made.ceiling) == (-1.0, 1.0)  # a cosine's
    assert made.strength(0.75) == pytest.approx(0.5)  # above what unrelated texts have under this model
    (note,) = made.notes
    assert note.startswith("embed ")
    assert note.endswith(" ms")


def test_a_given_vector_is_not_embedded(taught: Any) -> None:
    index, model = Index((0.9, 5, 1)), taught("cat", "dog")
    made = leg(model, index).rank(LegQuery("dog", 1, vector=np.array([1.0, 0.0], dtype=np.float32)), 10)
    assert model.queries == []
    assert index.asked[0][0].tolist() == [1.0, 0.0]
    assert made.notes == ("vector given",)


def test_nothing_to_embed_is_an_empty_answer_with_a_note(taught: Any) -> None:
    index = Index((0.9, 5, 1))
    made = leg(taught("cat", "dog"), index).rank(LegQuery("?!", 1), 10)
    assert (made.keys, made.notes, index.asked) == ((), ("nothing in the query to embed",), [])


@pytest.mark.parametrize(("gate", "kept"), [(None, (1, 2, 3)), (0.0, (1, 2)), (0.5, (1,)), (0.95, ())])
def test_the_gate(taught: Any, gate: float | None, kept: tuple[int, ...]) -> None:
    index = Index((0.9, 5, 1), (0.0, 6, 2), (-0.3, 7, 3))
    assert leg(taught("cat"), index).rank(LegQuery("cat", 1, gate=gate), 10).keys == kept


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_model_that_gives_no_numbers_fails(taught: Any, bad: float) -> None:
    model = taught("cat", "dog")
    model.embed_queries = lambda texts: np.array([[bad, 1.0]], dtype=np.float32)
    with pytest.raises(EmbedderError, match="embedder 'taught' gave a NaN or infinite value for the query"):
        leg(model, Index()).rank(LegQuery("cat", 1), 10)


def test_the_query_is_made_unit_length(taught: Any) -> None:
    model, index = taught("cat", "dog"), Index()
    model.embed_queries = lambda texts: np.array([[30.0, 40.0]], dtype=np.float32)
    leg(model, index).rank(LegQuery("cat", 1), 10)
    assert index.asked[0][0].tolist() == pytest.approx([0.6, 0.8])


def test_a_failure_is_the_engines_to_tell(taught: Any) -> None:
    model = taught("cat")
    model.fail = RuntimeError("down")
    with pytest.raises(RuntimeError, match="down"):
        leg(model, Index()).rank(LegQuery("cat", 1), 10)


class TestReads:
    def test_a_model_that_says_nothing_is_trusted(self) -> None:
        assert reads(SimpleNamespace(), "金融科技")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("text", "can"),
        [
            ("where is the café?", True),
            ("金融科技精英论坛的主要内容是什么？", False),
            ("金融 API timeout error", True),  # most letters are Latin
            ("wo? 金融科技精英论坛", False),
            ("1234 ?!", True),  # no letter at all
            ("Где проходит форум", False),
        ],
    )
    def test_by_the_letters_most_of_it_has(self, text: str, can: bool) -> None:
        assert reads(SimpleNamespace(scripts=("LATIN",)), text) is can  # type: ignore[arg-type]
