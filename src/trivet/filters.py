"""Filters: conditions on the built-in fields and the metadata of documents.

A ``Filter`` is one of nine frozen classes. The same value goes unchanged to every leg. ``matches`` defines what it
means; a store compiles it to its own query language and is tested against ``matches``.

Metadata is flattened: a nested object by dotted path, a list as several values (``tags = "a"`` holds if any element is
"a"), null as absent. Numbers and booleans are compared as numbers, text by code points, and the two are never equal.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Any

from trivet.errors import InputError
from trivet.types import Document

Value = str | int | float | bool
_PLAIN = (str, int, float, bool)

TIME_FIELDS = ("created", "updated", "accessed", "valid_from", "valid_to", "expires")
TEXT_FIELDS = ("id", "kind", "title")
BUILT_IN_FIELDS = (*TEXT_FIELDS, "importance", *TIME_FIELDS)
CHANGING_FIELDS = ("accessed", "updated", "importance")  # changed by recalling, updating and remembering again
MAX_DEPTH = 20  # levels of nesting
_FIRST_SECOND, _LAST_SECOND = -62135596800.0, 253402300799.0  # epoch seconds of the years 1 to 9999, as in datetime
_LARGEST = 1.7e308  # text that reads as a larger number stays text
_LAST_CHARACTER, _AFTER_SURROGATES = "\U0010ffff", {"\ud800": "\ue000"}
_SHOWN = 60  # characters of a filter that a message quotes
MAX_BINDING = 100  # conditions of an API key; with those of a query they stay below the limit of SQLite
MAX_CONDITIONS = 300  # SQLite joins at most 500 selects


@dataclass(frozen=True, slots=True)
class Eq:
    """The field has this value."""

    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The field has one of these values."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The field has a value within these bounds, which are all numbers or all text."""

    field: str
    gt: Value | None = None
    gte: Value | None = None
    lt: Value | None = None
    lte: Value | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """The field has a text that begins with this one."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Contains:
    """The field has a text that contains this one; upper and lower case are different."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Exists:
    """The field has a value."""

    field: str


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Condition = Eq | In | Range | Prefix | Contains  # on one value of a field
Filter = Condition | Exists | And | Or | Not


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def is_text(value: Value) -> bool:
    """Return whether the value is compared as text."""
    return isinstance(value, str)


