"""How do I ask a server for an answer?

The OpenAI shape, which OpenAI, Ollama, vLLM, LM Studio and llama.cpp all speak: ``POST {base}/chat/completions``. The
address, the model and the key come from whoever runs us, never from a request. A request is made once: asking again
costs money, and the message is kept.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from trivet.chat.episodes import RECENT, SCOPES
from trivet.errors import ChatError, InputError, without_paths

KEYS = ("TRIVET_CHAT_API_KEY", "OPENAI_API_KEY")
MAX_ANSWER = 1_000_000  # characters; an answer longer than this is a server gone wrong
MAX_BYTES = 16_000_000  # of one response, its wrapping included

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Which endpoint answers, and what it is shown."""

    url: str = ""
    model: str = ""
    key: str = field(default="", repr=False)
    #: Seconds of silence, and seconds in all, after which an answer is given up.
    timeout: float = 60.0
    longest: float = 600.0
    #: Tokens of context; episodes of the session that are always part of it; how many are recalled; of whom.
    budget: int = 2_000
    recent: int = RECENT
    k: int = 8
    scope: str = "project"
    #: What the model is told first.
    system: str = ""
    #: Sent along as they are: temperature, max_tokens.
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.url:
            parts = urlsplit(self.url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise InputError("chat url: write the base URL, as in 'http://127.0.0.1:11434/v1'")
            if parts.username or parts.password:
                raise InputError(f"chat url: it must not hold a password: put the key in {KEYS[0]} instead")
            if not self.model:
                raise InputError("chat model: it is empty; name the model the endpoint should answer with")
        if not (self.key.isascii() and self.key.isprintable()):
            raise InputError(f"chat key: the one in {KEYS[0]} holds characters that cannot be sent: copy it again")
        for name in ("timeout", "longest"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"chat {name}: {getattr(self, name)!r} is not a number of seconds above 0")
        for name in ("budget", "recent", "k"):
            if getattr(self, name) < (1 if name == "k" else 0):
                raise InputError(f"chat {name}: {getattr(self, name)!r} is too small")
        if self.scope not in SCOPES:
            raise InputError(f"chat scope: {self.scope!r} is none of {', '.join(SCOPES)}")

    @classmethod
    def resolve(
        cls, environment: Mapping[str, str] | None = None, table: Mapping[str, Any] | None = None
    ) -> ChatSettings:
        """``TRIVET_CHAT_URL``, ``TRIVET_CHAT_MODEL`` and so on, over a TOML file's ``[chat]`` table.

        The key comes from the environment only, ours or else OpenAI's: a file is copied about.
        """
        given = os.environ if environment is None else environment
        found = {name: _checked(name, value) for name, value in (table or {}).items()}
        for item in fields(cls):
            raw = given.get(f"TRIVET_CHAT_{item.name.upper()}", "").strip()
            if raw and item.name not in ("key", "options"):
                found[item.name] = _read(item.name, raw, getattr(_DEFAULTS, item.name))
        found["key"] = next((given[name].strip() for name in KEYS if given.get(name, "").strip()), "")
        return cls(**found)


_DEFAULTS = ChatSettings()


def _checked(name: str, value: Any) -> Any:
    known = [item.name for item in fields(ChatSettings) if item.name != "key"]
    if name not in known:
        hint = f"; put the key in {KEYS[0]}" if name == "key" else ""
        raise InputError(f"chat.{name}: unknown{hint}; known: {', '.join(known)}")
    kind = Mapping if name == "options" else type(getattr(_DEFAULTS, name))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"chat.{name}: {value!r} is not what belongs there, such as {getattr(_DEFAULTS, name)!r}")
    return value


def _read(name: str, raw: str, like: object) -> Any:
    try:
        return type(like)(raw)  # type: ignore[call-arg]
    except ValueError:
        raise InputError(f"TRIVET_CHAT_{name.upper()}: {raw!r} is not a number") from None


