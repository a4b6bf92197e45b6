"""Embedders behind an OpenAI-compatible ``/embeddings`` endpoint: OpenAI, Ollama, vLLM, LM Studio, TEI.

The spec is the base URL with the model after ``#``. Options of its query are ours where ``OPTIONS`` names them, else
the server's (Azure's ``api-version``). The key comes from the environment and is sent to the endpoint only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from trivet.errors import EmbedderError, InputError
from trivet.models.address import Option, parse_address, with_path
from trivet.models.embedders.query_cache import QueryCache
from trivet.models.embedders.rows import embed_texts, unit_rows
from trivet.models.embedders.sentences import unrelated_cosine
from trivet.models.http_client import HttpClient, Limits, RequestError, environment_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trivet.types import Vector

KEYS = ("TRIVET_EMBED_API_KEY", "OPENAI_API_KEY")
EXAMPLE = "http://localhost:11434/v1#MODEL"

#: Options a spec's query may have. ``dim``: the size the vectors must have, learnt from the first response where not
#: given. ``dimensions``: sent along, the size that a model which can shorten its vectors should return. ``batch`` and
#: ``characters``: texts and characters in one request. The others are those of ``Limits``.
OPTIONS: Mapping[str, Option] = {
    "dim": int,
    "dimensions": int,
    "batch": int,
    "characters": int,
    "timeout": float,
    "attempts": int,
    "backoff": float,
}
#: These stay under what the common servers accept in one request.
BATCH, CHARACTERS = 64, 100_000
TIMEOUT = 30.0  # seconds
ATTEMPTS = 5
BACKOFF = 0.5  # seconds before the first retry


class HttpModel:
    """An embedder behind an OpenAI-compatible endpoint. Thread-safe."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        address = parse_address("embedder", spec, spec, OPTIONS, KEYS[0], EXAMPLE)
        if not address.model:
            raise InputError(f"embedder {spec!r}: write the base URL and the model, as in {EXAMPLE!r}")
        options = address.options
        self._model, self._dimensions = address.model, options.get("dimensions")
        self._batch, self._characters = options.get("batch", BATCH), options.get("characters", CHARACTERS)
        limits = Limits(
            options.get("timeout", TIMEOUT),
            attempts=options.get("attempts", ATTEMPTS),
            backoff=options.get("backoff", BACKOFF),
        )
        self._http = HttpClient(
            with_path(address.url, "/embeddings"), limits, partial(environment_keys, KEYS), self._error
        )
        shortened = f"/{self._dimensions}" if self._dimensions else ""
        # The address is part of the id: two servers may serve different models under one name.
        where = urlsplit(self._http.url)
        self.id = f"{self._model}@{where.netloc}{where.path.removesuffix('/embeddings')}{shortened}"
        self._dim: int | None = options.get("dim") or self._dimensions
        self._queries = QueryCache()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpModel({self.spec!r})"

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._request(["dimension"])
        assert self._dim is not None
        return self._dim

    @cached_property
    def unrelated(self) -> float:
        return unrelated_cosine(self)

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._queries.rows(texts, self.embed_passages)

    def embed_passages(self, texts: list[str]) -> Vector:
        return embed_texts(texts, lambda: self.dim, self._embed)

    def close(self) -> None:
        """Close the connections; the next text opens new ones."""
        self._http.close()

    def _embed(self, texts: list[str]) -> Vector:
        return np.concatenate([self._request(batch) for batch in self._batches(texts)])

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        """Yield runs of texts within both limits; a text above the limit goes alone."""
        batch: list[str] = []
        characters = 0
        for text in texts:
            full = len(batch) == self._batch or characters + len(text) > self._characters
            if batch and full:
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        yield batch

    def _request(self, texts: list[str]) -> Vector:
        payload: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions:
            payload["dimensions"] = self._dimensions
        rows = self._rows(self._http.post(payload), len(texts))
        with self._lock:
            self._dim = self._dim or rows.shape[1]
        if rows.shape[1] != self._dim:
            raise self._http.error(f"returned {rows.shape[1]} dimensions where {self._dim} were expected")
        return unit_rows(rows, self.spec)

    def _rows(self, response: Any, count: int) -> Any:
        """Return the vectors of a response in the order of the texts."""
        try:
            items = response["data"]
            by_place = {int(item.get("index", place)): item["embedding"] for place, item in enumerate(items)}
            rows = np.array([by_place[place] for place in sorted(by_place)], dtype=np.float64)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._http.error(f"did not return embeddings: {self._http.excerpt(response)}") from None
        if sorted(by_place) != list(range(count)) or len(items) != count:
            raise self._http.error(f"returned {len(by_place)} vectors for {count} texts")
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise self._http.error(f"returned vectors of shape {rows.shape}")
        return rows

    def _error(self, failure: RequestError) -> EmbedderError:
        return EmbedderError(f"embedder {self.spec!r} {failure}; check the address, the model and {KEYS[0]}")
