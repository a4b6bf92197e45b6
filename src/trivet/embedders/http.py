"""How do I ask a server for vectors?

The OpenAI shape, which OpenAI, Ollama, vLLM, LM Studio and TEI all speak: ``POST {base}/embeddings`` with a model and a
list of texts. The spec is the base URL with the model behind ``#``. Options in its query are ours where ``OPTIONS``
names them, else the server's (Azure's ``api-version``). The key comes from the environment and goes nowhere else.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
import numpy as np

from trivet import deadline
from trivet.embedders.query_cache import QueryCache
from trivet.embedders.retries import RETRIED, pause_before
from trivet.embedders.rows import live_texts, scatter, unit_rows
from trivet.errors import EmbedderError, InputError

if TYPE_CHECKING:
    from trivet.types import Vector

KEYS = ("TRIVET_EMBED_API_KEY", "OPENAI_API_KEY")
#: A spec is stored and printed, so a query option with one of these in its name is refused.
SECRETS = ("key", "token", "secret", "password")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint's address and manners. The defaults stay under what the common servers accept in one request."""

    url: str
    model: str
    #: The size the vectors must have; learnt from the first answer where not given.
    dim: int | None = None
    #: Sent along: the size a model that can shorten its vectors should give.
    dimensions: int | None = None
    #: Texts, and characters, in one request.
    batch: int = 64
    characters: int = 100_000
    #: Seconds for one request.
    timeout: float = 30.0
    #: Requests made for one batch before giving up.
    attempts: int = 5
    #: Seconds before the first retry, doubled for each one after.
    backoff: float = 0.5


#: Options a spec's query may carry.
OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "dim": int,
    "dimensions": int,
    "batch": int,
    "characters": int,
    "timeout": float,
    "attempts": int,
    "backoff": float,
}


def load_http(argument: str) -> HttpModel:
    return HttpModel(f"http:{argument}")


def load_https(argument: str) -> HttpModel:
    return HttpModel(f"https:{argument}")


def parse_endpoint(spec: str) -> Endpoint:
    """The endpoint a spec names; everything that is wrong with it is said before a request is made."""
    parts = urlsplit(spec)
    if parts.username or parts.password:
        raise InputError(f"the embedder's URL must not hold a password: put the key in {KEYS[0]} instead")
    if not parts.hostname or not parts.fragment:
        raise InputError(
            f"embedder {spec!r}: write the base URL and the model, as in 'http://localhost:11434/v1#MODEL'"
        )
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if any(word in name.lower() for name, _ in pairs for word in SECRETS):
        raise InputError(f"the embedder's URL must not hold a key or token: put it in {KEYS[0]} instead")
    passed_on = urlencode([(name, value) for name, value in pairs if name not in OPTIONS])
    path = parts.path.rstrip("/").removesuffix("/embeddings") + "/embeddings"
    url = urlunsplit((parts.scheme, parts.netloc, path, passed_on, ""))
    endpoint = Endpoint(url, parts.fragment)
    for name, value in pairs:
        if name in OPTIONS:
            endpoint = replace(endpoint, **{name: _positive(spec, name, value)})
    return endpoint


def _positive(spec: str, name: str, value: str) -> Any:
    try:
        number = OPTIONS[name](value)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise InputError(f"embedder {spec!r}: option {name}={value!r} must be a number above 0")
    return number


