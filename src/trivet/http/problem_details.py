"""Errors as problem details (RFC 9457): a stable ``type``, the status, a sentence, and the fields that are wrong.

A kind of problem is a row of ``KINDS``. The message of a store or model error may contain a path or SQL, so it goes to
the log under the request's id and never into a response.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trivet.errors import (
    ChatError,
    DeadlineError,
    EmbedderError,
    InputError,
    MissingExtraError,
    ModelMismatchError,
    NotAllowedError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    StoreReplacedError,
    TakenError,
    TrivetError,
    without_paths,
)

MEDIA_TYPE = "application/problem+json"
OPENAI = ("/v1/embeddings", "/v1/files", "/v1/vector_stores")  # the SDK of OpenAI shows `message` and nothing else
TYPES = "https://trivet.invalid/problems/"  # identifies a kind (RFC 9457, 3.1.1); .invalid: not a page to open


class Refused(TrivetError):  # noqa: N818 - a response, not a failure
    """A request that the service refuses before it reaches the engine."""

    def __init__(self, kind: str, detail: str, field: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.field, self.headers = kind, detail, field, dict(headers or {})


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem-details object."""

    kind: str
    detail: str
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    episode: str | None = None  # keeps the message, if a chat failed

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def body(self, request_id: str, path: str = "") -> dict[str, Any]:
        status, title = KINDS[self.kind]
        found: dict[str, Any] = {"type": f"{TYPES}{self.kind}", "title": title, "status": status}
        found |= {"detail": self.detail, "request_id": request_id}
        found |= {"errors": list(self.errors)} if self.errors else {}
        found |= {"message": self.detail} if path.startswith(OPENAI) else {}
        return {**found, "episode": self.episode} if self.episode else found


KINDS: dict[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "key-missing": (401, "An API key is required"),
    "key-unknown": (401, "The API key is unknown or was revoked"),
    "not-allowed": (403, "The request is not allowed"),
    "not-found": (404, "Not found"),
    "method-not-allowed": (405, "The path does not support this method"),
    "too-slow": (408, "The request body arrived too slowly"),
    "conflict": (409, "The request conflicts with existing data"),
    "too-large": (413, "The request is too large"),
    "media-type": (415, "The media type of the body is not supported"),
    "invalid": (422, "A field is not valid"),
    "too-busy": (429, "Too many requests are waiting"),
    "failed": (500, "The request failed"),
    "unavailable": (503, "A part of the service is not available"),
    "timeout": (504, "The request took too long"),
    "chat-unreachable": (502, "The chat endpoint could not be reached"),
    "chat-refused": (502, "The chat endpoint returned an error"),
    "chat-garbage": (502, "The response of the chat endpoint could not be read"),
    "chat-broken": (502, "The response of the chat endpoint ended early"),
    "chat-unconfigured": (503, "No chat endpoint is configured"),
    "chat-timeout": (504, "The chat endpoint did not respond in time"),
}

#: The kind of each error of the engine, and the detail that is sent (None: the error's own message).
ERRORS: dict[type[TrivetError], tuple[str, str | None]] = {
    ModelMismatchError: ("conflict", "the collection has vectors of another embedding model"),
    TakenError: ("conflict", None),
    NotAllowedError: ("not-allowed", None),
    InputError: ("invalid", None),
    NotFoundError: ("not-found", None),
    DeadlineError: ("timeout", None),
    StoreReplacedError: (
        "unavailable",
        "the store was replaced, moved or deleted; restart the service",
    ),
    StoreBusyError: ("unavailable", "another process has locked the store; try again, or see the log"),
    StoreError: ("unavailable", "the store could not be read or written; see the log under the request's id"),
    EmbedderError: ("unavailable", "the embedding model does not respond; see the log under the request's id"),
    MissingExtraError: ("unavailable", "an optional package is not installed; see the log under the request's id"),
    TrivetError: ("failed", "see the log under the request's id"),
}

_FIELD = re.compile(r"([A-Za-z_][\w.]*)(?=:| )")
_PLACED = re.compile(r"document (?:'[^']*'|\d+): ")


def of(error: TrivetError) -> Problem:
    """Return the problem details of an error of ours."""
    if isinstance(error, Refused):
        return Problem(error.kind, error.detail, field_errors(error.field, error.detail), error.headers)
    if isinstance(error, ChatError):
        return Problem(f"chat-{error.kind}", without_paths(str(error)), episode=error.episode)
    kind, detail = next(ERRORS[known] for known in type(error).__mro__ if known in ERRORS)
    if detail is not None:
        return Problem(kind, detail)
    message = str(error)
    return Problem(kind, message, field_errors(field_of(message), message) if kind == "invalid" else ())


def field_errors(field: str, message: str) -> tuple[dict[str, str], ...]:
    """Return the ``errors`` of a problem with one field; none without a field."""
    return ({"field": field, "message": message},) if field else ()


def field_of(message: str) -> str:
    """Return the field that a message of the engine starts with: ``weights.dense: 7 is out of range``."""
    found = _FIELD.match(_PLACED.sub("", message, count=1))
    return found[1] if found else ""
