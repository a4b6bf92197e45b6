"""Schemas of the responses, for OpenAPI.

A response is a value of ``trivet.types`` written field by field (``serialize``), so the schema is made from that type.
The classes here describe only what the service adds or leaves out. No response is validated or written by them; a
fuzz test compares every response with its schema.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from trivet import serialize
from trivet.http import problem_details
from trivet.types import Degraded, Document, Feedback, Hit, Link, Passage, Stage, Stats

#: Status codes that every route may return, that a route with a name in its path adds, and that one with a body adds.
ALWAYS = (400, 401, 403, 405, 422, 429, 500, 503, 504)
NOT_FOUND, WITH_BODY = (404,), (408, 413, 415)
#: The fields of a hit that a search with ``explain: false`` leaves out.
EXPLAIN_FIELDS = ("passage", "fused", "contributions", "adjustments")
#: Descriptions of fields of ``trivet.types``, by type and field.
DESCRIPTIONS = {
    "Added": {
        "pending": "Passages of the collection that wait to be embedded.",
        "redacted": "Kind of secret and how many were removed, if `redact` was set.",
    },
    "Page": {"next": "Pass it as `after` to get the next page; null on the last page."},
    "Remembered": {
        "similar": "Documents that say the same or that the new one contradicts; nothing was merged.",
        "redacted": "The kinds of secrets that were removed.",
    },
    "Similar": {
        "suggestion": "What to do about it: update, supersede or keep both.",
        "relation": "What the new document is to it: same, updated, contradicting or related.",
        "changed": "What changed, as `24 → 13`; empty if nothing can be named.",
        "statement": "The sentence, the title or the whole text of it that was compared.",
    },
}


class FieldError(BaseModel):
    field: str
    message: str


_INVALID = "weights.lexical: 9 is out of range; allowed: 0 to 5"
_PROBLEM: dict[str, Any] = {
    "type": f"{problem_details.TYPES}invalid",
    "title": problem_details.KINDS["invalid"][1],
    "status": 422,
    "detail": _INVALID,
    "request_id": "3f2a9c0d11e24b7a",
    "errors": [{"field": "weights.lexical", "message": _INVALID}],
}


class ProblemDetails(BaseModel):
    """Problem details (RFC 9457)."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PROBLEM]})

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldError] | None = None
    message: str | None = Field(None, description="The detail again, for the SDK of OpenAI.")
    episode: str | None = Field(None, description="The episode that keeps the message, if a chat failed.")


def responses(model: Any, *more: int, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route for OpenAPI: ``model`` with ``status``, and its problems."""
    success: dict[str, Any] = {"description": "Success"}
    if model is not None:
        success["model"] = model
    found: dict[int | str, dict[str, Any]] = {status: success}
    titles = dict(reversed(problem_details.KINDS.values()))
    for code in sorted({*ALWAYS, *more}):
        found[code] = {"description": titles[code], "model": ProblemDetails}
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWithLinks(Document):
    """A document with its links in both directions."""

    links: tuple[Link, ...]


class Deleted(BaseModel):
    deleted: int


def _without_text(kind: type) -> Any:
    """Return the model of a document or a passage that has its text only with ``full``."""
    required: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(kind).items()}
    return create_model(f"Found{kind.__name__}", **{**required, "text": (str | None, None)})


_PARTS = {"document": _without_text(Document), "passage": _without_text(Passage)}
_KINDS = get_type_hints(Hit)
_HIT: dict[str, Any] = {name: (_PARTS.get(name, _KINDS[name]) | None, None) for name in (f.name for f in fields(Hit))}
_HIT |= dict.fromkeys(serialize.ADDED, (str | None, None)) | {"marks": (list[tuple[int, int]] | None, None)}
#: A hit with its relevance as a word, its place in the document, the title of that, the text of its passage, and the
#: marks in that text. With ``fields`` only some keys are there.
FoundHit = create_model("FoundHit", **_HIT)


class Found(BaseModel):
    query: str
    hits: list[FoundHit]  # type: ignore[valid-type]
    profile: str
    degraded: list[Degraded]
    candidates: int
    ms: float
    trace: list[Stage] | None = None


class SettingsInForce(BaseModel):
    model_config = ConfigDict(extra="allow")

    identity: str
    name: str
    k: int
    weights: dict[str, float]
    fusion: str
    semanticWeight: float = Field(description="The weight of the dense leg.")  # noqa: N815
    keywordWeight: float = Field(description="The weight of the lexical leg.")  # noqa: N815


class SettingsChangeMade(BaseModel):
    number: int
    at: datetime
    by: str
    settings: dict[str, Any]
    previous: dict[str, Any] | None


class SettingsHistory(BaseModel):
    changes: list[SettingsChangeMade]


class Feedbacks(BaseModel):
    feedback: list[Feedback]


class DeletedFeedback(BaseModel):
    forgotten: int


class Links(BaseModel):
    links: list[Link]


class Removed(BaseModel):
    removed: int


#: The statistics of a collection without the path of its store.
_STATS: dict[str, Any] = {name: (kind, ...) for name, kind in get_type_hints(Stats).items() if name != "path"}
CollectionStats = create_model("CollectionStats", **_STATS, space=(dict[str, int] | None, None))


class Collections(BaseModel):
    collections: list[str]


class Profiles(BaseModel):
    profiles: list[dict[str, Any]]


class Health(BaseModel):
    status: str
