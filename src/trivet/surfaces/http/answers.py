"""What comes back, field by field?

Answers are the engine's own nouns as ``replies.py`` writes them; the classes here describe them for OpenAPI and for
clients made from it, and the fuzz holds every answer to them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class FieldError(BaseModel):
    field: str
    message: str


class ProblemDetails(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "https://trivet.invalid/problems/invalid",
                    "title": "A value is not allowed",
                    "status": 422,
                    "detail": "weights.lexical: 9 is out of range; allowed: 0 to 5",
                    "request_id": "3f2a9c0d11e24b7a",
                    "errors": [
                        {
                            "field": "weights.lexical",
                            "message": "weights.lexical: 9 is out of range; allowed: 0 to 5",
                        }
                    ],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldError] | None = None
    episode: str | None = Field(None, description="Where a chat failed: the episode that keeps the message.")


class DegradedPart(BaseModel):
    part: str
    reason: str


class StoredDocument(BaseModel):
    id: str
    text: str
    title: str
    kind: str
    meta: dict[str, Any]
    importance: float
    created: datetime | None
    updated: datetime | None
    accessed: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    accesses: int = 0
    expires: datetime | None = None


class StoredLink(BaseModel):
    source: str
    target: str
    type: str
    weight: float


class DocumentWithLinks(StoredDocument):
    links: list[StoredLink]


class AddedDocuments(BaseModel):
    """Durable and found by their words when this is sent."""

    ids: list[str]
    added: int
    updated: int
    unchanged: int
    duplicates: int
    pending: int = Field(description="Passages of the collection that wait to be embedded.")
    degraded: list[DegradedPart]
    redacted: dict[str, int] = Field(description="Kind of secret → how many were taken out, where that was asked for.")


class AlikeDocument(BaseModel):
    id: str
    similarity: float
    text: str
    suggestion: str = Field(description="What might be done about it: update, supersede or keep both.")


class RememberedMemory(BaseModel):
    """Stored; or known already, and then reinforced."""

    id: str
    stored: bool
    reinforced: bool
    similar: list[AlikeDocument] = Field(description="What says nearly the same; nothing was merged.")
    redacted: list[str] = Field(description="The kinds of secrets that were taken out.")
    degraded: list[DegradedPart]


class DocumentPage(BaseModel):
    documents: list[StoredDocument]
    next: str | None = Field(description="Give it as `after` for the following page; null: this was the last.")


class Deleted(BaseModel):
    deleted: int


class PassageSpan(BaseModel):
    ordinal: int
    start: int
    end: int
    text: str


class LegShare(BaseModel):
    leg: str
    rank: int
    raw: float
    normalised: float
    weight: float
    share: float


class ScoreChange(BaseModel):
    reranker: str
    before: float
    after: float
    reason: str


class FoundHit(BaseModel):
    rank: int
    id: str
    score: float
    relevance: float
    title: str
    text: str
    document: StoredDocument
    stands_for: list[str] = []
    resolved_by: list[str] = []
    path: list[str] = Field([], description="How the graph leg came here: a document, how it is connected, the next.")
    context: list[PassageSpan] = Field(
        [], description="What stands around the passage, where `neighbours` are asked for."
    )
    passage: PassageSpan | None = None
    fused: float | None = None
    contributions: list[LegShare] | None = None
    adjustments: list[ScoreChange] | None = None
    marks: list[tuple[int, int]] | None = None


class TimedStage(BaseModel):
    name: str
    ms: float
    detail: str


class Found(BaseModel):
    query: str
    hits: list[FoundHit]
    profile: str
    degraded: list[DegradedPart]
    candidates: int
    ms: float
    trace: list[TimedStage] | None = None


class LegSays(BaseModel):
    leg: str
    weight: float
    rank: int | None
    score: float | None
    depth: int
    strength: float
    note: str


class Explained(BaseModel):
    query: str
    id: str
    rank: int | None
    verdicts: list[LegSays]
    profile: str
    hit: dict[str, Any] | None
    reason: str


class SettingsInForce(BaseModel):
    model_config = ConfigDict(extra="allow")

    identity: str
    name: str
    k: int
    weights: dict[str, float]
    fusion: str
    semanticWeight: float = Field(description="The weight of the meaning leg, as seed 000 names it.")  # noqa: N815
    keywordWeight: float = Field(description="The weight of the words leg, as seed 000 names it.")  # noqa: N815


class SettingsChangeMade(BaseModel):
    number: int
    at: datetime
    by: str
    settings: dict[str, Any]
    previous: dict[str, Any] | None


class SettingsHistory(BaseModel):
    changes: list[SettingsChangeMade]


class GivenFeedback(BaseModel):
    query: str
    id: str
    good: bool
    at: datetime


class Feedbacks(BaseModel):
    feedback: list[GivenFeedback]


class Forgotten(BaseModel):
    forgotten: int


class Links(BaseModel):
    links: list[StoredLink]


class Removed(BaseModel):
    removed: int


class CollectionStats(BaseModel):
    collection: str
    documents: int
    passages: int
    embedded: int
    pending: int
    links: int
    model: str | None
    language: str
    bytes_store: int
    bytes_index: int
    profile: str
    fields: list[str]
    embed_error: str
    scorer: str | None


class Collections(BaseModel):
    collections: list[str]


class Profiles(BaseModel):
    profiles: list[dict[str, Any]]


class Health(BaseModel):
    status: str


class ImportLine(BaseModel):
    """A line of the answer to an import; the last one has ``done``."""

    read: int
    added: int
    updated: int
    unchanged: int
    repeated: int
    feedback: int
    broken: int
    redacted: dict[str, int] | None = None
    done: bool = False
    pending: int | None = None
    problems: list[dict[str, str]] | None = None
    error: str | None = None
