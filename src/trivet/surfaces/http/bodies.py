"""What is sent, and what comes back?

pydantic at the edge: the shape of every body, with an example that works. Answers are the engine's own nouns as
``wire`` writes them; the classes here describe them for OpenAPI and for clients made from it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

Moment = str | float
NOTE: dict[str, Any] = {
    "id": "door-7",
    "text": "The side door sticks in wet weather; lift the handle first.",
    "title": "Side door",
    "kind": "note",
    "meta": {"building": "north", "floor": 1},
    "importance": 0.6,
}


class Body(BaseModel):
    """Strict: a typo in a field is refused by name, and "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewMemory(Body):
    """What to remember: as a document, and how it is compared with what is there."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "text": "The side door was mended in May.",
                    "kind": "note",
                    "meta": {"building": "north"},
                    "links": [{"target": "door-7", "type": "supersedes"}],
                    "redact": True,
                    "where": {"building": "north"},
                }
            ]
        },
    )

    text: str
    id: str | None = Field(None, description="A name of your own; made up if it is left out.")
    title: str = ""
    kind: str = "note"
    meta: dict[str, Any] | None = None
    importance: float | None = Field(None, ge=0, le=1)
    created: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    links: list[str | LinkTo] | None = None
    redact: bool = Field(False, description="Take secrets of known shapes out before anything is stored.")
    only_new: bool = Field(False, description="Refuse (409) an id that another memory has, instead of replacing it.")
    where: dict[str, Any] | str | list[Any] | None = Field(
        None, description="Among which documents near copies are looked for; among all if it is left out."
    )


class LinkTo(Body):
    target: str
    type: str = "see-also"
    weight: float = 1.0


class NewDocument(Body):
    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [NOTE]})

    id: str | int | None = Field(None, description="Made up if it is left out; an id that exists is replaced.")
    text: str
    title: str | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    importance: float | None = Field(None, ge=0, le=1)
    created: Moment | None = None
    updated: Moment | None = None
    accessed: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    links: list[str | LinkTo] | None = None
    vector: list[float] | None = Field(None, description="Only where the collection's vectors are the caller's own.")
    triples: list[list[str]] | None = Field(None, description="[subject, relation, object] each, for the graph leg.")


class NewDocuments(Body):
    documents: list[str | NewDocument] = Field(examples=[[NOTE, "The roof hatch is checked every March."]])


def _how_many(body: Any) -> str:
    known = body.get("documents") is not None if isinstance(body, dict) else isinstance(body, NewDocuments)
    return "many" if known else "one"


OneOrMany = Annotated[
    Annotated[NewDocument, Tag("one")] | Annotated[NewDocuments, Tag("many")], Discriminator(_how_many)
]


class Replacement(NewDocument):
    """A document whose id is in the path."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"text": "The side door was mended in May.", "kind": "note"}]},
    )


class Changes(Body):
    """Only what is named changes. ``meta`` is merged, level by level; null takes a key, or a bound of time, away."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"importance": 0.9, "title": "Side door (north)"}]}
    )

    text: str | None = None
    title: str | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    importance: float | None = Field(None, ge=0, le=1)
    created: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    links: list[str | LinkTo] | None = None


class NewCollection(Body):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"language": "en", "words_only": True}]}
    )

    language: str | None = None
    passage_size: int | None = Field(None, ge=0)
    words_only: bool = Field(False, description="No meaning leg. Which model embeds is the server's configuration.")


class Ask(Body):
    """A question. ``overrides`` are fields of a profile, for this request only."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "query": "why does the door stick",
                    "k": 5,
                    "where": {"building": "north", "floor": {"gte": 1}},
                    "overrides": {"alpha": 0.5, "min_relevance": 0.1},
                }
            ]
        },
    )

    query: str
    k: int | None = Field(None, description="How many hits; else as the settings say.")
    offset: int = Field(0, ge=0, description="Leave out the first hits: the next page.")
    where: dict[str, Any] | str | list[Any] | None = Field(None, description="A filter: docs/HTTP.md shows the forms.")
    profile: str | None = Field(None, description="A shipped profile; else the collection's settings.")
    overrides: dict[str, Any] | None = None
    exclude: list[str] | None = None
    vector: list[float] | None = None
    at: Moment | None = Field(None, description="The moment it is asked, for what depends on time.")
    as_of: Moment | None = Field(None, description="Only what was valid at that moment.")
    explain: bool = Field(True, description="With what each leg gave, what each reranker did and each stage's time.")
    marks: bool = Field(False, description="With the spans of each hit's text whose words were asked for.")


class Why(Body):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"query": "why does the door stick", "id": "door-7"}]},
    )

    query: str
    id: str
    where: dict[str, Any] | str | list[Any] | None = None
    profile: str | None = None
    overrides: dict[str, Any] | None = None


class SettingsChanges(BaseModel):
    """Fields of a profile, checked by it. ``profile`` starts from a shipped one instead of what is in force."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"keywordWeight": 1.0}, {"profile": "memories", "min_relevance": 0.1}]},
    )

    profile: str | None = None


class Revert(Body):
    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"to": 1}]})

    to: int = Field(
        description="The number of a change in the history: its settings come into force again.", ge=0, lt=2**63
    )


class Verdict(Body):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"query": "why does the door stick", "id": "door-7", "good": True}]},
    )

    query: str
    id: str
    good: bool = True


class NewLink(Body):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"source": "door-8", "target": "door-7", "type": "supersedes"}]},
    )

    source: str
    target: str
    type: str = "see-also"
    weight: float = 1.0


# --- answers ----------------------------------------------------------------------------------------------------------


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
