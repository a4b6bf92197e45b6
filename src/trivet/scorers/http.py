"""How do I ask a rerank server?

Four shapes of one API: a question and texts go in, an index and a score for each text come back, in any order. The spec
is the URL with the model behind ``#``; ``?api=`` says the shape where the address does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from trivet.errors import InputError
from trivet.scorers.endpoint import Endpoint, parse_address, with_path

TIMEOUT = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Api:
    """Where the shapes differ."""

    path: str
    texts: str = "documents"
    results: str | None = "results"  # None: the answer is the list itself
    score: str = "relevance_score"
    batch: int = 100
    needs_model: bool = True
    #: Environment variable of the service's own key, asked for after ours.
    keys: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


APIS: Mapping[str, Api] = {
    "cohere": Api("/v2/rerank", keys=("COHERE_API_KEY", "CO_API_KEY")),
    "jina": Api("/v1/rerank", keys=("JINA_API_KEY",), extra={"return_documents": False}),
    # -1: as long as the model can read, instead of an error
    "vllm": Api("/v1/rerank", extra={"truncate_prompt_tokens": -1}),
    # 32 is what a text-embeddings-inference server takes unless it is told otherwise
    "tei": Api("/rerank", "texts", None, "score", 32, False, extra={"truncate": True, "raw_scores": False}),
}


def load_http(argument: str) -> HttpScorer:
    return HttpScorer(f"http:{argument}")


def load_https(argument: str) -> HttpScorer:
    return HttpScorer(f"https:{argument}")


def shape_of(url: str, model: str) -> str:
    """The shape an address speaks, by its host, its path and its model; ``?api=`` says it where this is wrong."""
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path.removesuffix("/rerank")
    for name in ("cohere", "jina"):
        if name in host:
            return name
    if path.endswith("/v2"):
        return "cohere"
    return "vllm" if path.endswith("/v1") or model else "tei"  # a tei server has one model, and is not told


class HttpScorer:
    """A scorer behind a rerank endpoint. Thread-safe."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        address = parse_address(spec, spec, {"api": tuple(APIS)}, TIMEOUT)
        name = address.options.get("api") or shape_of(address.url, address.model)
        self._api = APIS[name]
        if self._api.needs_model and not address.model:
            raise InputError(f"scorer {spec!r}: the {name} API needs a model behind '#', as in 'https://HOST/v1#MODEL'")
        version = self._api.path.removesuffix("/rerank")
        base = urlsplit(address.url).path
        address = with_path(address, "/rerank" if version and base.endswith(version) else self._api.path, "/rerank")
        self.batch = address.batch or self._api.batch
        self._endpoint = Endpoint(spec, address, self._api.keys)
        where = urlsplit(address.url)
        # The address is in the id: a model's name means what its server takes it to mean.
        self.id = f"{name}:{address.model}@{where.netloc}{where.path}"

    def __repr__(self) -> str:
        return f"HttpScorer({self.spec!r})"

    def scores(self, query: str, passages: list[str]) -> list[float]:
        if not passages:
            return []
        found: list[float] = []
        for start in range(0, len(passages), self.batch):
            found += self._asked(query, passages[start : start + self.batch])
        return found

    def _asked(self, query: str, passages: list[str]) -> list[float]:
        api, model = self._api, self._endpoint.address.model
        payload: dict[str, Any] = {"query": query, api.texts: passages, **api.extra}
        if model:
            payload["model"] = model
        if api.needs_model:
            payload["top_n"] = len(passages)
        answer = self._endpoint.post(payload)
        try:
            items = answer if api.results is None else answer[api.results]
            by_place = {int(item["index"]): float(item[api.score]) for item in items}
        except (TypeError, KeyError, ValueError):
            raise self._endpoint.error(f"did not answer with scores: {self._endpoint.excerpt(answer)}") from None
        if len(items) != len(passages) or sorted(by_place) != list(range(len(passages))):
            raise self._endpoint.error(f"answered with {len(items)} scores for {len(passages)} passages")
        return [by_place[place] for place in range(len(passages))]