class Endpoint:
    """Asks; says clearly what went wrong. Thread-safe."""

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        parts = urlsplit(settings.url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        self._url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def complete(self, messages: Sequence[Message]) -> str:
        """The whole answer."""
        with self._asked(messages, stream=False) as response:
            return self._whole(b"".join(self._bytes(response)))

    def stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """The answer as it comes; a ``ChatError`` where it ends too early."""
        with self._asked(messages, stream=True) as response:
            if "json" in response.headers.get("content-type", ""):  # a server that does not stream
                yield self._whole(b"".join(self._bytes(response)))
                return
            yield from self._pieces(response)

    def close(self) -> None:
        """Let go of the connections; the next question opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _client(self) -> httpx.Client:
        key = self.settings.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(headers=headers, timeout=self.settings.timeout)

    @contextmanager
    def _asked(self, messages: Sequence[Message], stream: bool) -> Iterator[httpx.Response]:
        if not self.settings.url:
            raise ChatError("no chat endpoint is set; give TRIVET_CHAT_URL and TRIVET_CHAT_MODEL", "unconfigured")
        payload = {
            **self.settings.options,
            "model": self.settings.model,
            "messages": [dict(message) for message in messages],
            "stream": stream,
        }
        try:
            with self._client.stream("POST", self._url, json=payload) as response:
                if response.status_code != 200:
                    told = self._excerpt(b"".join(self._bytes(response)))
                    raise self._error(f"answered {response.status_code}: {told}", "refused")
                yield response
        except httpx.TimeoutException:
            raise self._error(f"was silent for {self.settings.timeout:g} s", "timeout") from None
        except httpx.ConnectError as error:
            raise self._error(f"could not be reached ({error})", "unreachable") from None
        except httpx.TransportError as error:
            raise self._error(f"broke off ({error})", "broken") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._error(f"could not be asked ({error})", "refused") from None

    def _bytes(self, response: httpx.Response) -> Iterator[bytes]:
        """What comes, while it is neither too long nor too late: a read timeout alone lets a drip go on forever."""
        ends, size = time.monotonic() + self.settings.longest, 0
        for data in response.iter_bytes():
            size += len(data)
            if size > MAX_BYTES:
                raise self._error(f"answered with more than {MAX_BYTES:,} bytes", "garbage")
            if time.monotonic() > ends:
                raise self._error(f"was not done after {self.settings.longest:g} s", "timeout")
            yield data

    def _pieces(self, response: httpx.Response) -> Iterator[str]:
        """The text of a stream of server-sent events."""
        length, finish, done = 0, "", False
        for data in self._events(response):
            if data == "[DONE]":
                done = True
                break
            choice = self._choice(data)
            text = _content(choice.get("delta") or choice.get("message"))
            length += len(text)
            if length > MAX_ANSWER:
                raise self._error(f"answered with more than {MAX_ANSWER:,} characters", "garbage")
            if text:
                yield text
            finish = choice.get("finish_reason") or finish
        if not done and not finish:
            raise self._error("broke off before the end of its answer", "broken")
        if not length:
            raise self._error(f"answered without text (finish reason: {finish or 'none'})", "garbage")

    def _events(self, response: httpx.Response) -> Iterator[str]:
        """The data of each event; split as bytes, for str.splitlines() also splits at U+2028, which JSON may hold."""
        rest = b""
        for data in self._bytes(response):
            *lines, rest = (rest + data).split(b"\n")
            yield from _data(lines)
        yield from _data([rest])

    def _choice(self, data: str | bytes) -> dict[str, Any]:
        """The first choice of an answer or of a piece of one; empty where there is none (a usage report)."""
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            raise self._garbage(data) from None
        if not isinstance(answer, dict):
            raise self._garbage(data)
        if answer.get("error"):  # in the middle of a stream there is no status to say it with
            raise self._error(f"gave up: {self._excerpt(json.dumps(answer['error'], ensure_ascii=False))}", "broken")
        choices = answer.get("choices")
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise self._garbage(data)
        return choices[0] if choices else {}

    def _whole(self, data: bytes) -> str:
        choice = self._choice(data)
        text = _content(choice.get("message"))
        if not text:
            raise self._error(f"answered without text (finish reason: {choice.get('finish_reason')})", "garbage")
        if len(text) > MAX_ANSWER:
            raise self._error(f"answered with more than {MAX_ANSWER:,} characters", "garbage")
        return text

    def _garbage(self, data: str | bytes) -> ChatError:
        return self._error(f"did not answer with a chat completion: {self._excerpt(data)}", "garbage")

    def _excerpt(self, data: str | bytes) -> str:
        text = data[:2000].decode(errors="replace") if isinstance(data, bytes) else data[:2000]
        return without_paths(self._redacted(" ".join(text.split())))[:200] or "(empty)"

    def _error(self, what: str, kind: str) -> ChatError:
        told = f"the chat endpoint (model {self.settings.model!r}) {self._redacted(what)}"
        return ChatError(f"{told}; the message is kept, ask again", kind)

    def _redacted(self, text: str) -> str:
        """Servers repeat a key in their complaints about it."""
        return text.replace(self.settings.key, "…") if self.settings.key else text


def _data(lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        if line.startswith(b"data:"):
            text = line[5:].decode(errors="replace").strip()
            if text:
                yield text


def _content(message: Any) -> str:
    """The text of a message or of a piece of one: text, nothing, or a list of parts."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
