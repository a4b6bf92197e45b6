"""What does a failure look like over HTTP?

RFC 9457 problem details, made in this one place: a stable ``type``, the status, a sentence, and the fields at fault. A
kind of error is a row of ``KINDS``. What an error of the store or a model says may hold a path or SQL, so it goes to
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
TYPES = "https://trivet.invalid/problems/"  # names a kind (RFC 9457 3.1.1); .invalid: it is no address to open


class Refused(TrivetError):  # noqa: N818 - it is an answer, not a fault
    """A request this surface does not pass on to the engine."""

    def __init__(self, kind: str, detail: str, field: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.field, self.headers = kind, detail, field, dict(headers or {})


@dataclass(frozen=True, slots=True)
class Problem:
    """One RFC 9457 object."""

    kind: str
    detail: str
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    episode: str | None = None  # which keeps what was said, where a chat failed

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def body(self, request_id: str) -> dict[str, Any]:
        status, title = KINDS[self.kind]
        found: dict[str, Any] = {"type": f"{TYPES}{self.kind}", "title": title, "status": status}
        found |= {"detail": self.detail, "request_id": request_id}
        found |= {"errors": list(self.errors)} if self.errors else {}
        return {**found, "episode": self.episode} if self.episode else found


KINDS: dict[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "key-missing": (401, "A key is needed"),
    "key-unknown": (401, "The key is not known or was revoked"),
    "not-allowed": (403, "The key does not allow this"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "The method is not allowed here"),
    "too-slow": (408, "The body came too slowly"),
    "conflict": (409, "It contradicts what is there"),
    "too-large": (413, "The request is too large"),
    "media-type": (415, "The body's media type is not understood"),
    "invalid": (422, "A value is not allowed"),
    "too-busy": (429, "Too many requests wait"),
    "failed": (500, "The request failed"),
    "unavailable": (503, "A part of the service does not answer"),
    "timeout": (504, "It took too long"),
    "chat-unreachable": (502, "The chat endpoint gave no whole answer"),
    "chat-refused": (502, "The chat endpoint answered with an error"),
    "chat-garbage": (502, "The chat endpoint answered with something else than an answer"),
    "chat-broken": (502, "The chat endpoint's answer broke off"),
    "chat-unconfigured": (503, "No chat endpoint is set"),
    "chat-timeout": (504, "The chat endpoint did not answer in time"),
}

#: Error of the engine → kind, and what may be said of it (None: its own message).
ERRORS: dict[type[TrivetError], tuple[str, str | None]] = {
    ModelMismatchError: ("conflict", "the collection holds vectors of another model"),
    TakenError: ("conflict", None),
    NotAllowedError: ("not-allowed", None),
    InputError: ("invalid", None),
    NotFoundError: ("not-found", None),
    DeadlineError: ("timeout", None),
    StoreReplacedError: (
        "unavailable",
        "the store was replaced, moved or deleted; the service has to be started again",
    ),
    StoreBusyError: ("unavailable", "another process keeps the store locked; try again, or look into the log"),
    StoreError: ("unavailable", "the store could not be read or written; the log tells more under the request's id"),
    EmbedderError: ("unavailable", "the embedding model does not answer; the log tells more under the request's id"),
    MissingExtraError: ("unavailable", "a part of the service is not installed; the log tells more"),
    TrivetError: ("failed", "the log tells more under the request's id"),
}

_FIELD = re.compile(r"([A-Za-z_][\w.]*)(?=:| )")
_PLACED = re.compile(r"document (?:'[^']*'|\d+): ")


def of(error: TrivetError) -> Problem:
    """The problem a known error is."""
    if isinstance(error, Refused):
        return Problem(error.kind, error.detail, named(error.field, error.detail), error.headers)
    if isinstance(error, ChatError):
        return Problem(f"chat-{error.kind}", without_paths(str(error)), episode=error.episode)
    kind, said = next(ERRORS[known] for known in type(error).__mro__ if known in ERRORS)
    if said is not None:
        return Problem(kind, said)
    message = str(error)
    return Problem(kind, message, named(field_of(message), message) if kind == "invalid" else ())


def named(field: str, message: str) -> tuple[dict[str, str], ...]:
    return ({"field": field, "message": message},) if field else ()


def field_of(message: str) -> str:
    """The engine's messages begin with the field: ``weights.dense: 7 is out of range``."""
    found = _FIELD.match(_PLACED.sub("", message, count=1))
    return found[1] if found else ""
