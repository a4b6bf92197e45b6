"""What document is a Markdown text, and what does it say of itself?

Front matter is YAML between two lines of ``---`` at the top. What has a field of ours goes there; the rest is metadata.
It is read as YAML 1.2's core has it: a date stays the text that was written, ``no`` is a word, ``007`` and ``12:30``
are no numbers. Anchors are not followed: a few lines of them can stand for more than a machine holds.
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

MAX_DEPTH = 32  # of nested values, as metadata may be
#: Names that people use → our field; the first that is there counts, the others stay metadata.
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


#: The id of the document that a link's name means; None where there is none.
Resolve = Callable[[str], str | None]


class FrontMatterError(InputError):
    """It cannot be read; ``line`` is where, counted from the file's first."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"front matter: {reason}; mend it, or begin the file with a blank line if it is none")
        self.line = line


@dataclass(frozen=True, slots=True)
class Matter:
    """A text and what stood above it; ``found`` is whether anything did."""

    text: str
    said: Mapping[str, Any]
    found: bool = True


def read(text: str) -> Matter:
    """The text without its front matter, and that. A rule (``---``) with prose below it is text."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return Matter(text, {}, False)
    said = _values(text[opening.end() : closing.start()])
    if said is not None and not isinstance(said, dict):
        return Matter(text, {}, False)
    return Matter(text[closing.end() :], said or {})


def document(text: str, resolve: Resolve) -> dict[str, Any]:
    """Its fields, as ``Engine.add`` takes them; no ``links`` where it says nothing of any, so that those made by hand
    stay. ``resolve`` gives the id that a link's name means, if any."""
    matter = read(text)
    found, meta, given = fields(matter.said)
    found.setdefault("title", heading(matter.text))
    found |= {"text": matter.text, "meta": meta}
    if matter.found or linked(matter.text):
        found["links"] = links(matter.text, given, resolve)
    return found


def known_to(engine: Engine) -> Resolve:
    """A link's name is the id of a document that is there."""

    def resolve(name: str) -> str | None:
        try:
            return name if engine.get(name) is not None else None
        except InputError:  # it cannot be an id
            return None

    return resolve


def heading(text: str) -> str:
    """The first heading."""
    code = False
    for line in text.lstrip().split("\n")[:400]:
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            code = not code
        elif not code and stripped.startswith("#") and stripped.lstrip("#").startswith(" "):
            return stripped.strip("#").strip()
    return ""


def fields(said: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """(fields of a document, its metadata, its links as they were written)"""
    rest = {name: value for name, value in said.items() if value is not None}
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
        rest[TAGS] = _words(rest[TAGS])
    return found, rest, links if isinstance(links, list) else [] if links is None else [links]


def names(said: Mapping[str, Any]) -> Iterator[str]:
    """What a link may call the file, besides its path."""
    for value in (said.get("id"), said.get("title"), *_listed(said.get(ALIASES))):
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield str(value)


def links(text: str, given: list[Any], resolve: Resolve) -> list[Any]:
    """The links of a file: those of its front matter, and its text's ``[[…]]`` as see-also, where the target is known.
    A target in the front matter without brackets that is no file's may be an id of the store, and stays."""
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


def linked(text: str) -> bool:
    """Does it hold a ``[[link]]``?"""
    return _WIKI.search(text) is not None


def _unwrapped(item: Any) -> Any:
    """``[[door]]`` without quotes is a list in a list to YAML."""
    inner = item
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return f"[[{inner}]]" if isinstance(item, list) and isinstance(inner, str) else inner


def _words(value: Any) -> Any:
    """``a, b`` and ``#a #b`` are tags as well as a list of them."""
    if isinstance(value, str):
        return [word.lstrip("#") for word in re.split(r"[,\s]+" if "#" in value else r"\s*,\s*", value.strip()) if word]
    return [item.lstrip("#") if isinstance(item, str) else item for item in _listed(value)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


# --- YAML -------------------------------------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain values only; keys are text, each once."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as in its base: filled below

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=key.start_mark)
            if key.value in found:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
            found[key.value] = self.construct_object(value, deep=True)
        return found


for _tag, _form, _starts in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", list("-+0123456789")),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]+|[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]{1,3})", list("-+0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), _starts)


def _values(text: str) -> Any:
    try:
        _check(text)
        return yaml.load(text, Loader=_Loader)  # a SafeLoader, made stricter  # nosec B506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FrontMatterError(str(error.problem or error.context), (mark.line if mark else 0) + 2) from None
    except yaml.reader.ReaderError as error:
        odd = error.character if isinstance(error.character, str) else chr(error.character)
        line = text.count("\n", 0, max(text.find(odd), 0))
        raise FrontMatterError(f"the character U+{ord(odd):04X} is not allowed", line + 2) from None
    except ValueError as error:  # a value of a tag that it does not fit
        raise FrontMatterError(str(error), 2) from None


def _check(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="anchors (*name) are not followed", problem_mark=event.start_mark)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {MAX_DEPTH} levels deep", problem_mark=event.start_mark
            )
