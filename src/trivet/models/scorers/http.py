"""Scorers behind a rerank endpoint: Cohere, Jina, vLLM and text-embeddings-inference (TEI).

A query and texts go in; an index and a score for each text come back, in any order. The spec is the URL with the model
after ``#``; ``?api=`` names the API where the address does not tell it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from trivet.errors import InputError, ScorerError
from trivet.models.address import Option, parse_address, with_path
from trivet.models.http_client import HttpClient, Limits, RequestError, environment_keys

KEY = "TRIVET_SCORER_API_KEY"
EXAMPLE = "http://localhost:8080/rerank"
TIMEOUT = 10.0  # seconds a call may take, retries included
MAX_BYTES = 16_000_000  # of one response
LONGEST_REST = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Api:
    """Where the rerank APIs differ."""

    path: str
    texts: str = "documents"
    results: str | None = "results"  # None: the response is the list itself
    score: str = "relevance_score"
    batch: int = 100
    needs_model: bool = True
    #: Environment variables of the service's own key, read after ours.
    keys: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


APIS: Mapping[str, Api] = {
    "cohere": Api("/v2/rerank", keys=("COHERE_API_KEY", "CO_API_KEY")),
    "jina": Api("/v1/rerank", keys=("JINA_API_KEY",), extra={"return_documents": False}),
    # -1: cut at the model's own limit, instead of an error
    "vllm": Api("/v1/rerank", extra={"truncate_prompt_tokens": -1}),
    # 32 is the default limit of a text-embeddings-inference server
    "tei": Api("/rerank", "texts", None, "score", 32, False, extra={"truncate": True, "raw_scores": False}),
}
#: ``timeout`` and ``batch`` (passages in one request) are options of every scorer behind an endpoint.
SHARED_OPTIONS: Mapping[str, Option] = {"timeout": float, "batch": int}


class RefusedError(ScorerError):
    """The server refused the request body (400 or 422); it may accept one with fewer fields."""


def scorer_client(spec: str, url: str, timeout: float, keys: Sequence[str]) -> HttpClient:
    """Return a client for one scorer. A search waits about a second, so retries are few and quick."""

    def error(failure: RequestError) -> ScorerError:
        message = f"scorer {spec!r} {failure}; check the address, the model and {KEY}"
        return RefusedError(message) if failure.status in (400, 422) else ScorerError(message)

    limits = Limits(timeout, total=timeout, attempts=3, backoff=0.1, longest_rest=LONGEST_REST, max_bytes=MAX_BYTES)
    return HttpClient(url, limits, partial(environment_keys, (KEY, *keys)), error)


def api_of(url: str, model: str) -> str:
    """Return the name of the API that an address speaks, by its host, its path and its model."""
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path.removesuffix("/rerank")
    for name in ("cohere", "jina"):
        if name in host:
            return name
    if path.endswith("/v2"):
        return "cohere"
    return "vllm" if path.endswith("/v1") or model else "tei"  # a TEI server has one model, so its spec names none


class HttpScorer:
    """A scorer behind a rerank endpoint. Thread-safe."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        address = parse_address("scorer", spec, spec, {**SHARED_OPTIONS, "api": tuple(APIS)}, KEY, EXAMPLE)
        name = address.options.get("api") or api_of(address.url, address.model)
        self._api, self._model = APIS[name], address.model
        if self._api.needs_model and not address.model:
            raise InputError(f"scorer {spec!r}: the {name} API needs a model after '#', as in 'https://HOST/v1#MODEL'")
        version = self._api.path.removesuffix("/rerank")
        versioned = version and urlsplit(address.url).path.endswith(version)
        url = with_path(address.url, "/rerank" if versioned else self._api.path, "/rerank")
        self.batch = address.options.get("batch", self._api.batch)
        self._http = scorer_client(spec, url, address.options.get("timeout", TIMEOUT), self._api.keys)
        where = urlsplit(url)
        # The address is part of the id: two servers may serve different models under one name.
        self.id = f"{name}:{address.model}@{where.netloc}{where.path}"

    def __repr__(self) -> str:
        return f"HttpScorer({self.spec!r})"

    def scores(self, query: str, passages: list[str]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(passages), self.batch):
            found += self._batch_scores(query, passages[start : start + self.batch])
        return found

    def _batch_scores(self, query: str, passages: list[str]) -> list[float]:
        api = self._api
        payload: dict[str, Any] = {"query": query, api.texts: passages, **api.extra}
        if self._model:
            payload["model"] = self._model
        if api.needs_model:
            payload["top_n"] = len(passages)
        response = self._http.post(payload)
        try:
            items = response if api.results is None else response[api.results]
            by_place = {int(item["index"]): float(item[api.score]) for item in items}
        except (TypeError, KeyError, ValueError):
            raise self._http.error(f"did not return scores: {self._http.excerpt(response)}") from None
        if len(items) != len(passages) or sorted(by_place) != list(range(len(passages))):
            raise self._http.error(f"returned {len(items)} scores for {len(passages)} passages")
        return [by_place[place] for place in range(len(passages))]
