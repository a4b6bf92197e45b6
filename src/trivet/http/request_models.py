"""Schemas of the request bodies, each with an example that works."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

Moment = str | float
Importance = Annotated[float | None, Field(ge=0, le=1)]
Expires = Annotated[Moment | None, Field(description="From then on it is hidden; the next sweep deletes it.")]
Filter = dict[str, Any] | str | list[Any]
MAX_OFFSET = 1_000_000  # hits; no pool of candidates is nearly as deep
NOTE: dict[str, Any] = {
    "id": "door-7",
    "text": "The side door sticks in wet weather; lift the handle first.",
    "title": "Side door",
    "kind": "note",
    "meta": {"building": "north", "floor": 1},
    "importance": 0.6,
}
REPLACEMENT = {"text": "The side door was mended in May.", "kind": "note"}
MEMORY = {
    **REPLACEMENT,
    "meta": {"building": "north"},
    "links": [{"target": "door-7", "type": "supersedes"}],
    "redact": True,
    "where": {"building": "north"},
}
SEARCH = {
    "query": "why does the door stick",
    "k": 5,
    "where": {"building": "north", "floor": {"gte": 1}},
    "overrides": {"alpha": 0.5, "min_relevance": 0.1},
}


def examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class Body(BaseModel):
    """A strict body: an unknown field is refused by name, and "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LinkTo(Body):
    target: str
    type: str = "see-also"
    weight: float = 1.0


class NewMemory(Body):
    """A document to remember, and where to look for near-duplicates of it."""

    model_config = examples(MEMORY)

    text: str
    id: str | None = Field(None, description="Your own id; made up if left out.")
    title: str = ""
    kind: str = "note"
    meta: dict[str, Any] | None = None
    importance: Importance = None
    created: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires: Expires = None
    links: list[str | LinkTo] | None = None
    redact: bool = Field(False, description="Remove secrets of known formats before anything is stored.")
    only_new: bool = Field(False, description="Refuse (409) an id that another memory has, instead of replacing it.")
    where: Filter | None = Field(
        None, description="Look for near-duplicates among these documents only; among all if left out."
    )


class NewDocument(Body):
    model_config = examples(NOTE)

    id: str | int | None = Field(None, description="Made up if left out; a document with the same id is replaced.")
    text: str
    title: str | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    importance: Importance = None
    created: Moment | None = None
    updated: Moment | None = None
    accessed: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires: Expires = None
    links: list[str | LinkTo] | None = None
    vector: list[float] | None = Field(None, description="Only if you supply the vectors of this collection yourself.")
    triples: list[list[str]] | None = Field(None, description="[subject, relation, object] each, for the graph leg.")


class NewDocuments(Body):
    documents: list[str | NewDocument] = Field(examples=[[NOTE, "The roof hatch is checked every March."]])


def _tag(body: Any) -> str:
    many = body.get("documents") is not None if isinstance(body, dict) else isinstance(body, NewDocuments)
    return "many" if many else "one"


OneOrMany = Annotated[Annotated[NewDocument, Tag("one")] | Annotated[NewDocuments, Tag("many")], Discriminator(_tag)]


class Replacement(NewDocument):
    """A document whose id is in the path."""

    model_config = examples(REPLACEMENT)


class Changes(Body):
    """Only the fields given are changed. ``meta`` is merged, level by level; null removes a key or a time limit."""

    model_config = examples({"importance": 0.9, "title": "Side door (north)"})

    text: str | None = None
    title: str | None = None
    kind: str | None = None
    meta: dict[str, Any] | None = None
    importance: Importance = None
    created: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires: Expires = None
    links: list[str | LinkTo] | None = None


class NewCollection(Body):
    model_config = examples({"language": "en", "words_only": True})

    language: str | None = None
    passage_size: int | None = Field(None, ge=0)
    words_only: bool = Field(False, description="No dense leg. The server's configuration sets the embedding model.")


class SearchBody(Body):
    """A search. ``overrides`` are fields of a profile, for this request only."""

    model_config = examples(SEARCH)

    query: str
    k: int | None = Field(None, description="Number of hits; the collection's settings if left out.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Skip this many hits: the next page.")
    where: Filter | None = Field(None, description="A filter; docs/reference/http.md shows the forms.")
    profile: str | None = Field(None, description="A shipped profile; the collection's settings if left out.")
    overrides: dict[str, Any] | None = None
    exclude: list[str] | None = None
    vector: list[float] | None = None
    at: Moment | None = Field(None, description="The time of the query, for everything that depends on time.")
    as_of: Moment | None = Field(None, description="Only what was valid at that moment.")
    explain: bool = Field(True, description="Include each leg's share, each reranker's change and each stage's time.")
    full: bool = Field(False, description="Include the whole text of each document; a hit has that of its passage.")
    fields: list[str] | None = Field(None, description="Only these keys of a hit.", examples=[["id", "text"]])
    marks: bool = Field(False, description="Include the positions in each hit's text that match words of the query.")


class ExplainBody(Body):
    model_config = examples({"query": "why does the door stick", "id": "door-7"})

    query: str
    id: str
    where: Filter | None = None
    profile: str | None = None
    overrides: dict[str, Any] | None = None


class SettingsChanges(BaseModel):
    """Fields of a profile. ``profile`` starts from a shipped one instead of the current settings."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"keywordWeight": 1.0}, {"profile": "memories", "min_relevance": 0.1}]},
    )

    profile: str | None = None


class Revert(Body):
    model_config = examples({"to": 1})

    to: int = Field(description="The number of a change in the history; its settings apply again.", ge=0, lt=2**63)


class NewFeedback(Body):
    model_config = examples({"query": "why does the door stick", "id": "door-7", "good": True})

    query: str
    id: str
    good: bool = True


class NewLink(Body):
    model_config = examples({"source": "door-8", "target": "door-7", "type": "supersedes"})

    source: str
    target: str
    type: str = "see-also"
    weight: float = 1.0
