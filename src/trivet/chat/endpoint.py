"""An OpenAI-compatible chat endpoint: its settings, and whole or streamed completions.

OpenAI, Ollama, vLLM, LM Studio and llama.cpp speak it: ``POST {base}/chat/completions``. The address, the model and the
key come from the operator, never from a request. A request is made once: a retry costs money, and the message is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

import httpx

from trivet.chat.episodes import RECENT, SCOPES
from trivet.errors import ChatError, InputError, TrivetError
from trivet.models.address import with_path
from trivet.models.http_client import HttpClient, Limits, RequestError

KEYS = ("TRIVET_CHAT_API_KEY", "OPENAI_API_KEY")
MAX_ANSWER = 1_000_000  # characters of one answer
MAX_BYTES = 16_000_000  # of one response, the JSON around the text included

Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Which endpoint answers, and which context it gets."""

    url: str = ""
    model: str = ""
    key: str = field(default="", repr=False)
    #: Seconds without a byte, and seconds in all, after which a request fails.
    timeout: float = 60.0
    longest: float = 600.0
    #: Tokens of context; latest episodes of the session that are always in it; how many are recalled; from where.
    budget: int = 2_000
    recent: int = RECENT
    k: int = 8
    scope: str = "project"
    #: The system message.
    system: str = ""
    #: Sent along unchanged: temperature, max_tokens.
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.url:
            parts = urlsplit(self.url)
            if parts.username or parts.password:
                raise InputError(f"chat.url: it must not hold a password; put the key in {KEYS[0]}")
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise InputError(f"chat.url: {self.url!r} is not a base URL such as 'http://127.0.0.1:11434/v1'")
            if not self.model:
                raise InputError("chat.model: it is empty; name the model of the endpoint")
        if not (self.key.isascii() and self.key.isprintable()):
            raise InputError(f"chat.key: the one in {KEYS[0]} holds characters that cannot be sent; copy it again")
        for name in ("timeout", "longest"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"chat.{name}: {getattr(self, name)!r} is not a number of seconds above 0")
        for name in ("budget", "recent", "k"):
            least = 1 if name == "k" else 0
            if getattr(self, name) < least:
                raise InputError(f"chat.{name}: {getattr(self, name)!r} is below {least}")
        if self.scope not in SCOPES:
            raise InputError(f"chat.scope: {self.scope!r} is none of {', '.join(SCOPES)}")

    @classmethod
    def resolve(
        cls, environment: Mapping[str, str] | None = None, table: Mapping[str, Any] | None = None
    ) -> ChatSettings:
        """Read ``TRIVET_CHAT_URL``, ``TRIVET_CHAT_MODEL`` and so on, over a TOML file's ``[chat]`` table.

        The key comes from the environment only, ours or else OpenAI's: files are copied and committed.
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
        raise InputError(
            f"chat.{name}: {value!r} has the wrong type; write a value such as {getattr(_DEFAULTS, name)!r}"
        )
    return value


def _read(name: str, raw: str, like: object) -> Any:
    try:
        return type(like)(raw)  # type: ignore[call-arg]
    except ValueError:
        raise InputError(f"TRIVET_CHAT_{name.upper()}: {raw!r} is not a number") from None


class Endpoint:
    """A chat endpoint. Thread-safe."""

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        limits = Limits(settings.timeout, total=settings.longest, max_bytes=MAX_BYTES)
        keys = [settings.key] if settings.key else []
        url = with_path(settings.url, "/chat/completions")
        self._http = HttpClient(url, limits, lambda: keys, self._error)

    def complete(self, messages: Sequence[Message]) -> str:
        """Return the whole answer."""
        with self._posted(messages, stream=False) as response:
            return self._whole(b"".join(self._http.chunks(response)))

    def stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """Yield the answer as it comes; a ``ChatError`` where it ends too early."""
        with self._posted(messages, stream=True) as response:
            if "json" in response.headers.get("content-type", ""):  # a server that does not stream
                yield self._whole(b"".join(self._http.chunks(response)))
                return
            yield from self._pieces(response)

    def close(self) -> None:
        """Close the connections; the next message opens new ones."""
        self._http.close()

    def _posted(self, messages: Sequence[Message], stream: bool) -> AbstractContextManager[httpx.Response]:
        if not self.settings.url:
            raise ChatError("no chat endpoint is set; give TRIVET_CHAT_URL and TRIVET_CHAT_MODEL", "unconfigured")
        return self._http.stream(
            {
                **self.settings.options,
                "model": self.settings.model,
                "messages": [dict(message) for message in messages],
                "stream": stream,
            }
        )

    def _pieces(self, response: httpx.Response) -> Iterator[str]:
        """Yield the text of a stream of server-sent events."""
        length, finish, done = 0, "", False
        for data in self._events(response):
            if data == "[DONE]":
                done = True
                break
            choice = self._choice(data)
            text = _content(choice.get("delta") or choice.get("message"))
            length += len(text)
            if length > MAX_ANSWER:
                raise self._http.error(f"sent more than {MAX_ANSWER:,} characters")
            if text:
                yield text
            finish = choice.get("finish_reason") or finish
        if not done and not finish:
            raise self._http.error("broke off in the middle of an answer", "broken")
        if not length:
            raise self._http.error(f"returned no text (finish reason: {finish or 'none'})")

    def _events(self, response: httpx.Response) -> Iterator[str]:
        """Yield the data of each event, split as bytes: str.splitlines() also splits at U+2028, which JSON may hold."""
        rest = b""
        for data in self._http.chunks(response):
            *lines, rest = (rest + data).split(b"\n")
            yield from _data(lines)
        yield from _data([rest])

    def _choice(self, data: str | bytes) -> dict[str, Any]:
        """Return the first choice of a completion or of a piece of one; empty where there is none (a usage report)."""
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            raise self._garbage(data) from None
        if not isinstance(answer, dict):
            raise self._garbage(data)
        if answer.get("error"):  # within a stream there is no status to carry it
            reason = json.dumps(answer["error"], ensure_ascii=False)
            raise self._http.error(f"gave up: {self._http.excerpt(reason)}", "broken")
        choices = answer.get("choices")
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise self._garbage(data)
        return choices[0] if choices else {}

    def _whole(self, data: bytes) -> str:
        choice = self._choice(data)
        text = _content(choice.get("message"))
        if not text:
            raise self._http.error(f"returned no text (finish reason: {choice.get('finish_reason')})")
        if len(text) > MAX_ANSWER:
            raise self._http.error(f"sent more than {MAX_ANSWER:,} characters")
        return text

    def _garbage(self, data: str | bytes) -> TrivetError:
        return self._http.error(f"did not return a chat completion: {self._http.excerpt(data)}")

    def _error(self, failure: RequestError) -> ChatError:
        message = f"the chat endpoint (model {self.settings.model!r}) {failure}; check it, or try again"
        return ChatError(message, failure.kind)


def _data(lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        if line.startswith(b"data:"):
            text = line[5:].decode(errors="replace").strip()
            if text:
                yield text


def _content(message: Any) -> str:
    """Return the text of a message or of a piece of one. Its content is a text, null or a list of parts."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
