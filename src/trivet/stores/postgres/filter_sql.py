"""How does PostgreSQL find the documents a filter allows?

A filter becomes a condition on a row ``d`` of ``documents``; what is metadata is looked up in ``fields``. Values travel
as parameters only, and every look-up names the collection. ``trivet.filters.matches`` is the meaning this is tested
against.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, Value, is_text, split_field
from trivet.stores.postgres.nul import is_plain
from trivet.stores.postgres.schema import PREFIX

Sql = tuple[str, list[Any]]

_TEXT_COLUMNS = ("id", "kind", "title")
_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NOTHING: Sql = ("false", [])


def compile_filter(where: Filter, cid: int) -> Sql:
    """(condition on d, parameters)."""
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
    for odd in (text for text in texts if not is_plain(text)):  # its beginning is the server's to say
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
        # the beginnings are in the same order as the whole, or equal: the index narrows, the whole decides
        tests.append(f'"left"(said, {PREFIX}) {symbol[0]}= "left"(%s, {PREFIX}) AND said {symbol} %s')
        values += [bound, bound]
    return _fields(" AND ".join(tests), name, values, cid)


def _fields(test: str, key: str, values: list[Any], cid: int) -> Sql:
    found = f"SELECT did FROM fields WHERE cid = %s AND key = %s AND ({test})"
    return f"d.did IN ({found})", [cid, key, *values]


def number_of(value: Any) -> Decimal:
    """Exact: 0.1 is the number that is written so, on both sides."""
    return Decimal(int(value)) if isinstance(value, bool | int) else Decimal(repr(float(value)))
