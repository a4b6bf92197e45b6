"""Filters as SQL conditions.

A filter becomes a condition on a row ``d`` of ``documents``; metadata is looked up in ``fields``. Values are always
parameters, and every look-up names the shard. The tests compare it with ``trivet.filters.matches``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from trivet.filters import (
    And,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Prefix,
    Range,
    Value,
    as_range,
    is_text,
    split_field,
)
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.nul_characters import is_plain, without_digits
from trivet.stores.postgres.schema import PREFIX
from trivet.stores.postgres.shards import Shards

Sql = tuple[str, list[Any]]

_TEXT_COLUMNS = ("id", "kind", "title")
_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NOTHING: Sql = ("false", [])


def matching(select: Select, shards: Shards, where: Filter) -> list[int]:
    """Return the numbers of the documents that a filter allows."""
    found: list[int] = []
    for shard in shards.all:
        condition, values = compile_filter(where, shard.cid)
        sql = f"SELECT d.did FROM documents d WHERE d.cid = %s AND ({condition})"
        found += [did for (did,) in select(sql, (shard.cid, *values))]
    return found


def compile_filter(where: Filter, cid: int) -> Sql:
    """Return the condition on ``d`` and its parameters."""
    match where:
        case And(parts):
            return _joined(parts, " AND ", cid) if parts else ("true", [])
        case Or(parts):
            return _joined(parts, " OR ", cid) if parts else _NOTHING
        case Not(part):
            condition, values = compile_filter(part, cid)
            return f"NOT coalesce({condition}, false)", values
        case Exists(field):
            return _exists(field, cid)
        case Eq(field, value):
            return _any_of(field, (value,), cid)
        case In(field, values):
            return _any_of(field, values, cid)
        case Range():
            return _range(where, cid)
        case Prefix(field, text):
            plain = is_plain(text)
            return _range(as_range(where), cid) if plain else _test(field, "starts_with({}, %s)", [text], cid)
        case Contains(field, text):
            return _contains(field, text, cid)


def _joined(parts: tuple[Filter, ...], joint: str, cid: int) -> Sql:
    compiled = [compile_filter(part, cid) for part in parts]
    return joint.join(f"({condition})" for condition, _ in compiled), [value for _, own in compiled for value in own]


def _exists(field: str, cid: int) -> Sql:
    built_in, name = split_field(field)
    return (f"d.{name} IS NOT NULL", []) if built_in else _fields("true", name, [], cid)


def _any_of(field: str, values: tuple[Value, ...], cid: int) -> Sql:
    built_in, name = split_field(field)
    texts = [str(value) for value in values if is_text(value)]
    numbers = [number_of(value) for value in values if not is_text(value)]
    if built_in:
        wanted: list[Any] = texts if name in _TEXT_COLUMNS else [float(number) for number in numbers]
        kind = "text" if name in _TEXT_COLUMNS else "double precision"
        return (f"d.{name} = ANY(%s::{kind}[])", [wanted]) if wanted else _NOTHING
    tests: list[str] = []
    bound: list[Any] = []
    if plain := [text for text in texts if is_plain(text)]:
        tests.append(f'("left"(said, {PREFIX}) = ANY(%s::text[]) AND said = ANY(%s::text[]))')
        bound += [[text[:PREFIX] for text in plain], plain]
    for odd in (text for text in texts if not is_plain(text)):  # stored in another form
        tests.append(f'("left"(said, {PREFIX}) = "left"(%s, {PREFIX}) AND said = %s)')
        bound += [odd, odd]
    if numbers:
        tests.append("number = ANY(%s::numeric[])")
        bound.append(numbers)
    return _fields(" OR ".join(tests), name, bound, cid) if tests else _NOTHING


def _range(where: Range, cid: int) -> Sql:
    built_in, name = split_field(where.field)
    bounds = [(_SYMBOLS[op], getattr(where, op)) for op in _SYMBOLS if getattr(where, op) is not None]
    text = is_text(bounds[0][1])
    if built_in:
        if text != (name in _TEXT_COLUMNS):
            return _NOTHING
        tests = [f"d.{name} {symbol} %s" for symbol, _ in bounds]
        return " AND ".join(tests), [bound if text else float(bound) for _, bound in bounds]
    if not text:
        tests = [f"number {symbol} %s" for symbol, _ in bounds]
        return _fields(" AND ".join(tests), name, [number_of(bound) for _, bound in bounds], cid)
    tests, values = [], []
    for symbol, bound in bounds:
        # the index has only the beginnings: they narrow, and the whole text decides
        tests.append(f'"left"(said, {PREFIX}) {symbol[0]}= "left"(%s, {PREFIX}) AND said {symbol} %s')
        values += [bound, bound]
    return _fields(" AND ".join(tests), name, values, cid)


def _contains(field: str, text: str, cid: int) -> Sql:
    """Return the condition that a text has a part; no LIKE, as no character of a text is a wildcard."""
    test, values = "strpos({}, %s) > 0", [text]
    if text[:1] in ("0", "1"):  # such a digit may be half of a stored NUL
        test, values = f"{test} AND strpos({without_digits('{}')}, {without_digits('%s')}) > 0", [text, text]
    return _test(field, test, values, cid)


def _test(field: str, test: str, values: list[Any], cid: int) -> Sql:
    built_in, name = split_field(field)
    condition = test.format(*[f"d.{name}" if built_in else "said"] * 2)
    return (condition, values) if built_in else _fields(condition, name, values, cid)


def _fields(test: str, key: str, values: list[Any], cid: int) -> Sql:
    found = f"SELECT did FROM fields WHERE cid = %s AND key = %s AND ({test})"
    return f"d.did IN ({found})", [cid, key, *values]


def number_of(value: Any) -> Decimal:
    """Return the number as an exact decimal: 0.1 means the same in a filter and in a document."""
    return Decimal(int(value)) if isinstance(value, bool | int) else Decimal(repr(float(value)))
