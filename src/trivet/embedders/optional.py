"""How do I use a model that another library runs?

fastembed and sentence-transformers fetch their weights from a hub at first use. Where this code is built no hub can be
reached, so the tests drive these two with stand-in modules: the calls are checked, the libraries' own answers are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.embedders.rows import live_texts, scatter, unit_rows
from trivet.errors import EmbedderError, InputError, MissingExtraError

if TYPE_CHECKING:
    from trivet.types import Vector


@dataclass(frozen=True, slots=True)
class Library:
    """What differs between the libraries: how a model is opened and asked."""

    extra: str
    module: str
    open: Callable[[Any, str], Any]
    queries: Callable[[Any, list[str]], Any]
    passages: Callable[[Any, list[str]], Any]


def _encode(model: Any, method: str, texts: list[str]) -> Any:
    # encode_query and encode_document (sentence-transformers 5) add the model's own prompts; before, there was encode
    return getattr(model, method, model.encode)(texts)


LIBRARIES = {
    "fastembed": Library(
        "fastembed",
        "fastembed",
        lambda module, name: module.TextEmbedding(model_name=name),
        lambda model, texts: list(model.query_embed(texts)),
        lambda model, texts: list(model.passage_embed(texts)),
    ),
    "sentence-transformers": Library(
        "sentence-transformers",
        "sentence_transformers",
        lambda module, name: module.SentenceTransformer(name),
        lambda model, texts: _encode(model, "encode_query", texts),
        lambda model, texts: _encode(model, "encode_document", texts),
    ),
}


def load_fastembed(argument: str) -> LibraryModel:
    """``fastembed:NAME``."""
    return _load("fastembed", argument, "BAAI/bge-small-en-v1.5")


def load_sentence_transformers(argument: str) -> LibraryModel:
    """``sentence-transformers:NAME``."""
    return _load("sentence-transformers", argument, "sentence-transformers/all-MiniLM-L6-v2")


def _load(scheme: str, name: str, example: str) -> LibraryModel:
    library = LIBRARIES[scheme]
    if not name:
        raise InputError(f"embedder '{scheme}:': name the model, as in '{scheme}:{example}'")
    if find_spec(library.module) is None:
        raise MissingExtraError(f"embedder '{scheme}:{name}' needs {scheme}: pip install 'trivet[{library.extra}]'")
    return LibraryModel(scheme, name, library)


class LibraryModel:
    """A model opened by its library at the first text."""

    def __init__(self, scheme: str, name: str, library: Library) -> None:
        self.spec = f"{scheme}:{name}"
        self.id = f"{scheme}/{name}"
        self._name, self._library = name, library
        self._lock = threading.Lock()

    @cached_property
    def _model(self) -> Any:
        try:
            return self._library.open(import_module(self._library.module), self._name)
        except Exception as error:  # a hub that cannot be reached, an unknown name: the library's own words say which
            raise EmbedderError(f"embedder {self.spec!r} could not be opened: {error}") from error

    @cached_property
    def dim(self) -> int:
        return int(self._rows(self._library.passages, ["dimension"]).shape[1])

    @cached_property
    def unrelated(self) -> float:
        from trivet.embedders.sentences import unrelated_cosine

        return unrelated_cosine(self)

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._embed(self._library.queries, texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._embed(self._library.passages, texts)

    def _embed(self, ask: Callable[[Any, list[str]], Any], texts: list[str]) -> Vector:
        places, live = live_texts(texts)
        rows = self._rows(ask, live) if live else None
        return scatter(texts, self.dim, rows, places)

    def _rows(self, ask: Callable[[Any, list[str]], Any], texts: list[str]) -> Vector:
        with self._lock:  # neither library promises thread safety
            model = self._model
            return unit_rows(np.asarray(ask(model, texts), dtype=np.float32), self.spec)
