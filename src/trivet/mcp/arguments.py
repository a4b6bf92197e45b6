"""The arguments of the tools. The schema of a model is the input schema of its tool.

Agents often send lists and objects as JSON text, and null for arguments they do not use; both are accepted.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from trivet.errors import InputError
from trivet.fusion.relevance import KNOWN
from trivet.mcp import delimiters

MAX_HITS = 50
MAX_IDS = 100
MAX_FETCHED = 20


def _parsed(value: Any) -> Any:
    """Return the list or object in a JSON text; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _listed(value: Any) -> Any:
    value = _parsed(value)
    return [value] if isinstance(value, str) else value


Meta = Annotated[dict[str, Any], BeforeValidator(_parsed)]
Ids = Annotated[list[str], BeforeValidator(_listed)]
#: The engine checks a filter; it accepts an object, a list or text.
Where = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]
Time = Annotated[str, Field(max_length=64)]

_QUERY = "What to search for, in plain words: a question, a name, an error message."
_WHERE = (
    'Only memories that match this filter, e.g. {"kind": "decision"}, {"project": "heron", "year": {"gte": 2025}}, '
    '{"tags": ["a", "b"]} (any of), {"path": {"prefix": "docs/"}}, {"title": {"contains": "pump"}}.'
)
_META = 'Metadata to filter by later, e.g. {"project": "heron", "tags": ["hardware"]}.'
_IMPORTANCE = "0 (trivia) to 1 (must not be missed)."
_FROM = "When it becomes true, ISO 8601; empty: no start."
_TO = "Until when it is true, ISO 8601; empty: no end."
_EXPIRES = "When to delete it, ISO 8601; empty: never."
_AS_OF = "Search what was valid at this time, ISO 8601; empty: now."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


A = TypeVar("A", bound=Arguments)


class Linked(Arguments):
    target: str = Field(description="The id of the target memory.")
    type: str = Field("see-also", description="supersedes, resolved-by, part-of, see-also…")


class Remember(Arguments):
    text: str = Field(
        description="One fact, decision or event that can be understood on its own: say who, what and why."
    )
    title: str = Field("", description="A short title.")
    kind: str = Field("note", description="note, decision, preference, episode, snippet…")
    meta: Meta = Field(default_factory=dict, description=_META)
    importance: float = Field(0.5, ge=0, le=1, description=_IMPORTANCE)
    id: str = Field("", description="Your own id, unused in this collection; made up if left out.")
    valid_from: Time = Field("", description=_FROM)
    valid_to: Time = Field("", description=_TO)
    expires: Time = Field("", description=_EXPIRES)
    links: Annotated[list[Linked], BeforeValidator(_parsed)] = Field(
        default_factory=list, max_length=MAX_IDS, description="Links from this memory; supersedes replaces the old one."
    )
    where: Where = Field(
        default_factory=dict,
        description='Look for near-duplicates among these memories only, e.g. {"project": "heron"}.',
    )


class Recall(Arguments):
    query: str = Field(description=_QUERY)
    k: int = Field(8, ge=1, le=MAX_HITS, description="Maximum number of memories.")
    where: Where = Field(default_factory=dict, description=_WHERE)
    min_relevance: float = Field(
        KNOWN,
        ge=0,
        le=1,
        description="Leave out weaker matches: 0.2 keeps likely ones, 0.5 strong ones, 0 all. The result may be empty.",
    )
    as_of: Time = Field("", description=_AS_OF)
    exclude: Ids = Field(
        default_factory=list, max_length=1_000, description="Ids of memories to leave out, e.g. those you already have."
    )


class Context(Arguments):
    query: str = Field(description="The current task or question.")
    budget: int = Field(1_500, ge=50, le=32_000, description="Maximum size in tokens, about 4 characters each.")
    where: Where = Field(default_factory=dict, description=_WHERE)
    as_of: Time = Field("", description=_AS_OF)


class Get(Arguments):
    ids: Ids = Field(min_length=1, max_length=MAX_FETCHED, description="Ids of memories, from recall, context or list.")
    budget: int = Field(
        8_000, ge=50, le=200_000, description="Maximum size of all texts in tokens; a longer text is cut."
    )


class List(Arguments):
    limit: int = Field(20, ge=1, le=MAX_HITS, description="Maximum number of memories.")
    where: Where = Field(default_factory=dict, description=_WHERE)


class Edge(Arguments):
    source: str
    target: str
    type: str = Field("", description="The type of link; empty: all links between the two.")


class Forget(Arguments):
    ids: Ids = Field(default_factory=list, max_length=MAX_IDS, description="Ids of the memories to delete permanently.")
    links: Annotated[list[Edge], BeforeValidator(_parsed)] = Field(
        default_factory=list, max_length=MAX_IDS, description="Links to remove; the memories stay."
    )


class Update(Arguments):
    id: str = Field(description="The id from recall or remember.")
    text: str = Field("", description="The complete new text.")
    title: str = Field("", description="The new title.")
    kind: str = Field("note", description="The new kind.")
    meta: Meta = Field(default_factory=dict, description="Metadata to add or change; null removes a key.")
    importance: float = Field(0.5, ge=0, le=1, description=_IMPORTANCE)
    valid_from: Time = Field("", description=_FROM)
    valid_to: Time = Field(
        "",
        description="Until when it is true, ISO 8601. Set it when a fact ends, instead of deleting it.",
    )
    expires: Time = Field("", description=_EXPIRES)


class Link(Arguments):
    source: str = Field(description="The id of the source memory.")
    target: str = Field(description="The id of the target memory.")
    type: str = Field(
        "see-also",
        description="supersedes (source replaces target), resolved-by (target solves source), part-of, see-also…",
    )
    weight: float = Field(1.0, ge=0, description="How strong the link is.")


class Feedback(Arguments):
    query: str = Field(description="The query exactly as it was passed to recall.")
    id: str = Field(description="The id of the memory.")
    good: bool = Field(True, description="true: it helped; false: it was not relevant.")


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic generates; every word of a schema costs the agent tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema(model: type[BaseModel], mode: Any = "validation") -> dict[str, Any]:
    """Return the JSON schema of a model, without generated titles and without our docstrings."""
    found = model.model_json_schema(schema_generator=_WithoutTitles, mode=mode)
    for part in (found, *found.get("$defs", {}).values()):
        part.pop("description", None)
    return found


def parse(model: type[A], name: str, given: dict[str, Any]) -> A:
    """Return the arguments; an InputError names each wrong argument and the known ones."""
    try:
        return model.model_validate({key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        raise InputError(_message(error, name, list(model.model_fields))) from None


def _message(error: ValidationError, name: str, known: list[str]) -> str:
    parts = []
    for problem in error.errors(include_url=False):
        place = ".".join(_path_part(part) for part in problem["loc"])
        kind = problem["type"]
        if kind == "extra_forbidden":
            parts.append(f"{place}: unknown argument; {name} takes {', '.join(known)}")
        elif kind == "missing":
            parts.append(f"{place}: is required")
        else:
            parts.append(f"{place}: {problem['msg'][:1].lower()}{problem['msg'][1:]}")
    return "; ".join(dict.fromkeys(parts))


def _path_part(part: int | str) -> str:
    """Return a part of a path; a name that is not an identifier was made up by the caller and is quoted."""
    return str(part) if isinstance(part, int) or (part.isascii() and part.isidentifier()) else delimiters.quote(part)
