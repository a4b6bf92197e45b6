"""How is a scoring server asked, without being waited for too long?

One address, one JSON body, one JSON answer. Refusals that may pass are asked again while there is time; a server that
asks for a longer pause is left in peace until it is over, and every call in between says so at once.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx

from trivet.embedders.retries import RETRIED, pause_before, retry_after
from trivet.errors import InputError, ScorerError

KEY = "TRIVET_SCORER_API_KEY"
#: A spec is printed, so a query option with one of these in its name is refused.
SECRETS = ("key", "token", "secret", "password")
MAX_BYTES = 16_000_000  # of one answer; more is a server gone wrong
#: Requests made for one call, and seconds before the first retry, doubled for the next: a search waits a second unless
#: it is told otherwise, and should hear what is wrong within it.
ATTEMPTS, BACKOFF = 3, 0.1
LONGEST_REST = 600.0  # seconds; a server that asks for more is asked again after these


@dataclass(frozen=True, slots=True)
class Address:
    """Where a scorer lives and how it is asked; ``options`` are those of the scorer's own kind."""

    url: str
    model: str
    #: Seconds a call may take, retries and all.
    timeout: float
    #: Passages in one request.
    batch: int
    options: Mapping[str, str]


def parse_address(spec: str, url: str, known: Mapping[str, Sequence[str]], timeout: float) -> Address:
    """The address in ``url``; everything that is wrong with it is said before a request is made.

    Of its query ``timeout``, ``batch`` and the ``known`` options are ours, the rest is the server's.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"scorer {spec!r}: write a URL, as in 'http://localhost:8080/rerank'")
    if parts.username or parts.password:
        raise InputError(f"the scorer's URL must not hold a password: put the key in {KEY} instead")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if any(word in name.lower() for name, _ in pairs for word in SECRETS):
        raise InputError(f"the scorer's URL must not hold a key or token: put it in {KEY} instead")
    ours = {name: value for name, value in pairs if name in ("timeout", "batch", *known)}
    for name, values in known.items():
        if name in ours and ours[name] not in values:
            raise InputError(f"scorer {spec!r}: {name}={ours[name]!r} is not known; known: {', '.join(values)}")
    passed_on = urlencode([(name, value) for name, value in pairs if name not in ours])
    return Address(
        url=urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), passed_on, "")),
        model=parts.fragment,
        timeout=_positive(spec, "timeout", ours.get("timeout"), float, timeout),
        batch=_positive(spec, "batch", ours.get("batch"), int, 0),
        options={name: value for name, value in ours.items() if name in known},
    )


def _positive(spec: str, name: str, value: str | None, kind: Callable[[str], Any], otherwise: Any) -> Any:
    if value is None:
        return otherwise
    try:
        number = kind(value)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise InputError(f"scorer {spec!r}: option {name}={value!r} must be a number above 0")
    return number


def with_path(address: Address, path: str, ending: str) -> Address:
    """The address with ``path`` behind it, unless it has it already."""
    parts = urlsplit(address.url)
    whole = parts.path if parts.path.endswith(ending) else parts.path + path
    return replace(address, url=urlunsplit((parts.scheme, parts.netloc, whole, parts.query, "")))


class Endpoint:
    """Asks; says clearly what went wrong. Thread-safe."""

    def __init__(self, spec: str, address: Address, keys: Sequence[str]) -> None:
        self.address = address
        self._spec, self._keys = spec, (KEY, *keys)
        self._rests_until = 0.0

    def post(self, payload: Mapping[str, Any]) -> Any:
        """The JSON of the first good answer."""
        ends = time.monotonic() + self.address.timeout
        for attempt in range(1, ATTEMPTS + 1):
            if (rest := self._rests_until - time.monotonic()) > 0:
                raise self.error(f"asked for a pause; {rest:.0f} s of it are left")
            failure, asked_for = self._once(payload, ends)
            if failure is None:
                return asked_for
            pause = pause_before(attempt, BACKOFF, asked_for, random.random())
            if attempt == ATTEMPTS or time.monotonic() + pause >= ends:
                self._rests_until = time.monotonic() + min(LONGEST_REST, retry_after(asked_for))
                break
            time.sleep(pause)
        raise self.error(f"{failure} (asked {attempt} {'time' if attempt == 1 else 'times'})")

    def _once(self, payload: Mapping[str, Any], ends: float) -> tuple[str | None, Any]:
        """(None, the answer), or (what failed, the pause that was asked for); what will not pass is raised."""
        left = max(0.001, ends - time.monotonic())
        try:
            with self._client.stream("POST", self.address.url, json=payload, timeout=left) as response:
                body = self._body(response, ends)
        except httpx.TimeoutException:
            raise self.error(f"did not answer within {self.address.timeout:g} s") from None
        except httpx.TransportError as error:
            return f"could not be reached ({error})", None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.error(f"could not be asked ({error})") from None
        if response.status_code == 200:
            return None, self._parsed(body)
        failure = f"answered {response.status_code}: {self.excerpt(body)}"
        if response.status_code not in RETRIED:
            raise self.error(failure, response.status_code)
        return failure, response.headers.get("retry-after")

    def _body(self, response: httpx.Response, ends: float) -> bytes:
        """What comes, while it is neither too long nor too late: a read timeout alone lets a drip go on forever."""
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) > MAX_BYTES:
                raise self.error(f"answered with more than {MAX_BYTES:,} bytes")
            if time.monotonic() > ends:
                raise self.error(f"was not done after {self.address.timeout:g} s")
        return bytes(data)

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self.error(f"did not answer with JSON: {self.excerpt(body)}") from None

    @cached_property
    def _client(self) -> httpx.Client:
        key = next(iter(self._secrets()), "")
        if not (key.isascii() and key.isprintable()):
            raise ScorerError(
                f"the key in {' or '.join(self._keys)} holds characters that cannot be sent: copy it again"
            )
        return httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})

    def excerpt(self, body: Any) -> str:
        text = body[:2000].decode(errors="replace") if isinstance(body, bytes) else str(body)[:2000]
        return self._redacted(" ".join(text.split()))[:200] or "(empty)"

    def error(self, what: str, status: int = 0) -> ScorerError:
        told = f"scorer {self._spec!r} {self._redacted(what)}; check the address, the model and {KEY}"
        return RefusedError(told) if status in (400, 422) else ScorerError(told)

    def _secrets(self) -> list[str]:
        """The keys of the environment, ours first; a line break at the end comes from reading one out of a file."""
        return [key for key in (os.environ.get(name, "").strip() for name in self._keys) if key]

    def _redacted(self, text: str) -> str:
        """Servers and libraries repeat a key in their complaints about it."""
        for key in self._secrets():
            text = text.replace(key, "…")
        return text


class RefusedError(ScorerError):
    """The server does not take this body; it may take a plainer one."""
