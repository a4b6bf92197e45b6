"""How does SQLite find the documents a filter allows?

Each shape becomes a SELECT of document row numbers; And, Or and Not are INTERSECT, UNION and EXCEPT. Values travel as
parameters only. ``trivet.filters.matches`` is the meaning this is tested against.
"""

from __future__ import annotations

import json
from typing import Any

from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, Value, is_text, split_field

Sql = tuple[str, list[Any]]

_TEXT_COLUMNS = ("id", "kind", "title")
_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def compile_filter(where: Filter, cid: int) -> Sql:
    """(SELECT did …, parameters)."""
    match where:
        case And(parts):
            return _compound(parts, " INTERSECT ", cid) if parts else _everything(cid)
        case Or(parts):
            return _compound(parts, " UNION ", cid) if parts else _nothing()
        case Not(part):
            sql, values = compile_filter(part, cid)
            everything, first = _everything(cid)
            return f"{everything} EXCEPT SELECT did FROM ({sql})", first + values
        case Exists(field):
            return _select(field, cid, "{column} IS NOT NULL", [])
        case Eq(field, value):
            return _any_of(field, (value,), cid)
        case In(field, values):
            return _any_of(field, values, cid)
        case Range(field):
            return _range(where, cid)


def _everything(cid: int) -> Sql:
    return "SELECT did FROM documents WHERE cid = ?", [cid]


def _nothing() -> Sql:
    return "SELECT did FROM documents WHERE 0", []


def _compound(parts: tuple[Filter, ...], joint: str, cid: int) -> Sql:
    compiled = [compile_filter(part, cid) for part in parts]
    return joint.join(f"SELECT did FROM ({sql})" for sql, _ in compiled), [v for _, values in compiled for v in values]


def _any_of(field: str, values: tuple[Value, ...], cid: int) -> Sql:
    wanted = [value for value in values if _comparable(field, value)]
    if not wanted:
        return _nothing()
    if len(wanted) == 1:
        return _select(field, cid, "{column} = ?", wanted)
    # one parameter however long the list is: a scope can hold thousands of session ids
    return _select(field, cid, "{column} IN (SELECT value FROM json_each(?))", [json.dumps(wanted)])


def _range(where: Range, cid: int) -> Sql:
    bounds = [(op, getattr(where, op)) for op in _SYMBOLS if getattr(where, op) is not None]
    text = is_text(bounds[0][1])
    if not _comparable(where.field, bounds[0][1]):
        return _nothing()
    kinds = "('text')" if text else "('integer', 'real')"  # SQLite sorts every number before every text
    tests = [f"typeof({{column}}) IN {kinds}", *(f"{{column}} {_SYMBOLS[op]} ?" for op, _ in bounds)]
    return _select(where.field, cid, " AND ".join(tests), [bound for _, bound in bounds])


def _comparable(field: str, value: Value) -> bool:
    """A typed column turns '1' into 1 before comparing (affinity); in ``matches`` they differ, so never ask it to."""
    built_in, name = split_field(field)
    return not built_in or is_text(value) == (name in _TEXT_COLUMNS)


def _select(field: str, cid: int, test: str, values: list[Any]) -> Sql:
    built_in, name = split_field(field)
    if built_in:  # a name from the closed list, never user text
        return f"SELECT did FROM documents WHERE cid = ? AND {test.format(column=name)}", [cid, *values]
    return f"SELECT DISTINCT did FROM fields WHERE cid = ? AND key = ? AND {test.format(column='value')}", [
        cid,
        name,
        *values,
    ]
