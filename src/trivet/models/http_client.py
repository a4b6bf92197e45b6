"""One HTTP client for every model endpoint: embeddings, rerankers and chat.

It posts JSON, keeps time and size limits, retries failures that may pass, and never repeats a key in a message. The
caller says which exception a failure becomes.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from math import inf
from typing import Any

import httpx

from trivet.concurrency import deadline
from trivet.errors import TrivetError, without_paths

#: Statuses that may pass by themselves: timeouts, conflicts, rate limits, overload. Others are the caller's mistake.
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
LONGEST_PAUSE = 60.0  # seconds; a Retry-After that asks for more is cut to this between two attempts
SHORTEST_TIMEOUT = 0.001  # seconds; httpx reads 0 as an error
EXCERPT = 200  # characters of a response that a message shows


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a client waits, how often it tries, and how much it reads. Times are in seconds."""

    #: Without a byte from the server.
    timeout: float
    #: For one call, retries and pauses included.
    total: float = inf
    attempts: int = 1
    #: Before the first retry; doubled for each further one.
    backoff: float = 0.0
    #: After a call that failed with a Retry-After header, further calls fail at once for that long, but no longer than
    #: this.
    longest_rest: float = 0.0
    #: Of one response.
    max_bytes: float = inf


class RequestError(Exception):
    """A failed attempt. ``kind`` is one of unreachable, timeout, refused (an error status), broken, garbage."""

    def __init__(
        self, message: str, kind: str, *, status: int = 0, transient: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.transient, self.retry_after = kind, status, transient, retry_after


class HttpClient:
    """Posts JSON to one URL. Thread-safe.

    ``keys`` returns the API keys: the first one is sent, all of them are cut out of messages. ``error`` makes the
    exception to raise from a failure whose message holds no key.
    """

    def __init__(
        self, url: str, limits: Limits, keys: Callable[[], Sequence[str]], error: Callable[[RequestError], TrivetError]
    ) -> None:
        self.url, self.limits = url, limits
        self._keys, self._error = keys, error
        self._rest_until = 0.0  # by time.monotonic

    def post(self, payload: Mapping[str, Any]) -> Any:
        """Return the JSON of the first response with status 200, within the caller's deadline."""
        ends, attempt = time.monotonic() + self.limits.total, 1
        while True:
            deadline.check()
            try:
                return self._parsed(self._attempt(payload, ends))
            except RequestError as failure:
                pause = pause_after(attempt, self.limits.backoff, failure.retry_after, random.random())
                if not failure.transient:
                    raise self.error(str(failure), failure.kind, failure.status) from None
                if attempt == self.limits.attempts or time.monotonic() + pause >= ends:
                    self._rest_until = time.monotonic() + min(self.limits.longest_rest, failure.retry_after)
                    tried = f"(tried {attempt} {'time' if attempt == 1 else 'times'})"
                    raise self.error(f"{failure} {tried}", failure.kind, failure.status) from None
            time.sleep(deadline.within(pause))
            attempt += 1

    @contextmanager
    def stream(self, payload: Mapping[str, Any]) -> Iterator[httpx.Response]:
        """Post once and yield the response with status 200; read it with ``chunks`` inside the ``with`` block."""
        try:
            with self._response(payload, self.limits.timeout, time.monotonic() + self.limits.total) as response:
                yield response
        except RequestError as failure:
            raise self.error(str(failure), failure.kind, failure.status) from None

    def chunks(self, response: httpx.Response, ends: float | None = None) -> Iterator[bytes]:
        """Yield the body, as long as it is neither too long nor too late.

        A read timeout alone would let a server send one byte at a time forever.
        """
        ends, size = time.monotonic() + self.limits.total if ends is None else ends, 0
        for data in response.iter_bytes():
            size += len(data)
            if size > self.limits.max_bytes:
                raise RequestError(f"sent more than {self.limits.max_bytes:,} bytes", "garbage")
            if time.monotonic() > ends:
                raise RequestError(f"was not done after {self.limits.total:g} s", "timeout")
            yield data

    def error(self, message: str, kind: str = "garbage", status: int = 0) -> TrivetError:
        """Return the caller's exception for a message about the endpoint, with the keys cut out."""
        return self._error(RequestError(self._redacted(message), kind, status=status))

    def excerpt(self, body: Any) -> str:
        """Return the beginning of a response on one line, without keys and paths."""
        text = body[:2000].decode(errors="replace") if isinstance(body, bytes) else str(body)[:2000]
        return without_paths(self._redacted(" ".join(text.split())))[:EXCERPT] or "(empty)"

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _client(self) -> httpx.Client:
        key = next(iter(self._keys()), "")
        if not (key.isascii() and key.isprintable()):
            raise RequestError(
                "was not called: the API key holds characters that cannot be sent, copy it again", "refused"
            )
        return httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})

    def _attempt(self, payload: Mapping[str, Any], ends: float) -> bytes:
        if (rest := self._rest_until - time.monotonic()) > 0:
            raise RequestError(f"asked for a pause; {rest:.0f} s of it are left", "refused")
        left = deadline.within(min(self.limits.timeout, ends - time.monotonic()))
        with self._response(payload, max(SHORTEST_TIMEOUT, left), ends) as response:
            return b"".join(self.chunks(response, ends))

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise RequestError(f"did not return JSON: {self.excerpt(body)}", "garbage") from None

    @contextmanager
    def _response(self, payload: Mapping[str, Any], timeout: float, ends: float) -> Iterator[httpx.Response]:
        """Yield a response with status 200; what httpx raises, until the block ends, becomes a ``RequestError``."""
        try:
            with self._client.stream("POST", self.url, json=payload, timeout=timeout) as response:
                if response.status_code != 200:
                    raise self._refusal(response, ends)
                yield response
        except httpx.TimeoutException:
            limit = min(self.limits.timeout, self.limits.total)
            raise RequestError(f"did not respond within {limit:g} s", "timeout", transient=True) from None
        except httpx.ConnectError as error:
            raise RequestError(f"could not be reached ({error})", "unreachable", transient=True) from None
        except httpx.TransportError as error:
            raise RequestError(f"broke the connection ({error})", "broken", transient=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RequestError(f"could not be called ({error})", "refused") from None

    def _refusal(self, response: httpx.Response, ends: float) -> RequestError:
        body = b"".join(self.chunks(response, ends))
        status = response.status_code
        return RequestError(
            f"returned status {status}: {self.excerpt(body)}",
            "refused",
            status=status,
            transient=status in RETRIED,
            retry_after=retry_after(response.headers.get("retry-after")),
        )

    def _redacted(self, text: str) -> str:
        """Servers and libraries repeat a key when they complain about it."""
        for key in self._keys():
            text = text.replace(key, "…")
        return text


def environment_keys(names: Sequence[str]) -> list[str]:
    """Return the keys set in these environment variables, in this order.

    A line break at the end, as left by reading a key from a file, is removed.
    """
    return [key for key in (os.environ.get(name, "").strip() for name in names) if key]


def pause_after(attempt: int, backoff: float, retry_after: float, jitter: float) -> float:
    """Return the seconds to wait after failed attempt number ``attempt``, counted from 1.

    The pause doubles from ``backoff`` and is spread by up to a half (``jitter`` in [0, 1)), so that clients refused
    together do not come back together. It is never shorter than ``retry_after``, up to ``LONGEST_PAUSE``.
    """
    growing = backoff * 2.0 ** (attempt - 1) * (1.0 + jitter / 2)
    return min(LONGEST_PAUSE, max(growing, retry_after))


def retry_after(header: str | None) -> float:
    """Return the seconds a Retry-After header asks for, as a number or a date; 0 where it cannot be read."""
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
