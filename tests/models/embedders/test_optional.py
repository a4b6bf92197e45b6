"""The libraries themselves are not run: their weights come from a hub. Stand-in modules check what we ask of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders import MODELS, load_embedder, optional

SCHEMES = ["fastembed", "sentence-transformers"]


def install(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture(autouse=True)
def forget_loaded() -> Iterator[None]:
    before = dict(MODELS.loaded)
    yield
    MODELS.loaded.clear()
    MODELS.loaded.update(before)


class TextEmbedding:
    def __init__(self, model_name: str) -> None:
        if model_name == "unknown":
            raise ValueError("Model unknown is not supported")
        self.name = model_name

    def query_embed(self, texts: list[str]) -> Any:
        return (np.array([len(text), 0.0, 1.0]) for text in texts)

    def passage_embed(self, texts: list[str]) -> Any:
        return (np.array([0.0, len(text), 1.0]) for text in texts)


class SentenceTransformer:
    """As version 3 and 4: one ``encode``."""

    def __init__(self, name: str) -> None:
        if name == "unknown":
            raise OSError("unknown is not a local folder")

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), 1.0, 1.0] for text in texts])


class SentenceTransformer5(SentenceTransformer):
    def encode_query(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), 0.0, 1.0] for text in texts])

    def encode_document(self, texts: list[str]) -> np.ndarray:
        return np.array([[0.0, len(text), 1.0] for text in texts])


def unit(*values: float) -> list[float]:
    return (np.array(values) / np.linalg.norm(values)).astype(np.float32).tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_missing_library_is_answered_with_its_pip_line(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        load_embedder(f"{scheme}:some/model")
    assert f"pip install 'trivet[{scheme}]'" in str(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_model_must_be_named(scheme: str) -> None:
    with pytest.raises(InputError, match=f"name the model, as in '{scheme}:"):
        load_embedder(f"{scheme}:")


@pytest.mark.parametrize(
    ("scheme", "members"),
    [
        ("fastembed", {"TextEmbedding": TextEmbedding}),
        ("sentence-transformers", {"SentenceTransformer": SentenceTransformer5}),
    ],
)
def test_queries_and_passages_are_asked_apart(scheme: str, members: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, scheme.replace("-", "_"), **members)
    model = load_embedder(f"{scheme}:some/model")
    assert model is not None
    assert (model.id, model.spec, model.dim) == (f"{scheme}/some/model", f"{scheme}:some/model", 3)
    assert model.embed_queries(["ab", " "]).tolist() == [unit(2, 0, 1), [0, 0, 0]]
    assert model.embed_passages(["abc"]).tolist() == [unit(0, 3, 1)]
    assert model.embed_passages([]).shape == (0, 3)
    assert -1.0 <= model.unrelated <= 1.0


def test_an_older_sentence_transformers_has_one_encode(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "sentence_transformers", SentenceTransformer=SentenceTransformer)
    model = load_embedder("sentence-transformers:m")
    assert model is not None
    assert model.embed_queries(["ab"]).tolist() == model.embed_passages(["ab"]).tolist() == [unit(2, 1, 1)]


@pytest.mark.parametrize(
    ("scheme", "members"),
    [
        ("fastembed", {"TextEmbedding": TextEmbedding}),
        ("sentence-transformers", {"SentenceTransformer": SentenceTransformer}),
    ],
)
def test_a_model_that_cannot_be_opened_says_why(scheme: str, members: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, scheme.replace("-", "_"), **members)
    model = load_embedder(f"{scheme}:unknown")
    assert model is not None
    with pytest.raises(EmbedderError, match=f"'{scheme}:unknown' could not be opened: .*unknown is not"):
        model.embed_queries(["cat"])