def flatten(meta: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the dotted key and the value of every scalar in the metadata."""
    for key, value in meta.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{path}.")
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, str):  # most lists are of texts
                    yield path, item
                else:
                    yield from flatten({path: item})
        elif value is not None:
            yield path, value


def plain_value(value: Any) -> Any:
    """Return a scalar or an array of numpy as plain data, NaT and NA of pandas as None, any other value as it is."""
    if type(value) in _PLAIN:
        return value
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if type(value).__module__ != "numpy":
        return value
    # as nanoseconds, the usual unit, a time would become a number
    return (value.astype("datetime64[us]") if value.dtype.kind == "M" else value).tolist()


def epoch(value: Value | date, field: str = "time") -> float:
    """Return epoch seconds from a datetime, a date (its beginning), ISO 8601 text or a number; UTC without a zone."""
    plain = plain_value(value)
    value = datetime(plain.year, plain.month, plain.day) if type(plain) is date else plain
    if isinstance(value, bool) or not isinstance(value, int | float | str | datetime):
        raise InputError(f"{field}: {value!r} is not a time; give a datetime, ISO 8601 text or epoch seconds")
    if isinstance(value, int | float):
        if not _FIRST_SECOND <= value <= _LAST_SECOND:  # a NaN fails this, too
            raise InputError(f"{field}: {value!r} is not a time; epoch seconds must lie in the years 1 to 9999")
        return float(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InputError(f"{field}: {value!r} is not a time; write ISO 8601 such as 2026-03-01T09:30:00Z") from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    # A float cannot hold the last microseconds of the year 9999: `datetime.max` would round up to the year 10000.
    return min(max(value.timestamp(), _FIRST_SECOND), _LAST_SECOND)


def split_field(field: str) -> tuple[bool, str]:
    """Return whether the field is built in, and its name. ``meta.kind`` is the metadata key ``kind``."""
    if field.startswith("meta."):
        return False, field[5:]
    return field in BUILT_IN_FIELDS, field


def values_of(document: Document, field: str) -> list[Value]:
    """Return the values of a field of the document; times as epoch seconds."""
    built_in, name = split_field(field)
    if not built_in:
        return [value for key, value in flatten(document.meta) if key == name]
    value = getattr(document, name)
    if value is None:
        return []
    return [value.timestamp() if isinstance(value, datetime) else value]


def matches(where: Filter, document: Document) -> bool:
    """Return whether the document satisfies the filter. This is the definition that every store must follow."""
    match where:
        case And(parts):
            return all(matches(part, document) for part in parts)
        case Or(parts):
            return any(matches(part, document) for part in parts)
        case Not(part):
            return not matches(part, document)
        case Exists(field):
            return bool(values_of(document, field))
        case Eq(field) | In(field) | Range(field) | Prefix(field) | Contains(field):
            return any(satisfies(where, found) for found in values_of(document, field))


def satisfies(where: Condition, found: Value) -> bool:
    """Return whether one value of the field satisfies the condition."""
    match where:
        case Eq(_, value):
            return _same(found, value)
        case In(_, values):
            return any(_same(found, value) for value in values)
        case Range():
            return _inside(where, found)
        case Prefix(_, text):
            return isinstance(found, str) and found.startswith(text)
        case Contains(_, text):
            return isinstance(found, str) and text in found


def _same(found: Value, value: Value) -> bool:
    return is_text(found) == is_text(value) and found == value


def _inside(where: Range, found: Value) -> bool:
    for op, holds in _COMPARE.items():
        bound = getattr(where, op)
        if bound is not None and (is_text(found) != is_text(bound) or not holds(found, bound)):
            return False
    return True


def as_range(where: Prefix) -> Range:
    """Return the range of the texts that begin with a prefix, in the order of their code points."""
    head = where.text.rstrip(_LAST_CHARACTER)
    if not head:
        return Range(where.field, gte=where.text)
    following = chr(ord(head[-1]) + 1)
    return Range(where.field, gte=where.text, lt=head[:-1] + _AFTER_SURROGATES.get(following, following))


def both(one: Filter | None, other: Filter | None) -> Filter | None:
    """Return the filter that allows what both allow; None allows everything."""
    return And((one, other)) if one is not None and other is not None else one or other


def without_field(where: Filter, field: str) -> Filter | None:
    """Return the filter without those conditions of its outer ``And`` that name the field."""
    parts = where.parts if isinstance(where, And) else (where,)
    kept = [without_field(part, field) if isinstance(part, And) else part for part in parts]
    return _joined(
        tuple(part for part in kept if part is not None and all(name != field for name, _ in fields_of(part)))
    )


def unknown_field(field: str, known: Sequence[str]) -> str:
    """Return the message for a field that no document has; it suggests the most similar known field."""
    close = get_close_matches(split_field(field)[1], known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"where: no document has a field {field!r}{hint} (known: {', '.join(map(repr, known[:40]))})"


def fields_of(where: Filter) -> Iterator[tuple[str, bool]]:
    """Yield every field of the filter and whether it must be known; ``Exists`` may name an unknown one."""
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from fields_of(part)
        case Not(part):
            yield from fields_of(part)
        case Exists(field):
            yield field, False
        case Eq(field) | In(field) | Range(field) | Prefix(field) | Contains(field):
            yield field, True


def check_binding(within: Filter) -> Filter:
    """Refuse a filter that an API key cannot be bound to, because reading a document may change what it matches."""
    if (count := sum(1 for _ in fields_of(within))) > MAX_BINDING:
        raise InputError(
            f"where: {count} conditions; a caller is bound to at most {MAX_BINDING} (an `in` counts as one)"
        )
    for field, _ in fields_of(within):
        built_in, name = split_field(field)
        if built_in and name in CHANGING_FIELDS:
            instead = "bind the caller by a field of the metadata, such as tenant=alice, or by kind or id"
            raise InputError(f"where: {field!r} changes when a document is read or written again; {instead}")
    return within


def to_json(where: Filter) -> str:
    """Return JSON that ``parse_filter`` reads as the same filter; refuse a filter that JSON cannot express."""
    text = json.dumps(mapping(where), ensure_ascii=False, sort_keys=True)
    if parse_filter(json.loads(text)) != where:
        raise InputError(f"where: {_shown(text)} cannot be stored as JSON; name each field and at least one condition")
    return text


def mapping(where: Filter) -> dict[str, Any]:
    """Return the filter as a mapping that ``parse_filter`` reads."""
    match where:
        case And(parts) | Or(parts):
            return {"$and" if isinstance(where, And) else "$or": [mapping(part) for part in parts]}
        case Not(part):
            return {"$not": mapping(part)}
        case Exists(field):
            return {field: {"exists": True}}
        case Eq(field, value):
            return {field: {"eq": value}}
        case In(field, values):
            return {field: {"in": list(values)}}
        case Range(field):
            return {field: {op: getattr(where, op) for op in _RANGE_OPS if getattr(where, op) is not None}}
        case Prefix(field, text) | Contains(field, text):
            return {field: {"prefix" if isinstance(where, Prefix) else "contains": text}}


# --- reading filters ------------------------------------------------------------------------------------------------

_RANGE_OPS = {"gt", "gte", "lt", "lte"}
_OPS = ("eq", "ne", "in", "nin", "exists", "gt", "gte", "lt", "lte", "prefix", "contains")
_EXPRESSION = re.compile(r"^\s*([^\s=!<>]+?)\s*(!?[\^*]=|!=|>=|<=|=|>|<)\s*(.*?)\s*$", re.DOTALL)
_PARTS: dict[str, type[Prefix | Contains]] = {"prefix": Prefix, "contains": Contains, "^=": Prefix, "*=": Contains}
_SYMBOLS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_YEAR = re.compile(r"[0-9]{4}")


def parse_filter(where: Any) -> Filter | None:
    """Return a filter from a filter, a mapping such as ``{"kind": "note", "year": {"gte": 2020}}``, text or a list."""
    found = _parsed(where)
    if found is not None and (count := sum(1 for _ in fields_of(found))) > MAX_CONDITIONS:
        raise InputError(f"where: {count} conditions; at most {MAX_CONDITIONS} (an `in` list counts as one)")
    return found


def _parsed(where: Any, depth: int = 0) -> Filter | None:
    if depth > MAX_DEPTH:
        raise InputError(f"where: nested more than {MAX_DEPTH} levels deep")
    if where is None:
        return None
    if isinstance(where, Filter):
        return _checked(where, depth)
    if isinstance(where, str):
        return _from_text(where)
    if isinstance(where, Mapping):
        return _from_mapping(where, depth)
    if isinstance(where, Sequence):
        parts = tuple(part for part in (_parsed(item, depth + 1) for item in where) if part is not None)
        return _joined(parts)
    raise InputError(f"where: {where!r} is not a filter; give a mapping such as {{'kind': 'note'}} or text 'kind=note'")


def _joined(parts: tuple[Filter, ...]) -> Filter | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts)


def _from_mapping(where: Mapping[Any, Any], depth: int) -> Filter | None:
    parts: list[Filter] = []
    for key, spec in where.items():
        if not isinstance(key, str) or not key:
            raise InputError(f"where: {key!r} is not a field name; names are non-empty text")
        if key in ("$and", "$or"):
            if not isinstance(spec, list | tuple) or not spec:
                raise InputError(f"where: {key} takes a non-empty list of filters, got {spec!r}")
            read = [_parsed(item, depth + 1) for item in spec]
            inner = tuple(part for part in read if part is not None)
            if key == "$or":
                if len(inner) < len(read):
                    raise InputError("where: $or contains an empty filter, which everything matches; leave it out")
                parts.append(Or(inner))
            elif inner:
                parts.append(And(inner))
        elif key == "$not":
            part = _parsed(spec, depth + 1)
            if part is None:
                raise InputError("where: $not takes a filter, got nothing")
            parts.append(Not(part))
        else:
            parts.append(_from_spec(key, spec))
    return _joined(tuple(parts))


def _from_spec(field: str, spec: Any) -> Filter:
    spec = plain_value(spec)
    if isinstance(spec, Mapping):
        parts: list[Filter] = []
        bounds: dict[str, Any] = {}
        for raw, value in spec.items():
            op = str(raw).removeprefix("$")
            if op in _RANGE_OPS:
                bounds[op] = value
            elif op in ("eq", "ne"):
                parts.append(Eq(field, value) if op == "eq" else Not(Eq(field, value)))
            elif op in ("in", "nin"):
                listed = In(field, tuple(_listed(field, op, value)))
                parts.append(listed if op == "in" else Not(listed))
            elif op in _PARTS:
                parts.append(_PARTS[op](field, value))
            elif op == "exists":
                parts.append(Exists(field) if value else Not(Exists(field)))
            else:
                raise InputError(f"where: unknown operator {raw!r} on {field!r}; known: {', '.join(_OPS)}")
        if bounds:
            parts.append(Range(field, **bounds))
        joined = _joined(tuple(parts))
        if joined is None:
            raise InputError(f"where: {field!r} has an empty condition; known operators: {', '.join(_OPS)}")
        return _checked(joined)
    if isinstance(spec, list | tuple | set | frozenset):
        return _checked(In(field, tuple(spec)))
    if spec is None:
        return Not(Exists(field))
    return _checked(Eq(field, spec))


def _listed(field: str, op: str, value: Any) -> Sequence[Value]:
    value = plain_value(value)
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise InputError(f"where: {op} on {field!r} takes a list, got {value!r}")
    return tuple(value)


def _from_text(text: str) -> Filter | None:
    """Read ``kind=note``, ``year>=2020``, ``tags=a,b`` (any of), ``author!=sam``, ``due=*`` (exists), or JSON.

    ``path^=docs/`` is a prefix, ``title*=pump`` a part; ``!^=`` and ``!*=`` negate them.
    """
    if text.lstrip().startswith("{"):
        try:
            return parse_filter(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"where: {_shown(text)!r} is not JSON ({error})") from None
        except RecursionError:
            raise InputError(f"where: nested more than {MAX_DEPTH} levels deep") from None
        except InputError:
            raise
        except ValueError as error:  # a number of 5,000 digits
            raise InputError(f"where: cannot be read ({error})") from None
    found = _EXPRESSION.match(text)
    if not found:
        raise InputError(
            f"where: {_shown(text)!r} is not understood; write field=value, field!=value, field>=value or JSON"
        )
    field, symbol, raw = found.groups()
    if symbol in _SYMBOLS:
        if split_field(field)[1] in TIME_FIELDS and split_field(field)[0] and _YEAR.fullmatch(raw):
            raise InputError(f"where: {text!r}: a year alone is not a time; write a date such as {raw}-01-01")
        return _checked(Range(field, **{_SYMBOLS[symbol]: _fitting(field, _readings(raw))[0]}))
    positive: Filter
    if part := _PARTS.get(symbol.removeprefix("!")):
        positive = part(field, _unquoted(raw))
    elif raw == "*":
        positive = Exists(field)
    else:
        values = [reading for item in raw.split(",") for reading in _fitting(field, _readings(item.strip()))]
        positive = In(field, tuple(values)) if len(values) > 1 else Eq(field, values[0])
    return _checked(Not(positive) if symbol.startswith("!") else positive)


def _shown(text: str) -> str:
    """Return the text for a message, shortened if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _readings(raw: str) -> list[Value]:
    """Return the values that unquoted text may mean: 2020 is a number or text; the number comes first."""
    if _unquoted(raw) != raw:
        return [_unquoted(raw)]
    if raw.lower() in ("true", "false"):
        return [raw.lower() == "true", raw]
    for number in (int, float):
        try:
            value = number(raw)
        except ValueError:
            continue
        return [value, raw] if abs(value) <= _LARGEST else [raw]  # a NaN is text, too
    return [raw]


def _unquoted(raw: str) -> str:
    return raw[1:-1] if len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "'\"" else raw


def _fitting(field: str, readings: list[Value]) -> list[Value]:
    """Return the readings that the field can be compared with; all if there is none, so the check reports it."""
    built_in, name = split_field(field)
    if not built_in:
        return readings
    if name in TIME_FIELDS:
        return [reading for reading in readings if _is_time(reading)] or readings
    return [reading for reading in readings if is_text(reading) == (name in TEXT_FIELDS)] or readings


def _is_time(value: Value) -> bool:
    try:
        epoch(value)
    except InputError:
        return False
    return True


def _checked(where: Filter, depth: int = 0) -> Filter:
    """Return the filter with times as epoch seconds; refuse values that no store can compare."""
    if depth > MAX_DEPTH:
        raise InputError(f"where: nested more than {MAX_DEPTH} levels deep")
    match where:
        case And(parts) | Or(parts):
            return type(where)(tuple(_checked(part, depth + 1) for part in parts))
        case Not(part):
            return Not(_checked(part, depth + 1))
        case Exists(field):
            _name(field)
            return where
        case Eq(field, value):
            return Eq(_name(field), _scalar(field, value))
        case In(field, values):
            listed = tuple(values)  # it may have hundreds
            texts = [value for value in listed if type(value) is str]
            if not split_field(_name(field))[0] and len(texts) == len(listed) and "".join(texts).isascii():
                return In(field, listed)  # as ``_scalar`` returns them
            return In(field, tuple(_scalar(field, value) for value in listed))
        case Range(field):
            bounds = {op: _scalar(field, getattr(where, op)) for op in _RANGE_OPS if getattr(where, op) is not None}
            if not bounds:
                raise InputError(f"where: range on {field!r} has no bound; give gt, gte, lt or lte")
            if len({is_text(bound) for bound in bounds.values()}) > 1:
                raise InputError(f"where: range on {field!r} mixes text and number bounds: {bounds!r}")
            return Range(_name(field), **bounds)
        case Prefix(field, text) | Contains(field, text):
            return type(where)(_name(field), _text(field, text))


def _name(field: Any) -> str:
    if not isinstance(field, str) or not field or _whole_text(field) != field:
        raise InputError(f"where: {field!r} is not a field name; names are non-empty text")
    return field


def _whole_text(text: str) -> str:
    """Return the text without lone surrogates, as documents are stored."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(field: str, text: Any) -> str:
    built_in, name = split_field(field)
    if built_in and name not in TEXT_FIELDS:
        known = ", ".join(TEXT_FIELDS)
        raise InputError(f"where: {field!r} is not text; prefix and contains are for {known} and metadata")
    if not isinstance(text, str):
        raise InputError(f"where: prefix and contains on {field!r} take text, got {text!r}")
    return _whole_text(text)


def _scalar(field: str, value: Any) -> Any:
    """Return the value as it is compared; refuse one that the field cannot have, as its ``Not`` would match all."""
    built_in, name = split_field(field)
    if not built_in and type(value) is str:
        return _whole_text(value)
    value = plain_value(value)
    if built_in and name in TIME_FIELDS:
        return epoch(value, f"where: {field}")
    if built_in and isinstance(value, str) != (name in TEXT_FIELDS):
        expected = "text" if name in TEXT_FIELDS else "a number"
        raise InputError(f"where: {field!r} cannot be compared with {value!r}; give {expected}")
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if not isinstance(value, str | int | float | bool):
        raise InputError(f"where: {field!r} cannot be compared with {value!r}; use text, a number or true/false")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"where: {field!r} cannot be compared with {value!r}; use a finite number")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"where: {field!r} cannot be compared with {value!r}; integers are 64-bit")
    if isinstance(value, str):
        return _whole_text(value)
    return value