class HttpModel:
    """An embedder behind an OpenAI-compatible endpoint. Thread-safe."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._endpoint = parse_endpoint(spec)
        shortened = f"/{self._endpoint.dimensions}" if self._endpoint.dimensions else ""
        # The address is in the id: a model's name means what its server takes it to mean, and some ignore it.
        address = urlsplit(self._endpoint.url)
        self.id = f"{self._endpoint.model}@{address.netloc}{address.path.removesuffix('/embeddings')}{shortened}"
        self._dim = self._endpoint.dim or self._endpoint.dimensions
        self._queries = QueryCache()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpModel({self.spec!r})"

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._ask(["dimension"])
        assert self._dim is not None
        return self._dim

    @cached_property
    def unrelated(self) -> float:
        from trivet.embedders.sentences import unrelated_cosine

        return unrelated_cosine(self)

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._queries.rows(texts, self.embed_passages)

    def embed_passages(self, texts: list[str]) -> Vector:
        places, live = live_texts(texts)
        rows = np.concatenate([self._ask(batch) for batch in self._batches(live)]) if live else None
        return scatter(texts, self.dim, rows, places)

    def close(self) -> None:
        """Let go of the connections; the next text opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _client(self) -> httpx.Client:
        key = next(iter(secrets()), "")
        if not (key.isascii() and key.isprintable()):
            raise EmbedderError(f"the key in {' or '.join(KEYS)} holds characters that cannot be sent: copy it again")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(headers=headers, timeout=self._endpoint.timeout)

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        """Runs of texts within both limits; a text over the limit alone goes alone."""
        batch: list[str] = []
        characters = 0
        for text in texts:
            full = len(batch) == self._endpoint.batch or characters + len(text) > self._endpoint.characters
            if batch and full:
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        yield batch

    def _ask(self, texts: list[str]) -> Vector:
        payload: dict[str, Any] = {"model": self._endpoint.model, "input": texts}
        if self._endpoint.dimensions:
            payload["dimensions"] = self._endpoint.dimensions
        rows = self._rows(self._post(payload), len(texts))
        with self._lock:
            self._dim = self._dim or rows.shape[1]
        if rows.shape[1] != self._dim:
            raise self._error(f"answered with {rows.shape[1]} dimensions where {self._dim} were expected")
        return unit_rows(rows, self.spec)

    def _post(self, payload: dict[str, Any]) -> httpx.Response:
        """The first good answer; refusals that may pass are asked again, with growing pauses."""
        for attempt in range(1, self._endpoint.attempts + 1):
            deadline.check()
            patience = max(0.001, deadline.within(self._endpoint.timeout))
            try:
                response = self._client.post(self._endpoint.url, json=payload, timeout=patience)
            except httpx.TimeoutException:
                failure, asked_for = f"did not answer within {self._endpoint.timeout:g} s", None
            except httpx.TransportError as error:
                failure, asked_for = f"could not be reached ({error})", None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._error(f"could not be asked ({error})") from None
            else:
                if response.status_code == 200:
                    return response
                failure = f"answered {response.status_code}: {self._excerpt(response)}"
                if response.status_code not in RETRIED:
                    raise self._error(failure)
                asked_for = response.headers.get("retry-after")
            if attempt < self._endpoint.attempts:
                pause = pause_before(attempt, self._endpoint.backoff, asked_for, random.random())
                time.sleep(deadline.within(pause))
        raise self._error(f"{failure} (asked {self._endpoint.attempts} times)")

    def _rows(self, response: httpx.Response, count: int) -> Any:
        """The answer's vectors in the order of the texts."""
        try:
            items = response.json()["data"]
            by_place = {int(item.get("index", place)): item["embedding"] for place, item in enumerate(items)}
            rows = np.array([by_place[place] for place in sorted(by_place)], dtype=np.float64)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._error(f"did not answer with embeddings: {self._excerpt(response)}") from None
        if sorted(by_place) != list(range(count)) or len(items) != count:
            raise self._error(f"answered with {len(by_place)} vectors for {count} texts")
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise self._error(f"answered with vectors of shape {rows.shape}")
        return rows

    def _excerpt(self, response: httpx.Response) -> str:
        return redacted(" ".join(response.text[:2000].split()))[:200] or "(empty)"

    def _error(self, what: str) -> EmbedderError:
        return EmbedderError(f"embedder {self.spec!r} {redacted(what)}; check the address, the model and {KEYS[0]}")


def secrets() -> list[str]:
    """The keys of the environment, ours first; a line break at the end comes from reading one out of a file."""
    return [key for key in (os.environ.get(name, "").strip() for name in KEYS) if key]


def redacted(text: str) -> str:
    """Servers and libraries repeat a key in their complaints about it."""
    for key in secrets():
        text = text.replace(key, "…")
    return text
