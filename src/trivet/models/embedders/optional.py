"""Embedders of other libraries: fastembed and sentence-transformers, which fetch weights from a hub at first use.

The tests use stand-in modules: they check our calls, not the libraries' vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders.rows import embed_texts, unit_rows
from trivet.models.embedders.sentences import unrelated_cosine

if TYPE_CHECKING:
    from trivet.types import Vector


@dataclass(frozen=True, slots=True)
class Library:
    """How a library opens a model and embeds with it: the first method of each list that the model has is called."""

    opener: str
    example: str
    queries: tuple[str, ...]
    passages: tuple[str, ...]


#: By scheme, which is also the name of the extra. encode_query and encode_document add the model's own prompts;
#: sentence-transformers before version 5 has neither.
LIBRARIES = {
    "fastembed": Library("TextEmbedding", "BAAI/bge-small-en-v1.5", ("query_embed",), ("passage_embed",)),
    "sentence-transformers": Library(
        "SentenceTransformer",
        "sentence-transformers/all-MiniLM-L6-v2",
        ("encode_query", "encode"),
        ("encode_document", "encode"),
    ),
}


def load(scheme: str, name: str) -> LibraryModel:
    """Return the embedder of the spec ``SCHEME:NAME``; the error for a missing library holds its pip line."""
    if not name:
        raise InputError(f"embedder '{scheme}:': name the model, as in '{scheme}:{LIBRARIES[scheme].example}'")
    if find_spec(scheme.replace("-", "_")) is None:
        raise MissingExtraError(f"embedder '{scheme}:{name}' needs {scheme}: pip install 'trivet[{scheme}]'")
    return LibraryModel(scheme, name)


load_fastembed = partial(load, "fastembed")
load_sentence_transformers = partial(load, "sentence-transformers")


class LibraryModel:
    """An embedder run by another library, which opens it at the first text."""

    def __init__(self, scheme: str, name: str) -> None:
        self.spec = f"{scheme}:{name}"
        self.id = f"{scheme}/{name}"
        self._module, self._name, self._library = scheme.replace("-", "_"), name, LIBRARIES[scheme]
        self._lock = threading.Lock()

    @cached_property
    def _model(self) -> Any:
        try:
            return getattr(import_module(self._module), self._library.opener)(self._name)
        except Exception as error:  # such as an unreachable hub or an unknown name: the library's message says which
            raise EmbedderError(f"embedder {self.spec!r} could not be opened: {error}") from error

    @cached_property
    def dim(self) -> int:
        return int(self._rows(self._library.passages, ["dimension"]).shape[1])

    @cached_property
    def unrelated(self) -> float:
        return unrelated_cosine(self)

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._embed(self._library.queries, texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._embed(self._library.passages, texts)

    def _embed(self, methods: Sequence[str], texts: list[str]) -> Vector:
        return embed_texts(texts, lambda: self.dim, lambda live: self._rows(methods, live))

    def _rows(self, methods: Sequence[str], texts: list[str]) -> Vector:
        with self._lock:  # neither library promises thread safety
            method = next(name for name in methods if hasattr(self._model, name))
            return unit_rows(np.asarray(list(getattr(self._model, method)(texts)), dtype=np.float32), self.spec)
