"""What may a tool be told?

One model a tool: its schema is what the agent sees, and a wrong argument is refused with the names of the right ones.
Agents write lists and objects as JSON text and fill what they do not use with null; both are taken as meant.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from trivet.errors import InputError
from trivet.surfaces.mcp import fence

MAX_HITS = 50
MAX_IDS = 100


def _unpacked(value: Any) -> Any:
    """A list or an object that came as JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _several(value: Any) -> Any:
    value = _unpacked(value)
    return [value] if isinstance(value, str) else value


Meta = Annotated[dict[str, Any], BeforeValidator(_unpacked)]
Ids = Annotated[list[str], BeforeValidator(_several)]
#: Checked by the engine, which reads an object, a list and text.
Where = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]
Time = Annotated[str, Field(max_length=64)]

_QUERY = "What to look for, in plain words: a question, a name, an error message."
_WHERE = (
    'Only memories that match, e.g. {"kind": "decision"}, {"project": "heron", "year": {"gte": 2025}}, '
    '{"tags": ["a", "b"]} (any of).'
)
_META = 'Facts to filter by later, e.g. {"project": "heron", "tags": ["hardware"]}.'
_IMPORTANCE = "0 (trivia) to 1 (must not be missed)."
_FROM = "From when it is true, ISO 8601; empty: always was."
_TO = "Until when it is true, ISO 8601; empty: still is."
_EXPIRES = "When to forget it, ISO 8601; empty: never."
_AS_OF = "Answer as of this moment, ISO 8601: what was valid then; empty: now."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


A = TypeVar("A", bound=Arguments)


class Linked(Arguments):
    target: str = Field(description="The id of the memory it leads to.")
    type: str = Field("see-also", description="supersedes, resolved-by, part-of, see-also…")


class Remember(Arguments):
    text: str = Field(description="One fact, decision or event, complete in itself: name who, what and why.")
    title: str = Field("", description="A short headline.")
    kind: str = Field("note", description="note, decision, preference, episode, snippet…")
    meta: Meta = Field(default_factory=dict, description=_META)
    importance: float = Field(0.5, ge=0, le=1, description=_IMPORTANCE)
    id: str = Field("", description="A name of your own, new in this collection; left out, one is made.")
    valid_from: Time = Field("", description=_FROM)
    valid_to: Time = Field("", description=_TO)
    expires: Time = Field("", description=_EXPIRES)
    links: Annotated[list[Linked], BeforeValidator(_unpacked)] = Field(
        default_factory=list, max_length=MAX_IDS, description="Links from it; supersedes retires the old memory."
    )
    where: Where = Field(
        default_factory=dict, description='Look for near-duplicates among these only, e.g. {"project": "heron"}.'
    )


class Recall(Arguments):
    query: str = Field(description=_QUERY)
    k: int = Field(8, ge=1, le=MAX_HITS, description="How many at most.")
    where: Where = Field(default_factory=dict, description=_WHERE)
    min_relevance: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Leave out weaker matches: 0.15 is lenient, 0.4 strict. None may be left.",
    )
    as_of: Time = Field("", description=_AS_OF)
    exclude: Ids = Field(default_factory=list, max_length=1_000, description="Ids you already have.")


class Context(Arguments):
    query: str = Field(description="The task or the question at hand.")
    budget: int = Field(1_500, ge=50, le=32_000, description="Tokens it may take, about 4 characters each.")
    where: Where = Field(default_factory=dict, description=_WHERE)
    as_of: Time = Field("", description=_AS_OF)


class Edge(Arguments):
    source: str
    target: str
    type: str = Field("", description="One type; empty: all links between the two.")


class Forget(Arguments):
    ids: Ids = Field(default_factory=list, max_length=MAX_IDS, description="The memories to delete for good.")
    links: Annotated[list[Edge], BeforeValidator(_unpacked)] = Field(
        default_factory=list, max_length=MAX_IDS, description="Links to take away; the memories stay."
    )


class Update(Arguments):
    id: str = Field(description="The id that recall or remember gave.")
    text: str = Field("", description="The new text, whole.")
    title: str = Field("", description="The new headline.")
    kind: str = Field("note", description="Its new kind.")
    meta: Meta = Field(default_factory=dict, description="Metadata to add or change; null takes a key away.")
    importance: float = Field(0.5, ge=0, le=1, description=_IMPORTANCE)
    valid_from: Time = Field("", description=_FROM)
    valid_to: Time = Field("", description="Until when it is true, ISO 8601: a fact that ended is dated, not deleted.")
    expires: Time = Field("", description=_EXPIRES)


class Link(Arguments):
    source: str = Field(description="The id it leads from.")
    target: str = Field(description="The id it leads to.")
    type: str = Field(
        "see-also",
        description="supersedes (source replaces target), resolved-by (target solves source), part-of, see-also…",
    )
    weight: float = Field(1.0, ge=0, description="How strong.")


class Feedback(Arguments):
    query: str = Field(description="The query, word for word as it was recalled with.")
    id: str = Field(description="The memory it was about.")
    good: bool = Field(True, description="true: it helped; false: it was beside the point.")


class _Short(GenerateJsonSchema):
    """Without the titles pydantic makes of the names: an agent pays for every word of a schema."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema(model: type[BaseModel], mode: Any = "validation") -> dict[str, Any]:
    found = model.model_json_schema(schema_generator=_Short, mode=mode)
    found.pop("description", None)  # the docstring is ours
    return found


def read(model: type[A], name: str, given: dict[str, Any]) -> A:
    """The arguments, or an InputError that says what is wrong with them and what there is."""
    try:
        return model.model_validate({key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        raise InputError(_told(error, name, list(model.model_fields))) from None


def _told(error: ValidationError, name: str, known: list[str]) -> str:
    said = []
    for problem in error.errors(include_url=False):
        place = ".".join(_shown(part) for part in problem["loc"])
        kind = problem["type"]
        if kind == "extra_forbidden":
            said.append(f"{place}: unknown argument; {name} takes {', '.join(known)}")
        elif kind == "missing":
            said.append(f"{place}: is required")
        else:
            said.append(f"{place}: {problem['msg'][:1].lower()}{problem['msg'][1:]}")
    return "; ".join(dict.fromkeys(said))


def _shown(part: int | str) -> str:
    """A name as a place in the arguments; one that is no plain word was made up by the caller, and is quoted."""
    return str(part) if isinstance(part, int) or (part.isascii() and part.isidentifier()) else fence.quote(part)
