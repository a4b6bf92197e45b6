"""Filters compiled to SQL.

Each condition becomes a SELECT of document numbers; And, Or and Not become INTERSECT, UNION and EXCEPT. Values are
parameters only. The tests compare the result with ``trivet.filters.matches``.
"""

from __future__ import annotations

import json
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

Sql = tuple[str, list[Any]]

_TEXT_COLUMNS = ("id", "kind", "title")
_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def compile_filter(where: Filter, cid: int) -> Sql:
    """Return the SELECT and its parameters. Parts are named one by one: SQLite's parser allows few nested levels."""
    steps: list[Sql] = []
    last = _named(where, cid, steps)
    if len(steps) == 1:
        return steps[0]
    named = ", ".join(f"part{number}(did) AS ({sql})" for number, (sql, _) in enumerate(steps))
    return f"WITH {named} {last}", [value for _, values in steps for value in values]


def _named(where: Filter, cid: int, steps: list[Sql]) -> str:
    """Add the SELECTs of a filter to ``steps``; return one that reads the last of them."""
    match where:
        case And(parts):
            found = _compound(parts, " INTERSECT ", cid, steps) if parts else _everything(cid)
        case Or(parts):
            found = _compound(parts, " UNION ", cid, steps) if parts else _nothing()
        case Not(part):
            without = _named(part, cid, steps)
            everything, values = _everything(cid)
            found = f"{everything} EXCEPT {without}", values
        case Exists(field):
            found = _select(field, cid, "{column} IS NOT NULL", [])
        case Eq(field, value):
            found = _any_of(field, (value,), cid)
        case In(field, values):
            found = _any_of(field, values, cid)
        case Range():
            found = _range(where, cid)
        case Prefix():
            found = _range(as_range(where), cid)
        case Contains(field, text):  # not LIKE: no character of a text is a wildcard
            found = _select(field, cid, "typeof({column}) = 'text' AND instr({column}, ?) > 0", [text])
    steps.append(found)
    return f"SELECT did FROM part{len(steps) - 1}"


def _everything(cid: int) -> Sql:
    return "SELECT did FROM documents WHERE cid = ?", [cid]


def _nothing() -> Sql:
    return "SELECT did FROM documents WHERE 0", []


def _compound(parts: tuple[Filter, ...], joint: str, cid: int, steps: list[Sql]) -> Sql:
    return joint.join([_named(part, cid, steps) for part in parts]), []


def _any_of(field: str, values: tuple[Value, ...], cid: int) -> Sql:
    wanted = [value for value in values if _comparable(field, value)]
    if not wanted:
        return _nothing()
    if len(wanted) == 1:
        return _select(field, cid, "{column} = ?", wanted)
    # One parameter for a list of any length: a filter may have thousands of session ids. SQLite's JSON ends at NUL.
    plain = [value for value in wanted if not (is_text(value) and "\0" in str(value))]
    odd = [value for value in wanted if is_text(value) and "\0" in str(value)]
    tests = ["{column} IN (SELECT value FROM json_each(?))", *["{column} = ?"] * len(odd)]
    return _select(field, cid, f"({' OR '.join(tests)})", [json.dumps(plain), *odd])


def _range(where: Range, cid: int) -> Sql:
    bounds = [(op, getattr(where, op)) for op in _SYMBOLS if getattr(where, op) is not None]
    text = is_text(bounds[0][1])
    if not _comparable(where.field, bounds[0][1]):
        return _nothing()
    kinds = "('text')" if text else "('integer', 'real')"  # SQLite sorts every number before every text
    tests = [f"typeof({{column}}) IN {kinds}", *(f"{{column}} {_SYMBOLS[op]} ?" for op, _ in bounds)]
    return _select(where.field, cid, " AND ".join(tests), [bound for _, bound in bounds])


def _comparable(field: str, value: Value) -> bool:
    """Tell whether a column can hold the value: a typed column would turn '1' into 1 (affinity), unlike ``matches``."""
    built_in, name = split_field(field)
    return not built_in or is_text(value) == (name in _TEXT_COLUMNS)


def _select(field: str, cid: int, test: str, values: list[Any]) -> Sql:
    built_in, name = split_field(field)
    if built_in and name == "expires":
        return f"SELECT did FROM expiries WHERE cid = ? AND {test.format(column='at')}", [cid, *values]
    if built_in:  # a name from the closed list, never user text
        return f"SELECT did FROM documents WHERE cid = ? AND {test.format(column=name)}", [cid, *values]
    return f"SELECT DISTINCT did FROM fields WHERE cid = ? AND key = ? AND {test.format(column='value')}", [
        cid,
        name,
        *values,
    ]
