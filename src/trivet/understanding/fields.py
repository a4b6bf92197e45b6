"""Which ``field:value`` does the question hold?

A field that the collection has (built in, or a key of its metadata) becomes a filter; anything else (``12:30``,
``std::sort``, ``http://…``, ``note: buy milk``) stays text. User text is never a syntax error: a value that no document
has is text again, which is for the caller to find out (``understand`` only says what the filter would be).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from trivet.filters import BUILT_IN_FIELDS, TIME_FIELDS, Eq, Filter, Not, Or, Range

_FIELD = re.compile(r'(?<!\S)(-?)([^\W\d][\w.-]*):(?:"([^"]+)"|([^\s:/"][^\s"]*))(?=\s|$)')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Field:
    written: str
    where: Filter


def find_fields(text: str, known: Callable[[], Collection[str]]) -> list[Field]:
    """The fields a question names; ``known`` gives the keys of the metadata and is asked only where there is a need."""
    found: list[Field] = []
    keys: Collection[str] | None = None
    for match in _FIELD.finditer(text):
        minus, name, quoted, bare = match.groups()
        if name not in BUILT_IN_FIELDS:
            keys = known() if keys is None else keys
            if name.removeprefix("meta.") not in keys:
                continue
        value = quoted or bare.rstrip(",;?!")
        where = _moment(name, value) if name in TIME_FIELDS else _equal(name, value)
        if where is not None:
            found.append(Field(match[0], Not(where) if minus else where))
    return found


def without_fields(text: str, fields: Collection[Field]) -> str:
    for field in fields:
        text = text.replace(field.written, " ", 1)
    return " ".join(text.split())


def _equal(name: str, value: str) -> Filter:
    """As text; and as a number or a truth value where it could be one: the question does not say which is stored."""
    ways: list[Filter] = [Eq(name, value)]
    if _NUMBER.fullmatch(value):
        ways.append(Eq(name, float(value)))
    elif value.lower() in _BOOLEANS:
        ways.append(Eq(name, _BOOLEANS[value.lower()]))
    if name == "importance":
        return ways[-1]
    return ways[0] if len(ways) == 1 else Or(tuple(ways))


def _moment(name: str, value: str) -> Filter | None:
    """A year, a month or a day; anything else is not a time one can be equal to."""
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    try:
        begin = datetime(year or 1, month or 1, day or 1, tzinfo=UTC)
        if day:
            return Range(name, gte=begin.timestamp(), lt=begin.timestamp() + 86_400)
        if month:
            end = begin.replace(year=begin.year + month // 12, month=month % 12 + 1)
        else:
            end = begin.replace(year=begin.year + 1)
    except ValueError:  # no such month, no such day
        return None
    return Range(name, gte=begin.timestamp(), lt=end.timestamp())
