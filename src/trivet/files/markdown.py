"""Markdown texts as documents: the fields of the front matter, the first heading as title, wiki links as links.

Front matter is YAML between two lines of ``---`` at the top. A name in ``FIELDS`` sets that field; the rest becomes
metadata. It is read by the core schema of YAML 1.2: a date stays text, ``no`` is a word, ``007`` and ``12:30`` are not
numbers. Anchors are refused, because a few lines of them can expand to more than the memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.engine import Engine

MAX_DEPTH = 32  # levels of nested values, the limit of metadata
#: Field → its names in front matter; the first one present counts, the others stay metadata.
FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "title": ("title",),
    "kind": ("kind", "type"),
    "importance": ("importance",),
    "created": ("created", "created_at", "date"),
    "updated": ("updated", "updated_at", "modified"),
    "valid_from": ("valid_from",),
    "valid_to": ("valid_to",),
    "expires": ("expires",),
}
TAGS, LINKS, ALIASES = "tags", "links", "aliases"

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_WIKI = re.compile(r"\[\[([^\[\]|#\n]+)(?:[|#][^\[\]\n]*)?\]\]")  # [[name]], [[name|shown]], [[name#heading]]
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)

#: Returns the id of the document that a link names, or None.
Resolve = Callable[[str], str | None]


class FrontMatterError(InputError):
    """Front matter that cannot be read; ``line`` counts from the first line of the file."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"front matter: {reason}; correct it, or start the file with a blank line if it has none")
        self.line = line


@dataclass(frozen=True, slots=True)
class Matter:
    """A text, and the values of its front matter; ``found`` tells whether it has one."""

    text: str
    values: Mapping[str, Any]
    found: bool = True


def split(text: str) -> Matter:
    """Separate the front matter from the text. A rule (``---``) with prose below it is text."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return Matter(text, {}, False)
    values = _load(text[opening.end() : closing.start()])
    if values is not None and not isinstance(values, dict):
        return Matter(text, {}, False)
    return Matter(text[closing.end() :], values or {})


def document(text: str, resolve: Resolve) -> dict[str, Any]:
    """Return the document of a text, as ``Engine.add`` takes it.

    It has no ``links`` where the text has neither front matter nor links, so that links made by hand stay.
    """
    matter = split(text)
    found, meta, given = fields(matter.values)
    found.setdefault("title", heading(matter.text))
    found |= {"text": matter.text, "meta": meta}
    if matter.found or has_links(matter.text):
        found["links"] = links(matter.text, given, resolve)
    return found


def resolve_ids(engine: Engine) -> Resolve:
    """Return a function that resolves a link's name where it is the id of a stored document."""

    def resolve(name: str) -> str | None:
        try:
            return name if engine.get(name) is not None else None
        except InputError:  # not a valid id
            return None

    return resolve


def heading(text: str) -> str:
    """Return the first heading, or an empty text."""
    code = False
    for line in text.lstrip().split("\n")[:400]:
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            code = not code
        elif not code and stripped.startswith("#") and stripped.lstrip("#").startswith(" "):
            return stripped.strip("#").strip()
    return ""


def fields(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """Return the fields of a document, its metadata, and its links as they were written."""
    rest = {name: value for name, value in values.items() if value is not None}
    found: dict[str, Any] = {}
    for field, names in FIELDS.items():
        name = next((name for name in names if name in rest), None)
        if name is not None:
            found[field] = rest.pop(name)
    for field in ("title", "kind"):  # `title: 1984` is a title
        if isinstance(found.get(field), int | float):
            found[field] = str(found[field])
    links = rest.pop(LINKS, None)
    if TAGS in rest:
        rest[TAGS] = _tags(rest[TAGS])
    return found, rest, links if isinstance(links, list) else [] if links is None else [links]


def names(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names by which a link may refer to the file, besides its path."""
    for value in (values.get("id"), values.get("title"), *_as_list(values.get(ALIASES))):
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield str(value)


def links(text: str, given: list[Any], resolve: Resolve) -> list[Any]:
    """Return the links of the front matter (``given``), and the ``[[…]]`` of the text as see-also.

    A ``[[name]]`` that cannot be resolved is left out. A target without brackets stays: it may be an id of the store.
    """
    found: dict[tuple[str, str], Any] = {}
    for item in given:
        entry = dict(item) if isinstance(item, dict) else {"target": _unwrapped(item)}
        target = entry.get("target")
        if not isinstance(target, str):
            raise InputError(f"links: {item!r} is not a target, [[a name]] or {{target: …, type: …}}")
        wiki = _WIKI.fullmatch(target.strip())
        known = resolve((wiki[1] if wiki else target).strip())
        if known is not None or not wiki:
            entry["target"] = known or target
            found[entry["target"], str(entry.get("type", "see-also"))] = entry
    for name in _WIKI.findall(_CODE.sub("", text)):
        known = resolve(name.strip())
        if known is not None:
            found.setdefault((known, "see-also"), {"target": known})
    return list(found.values())


def has_links(text: str) -> bool:
    """Return whether the text contains a ``[[link]]``."""
    return _WIKI.search(text) is not None


def _unwrapped(item: Any) -> Any:
    """Restore ``[[door]]``, which YAML reads as a list in a list."""
    inner = item
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return f"[[{inner}]]" if isinstance(item, list) and isinstance(inner, str) else inner


def _tags(value: Any) -> Any:
    """Return the tags as a list; they may be written as a list, as ``a, b`` or as ``#a #b``."""
    if isinstance(value, str):
        return [word.lstrip("#") for word in re.split(r"[,\s]+" if "#" in value else r"\s*,\s*", value.strip()) if word]
    return [item.lstrip("#") if isinstance(item, str) else item for item in _as_list(value)]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


# --- YAML -------------------------------------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain values only; every key is text and occurs once."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - filled below, as in the base class

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=key.start_mark)
            if key.value in found:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} occurs twice", problem_mark=key.start_mark)
            found[key.value] = self.construct_object(value, deep=True)
        return found


for _tag, _form, _starts in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", list("-+0123456789")),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]+|[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]{1,3})", list("-+0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), _starts)


def _load(text: str) -> Any:
    try:
        _check(text)
        return yaml.load(text, Loader=_Loader)  # stricter than SafeLoader  # nosec B506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FrontMatterError(str(error.problem or error.context), (mark.line if mark else 0) + 2) from None
    except yaml.reader.ReaderError as error:
        odd = error.character if isinstance(error.character, str) else chr(error.character)
        line = text.count("\n", 0, max(text.find(odd), 0))
        raise FrontMatterError(f"the character U+{ord(odd):04X} is not allowed", line + 2) from None
    except ValueError as error:  # a value that does not fit its tag
        raise FrontMatterError(str(error), 2) from None


def _check(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="anchors (*name) are not supported", problem_mark=event.start_mark)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {MAX_DEPTH} levels deep", problem_mark=event.start_mark
            )
