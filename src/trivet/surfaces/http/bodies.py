"""What is sent?

pydantic at the edge: the shape of every body, with an example that works. What comes back: ``answers.py``.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

Moment = str | float
EXPIRES: Any = Field(None, description="From then on nobody sees it, and it is forgotten.")
MAX_OFFSET = 1_000_000  # hits; no pool of candidates is nearly as deep
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
    expires: Moment | None = EXPIRES
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
    expires: Moment | None = EXPIRES
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
    expires: Moment | None = EXPIRES
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
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Leave out the first hits: the next page.")
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
