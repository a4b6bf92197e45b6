"""Embedders run by onnxruntime in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.concurrency.once_per_process import OncePerProcess
from trivet.errors import EmbedderError
from trivet.models.embedders.query_cache import QueryCache
from trivet.models.embedders.rows import embed_texts, unit_rows
from trivet.models.embedders.sentences import unrelated_cosine
from trivet.models.encoders.session import TextSession, in_threads

if TYPE_CHECKING:
    from trivet.models.encoders.tokenizer import Tokenizer
    from trivet.types import Vector

BULK = 8  # texts from which on it pays to start the worker threads
#: The outputs read from a graph, the pooled vector first.
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class PooledSession:
    """A session whose output is one vector per text. ``pooling`` is for a graph that returns one per token."""

    def __init__(self, tokenizer: Tokenizer, session: Any, pooling: str = "cls") -> None:
        self.session, self._pooling = TextSession(tokenizer, session, OUTPUTS, EmbedderError), pooling

    def vector(self, text: str) -> Vector | None:
        """Return the text's vector, not yet normalised; None where the tokenizer finds no token."""
        output = self.session.run(text)
        if output is None:
            return None
        state: Vector = output[0]
        if state.ndim == 1:
            return state
        pooled: Vector = state[0] if self._pooling == "cls" else state.mean(axis=0)
        return pooled


class LocalModel:
    """An embedder run by onnxruntime. Thread-safe. The model is opened at the first text."""

    def __init__(
        self,
        *,
        spec: str,
        id: str,
        dim: int,
        open: Callable[[], PooledSession],
        unrelated: float | None = None,
        scripts: tuple[str, ...] = (),
        query_prompt: str = "",
        passage_prompt: str = "",
        query_id: str = "",
        open_queries: Callable[[], PooledSession] | None = None,
    ) -> None:
        """``scripts`` are the first words of the Unicode names of the letters it was trained on; none means all.

        ``open_queries`` opens the model that embeds queries, where that is another one, and ``query_id`` names it.
        """
        self.spec, self.id, self.dim, self.scripts = spec, id, dim, scripts
        self.query_id = query_id or id
        self._model, self._unrelated = OncePerProcess(open), unrelated
        self._query_model = OncePerProcess(open_queries) if open_queries is not None else self._model
        self._query_prompt, self._passage_prompt = query_prompt, passage_prompt
        self._queries = QueryCache()

    def __repr__(self) -> str:
        return f"LocalModel({self.spec!r})"

    @cached_property
    def unrelated(self) -> float:
        return unrelated_cosine(self) if self._unrelated is None else self._unrelated

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._queries.rows(texts, lambda missing: self._embed(missing, self._query_prompt, self._query_model))

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._embed(texts, self._passage_prompt, self._model)

    def _embed(self, texts: list[str], prompt: str, model: Callable[[], PooledSession]) -> Vector:
        return embed_texts(texts, lambda: self.dim, lambda live: self._rows([prompt + text for text in live], model()))

    def _rows(self, texts: list[str], model: PooledSession) -> Vector:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for place, vector in enumerate(in_threads(model.vector, texts, BULK)):
            if vector is None:
                continue
            if vector.shape != (self.dim,):
                raise EmbedderError(
                    f"embedder {self.spec!r} gave vectors of shape {vector.shape}, its files say {self.dim}"
                )
            rows[place] = vector
        return unit_rows(rows, self.spec)
