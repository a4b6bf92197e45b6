"""Filters as SQL conditions.

A filter becomes a condition on a row ``d`` of ``documents``; metadata is looked up in ``fields``. Values are always
parameters. The tests compare it with ``trivet.filters.matches``.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from trivet.stores.postgres.tables import Tables

Sql = tuple[str, list[Any]]

_TEXT_COLUMNS = ("id", "kind", "title")
_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NOTHING: Sql = ("false", [])


def matching(select: Select, tables: Tables, where: Filter) -> list[int]:
    """Return the numbers of the documents that a filter allows."""
    condition, values = compile_filter(where, tables)
    sql = f"SELECT d.did FROM {tables.documents} d WHERE {tables.of('d')} AND ({condition})"
    return [did for (did,) in select(sql, values)]


def compile_filter(where: Filter, tables: Tables, row: str = "d") -> Sql:
    """Return the condition on a row of the documents, by its alias, and its parameters."""
    return _Compiler(tables, row).compile(where)


@dataclass(frozen=True, slots=True)
class _Compiler:
    tables: Tables
    row: str  # the alias

    def compile(self, where: Filter) -> Sql:
        match where:
            case And(parts):
                return self._joined(parts, " AND ") if parts else ("true", [])
            case Or(parts):
                return self._joined(parts, " OR ") if parts else _NOTHING
            case Not(part):
                condition, values = self.compile(part)
                return f"NOT coalesce({condition}, false)", values
            case Exists(field):
                built_in, name = split_field(field)
                return (f"{self.row}.{name} IS NOT NULL", []) if built_in else self._fields("true", name, [])
            case Eq(field, value):
                return self._any_of(field, (value,))
            case In(field, values):
                return self._any_of(field, values)
            case Range():
                return self._range(where)
            case Prefix(field, text):
                plain = is_plain(text)
                return self._range(as_range(where)) if plain else self._test(field, "starts_with({}, %s)", [text])
            case Contains(field, text):
                return self._contains(field, text)

    def _joined(self, parts: tuple[Filter, ...], joint: str) -> Sql:
        compiled = [self.compile(part) for part in parts]
        return joint.join(f"({condition})" for condition, _ in compiled), [
            value for _, own in compiled for value in own
        ]

    def _any_of(self, field: str, values: tuple[Value, ...]) -> Sql:
        built_in, name = split_field(field)
        texts = [str(value) for value in values if is_text(value)]
        numbers = [number_of(value) for value in values if not is_text(value)]
        if built_in:
            wanted: list[Any] = texts if name in _TEXT_COLUMNS else [float(number) for number in numbers]
            kind = "text" if name in _TEXT_COLUMNS else "double precision"
            return (f"{self.row}.{name} = ANY(%s::{kind}[])", [wanted]) if wanted else _NOTHING
        tests: list[str] = []
        bound: list[Any] = []
        plain = [text for text in texts if is_plain(text)]
        # the index has the beginning; an equal beginning that is shorter than it can be is the whole text
        if short := [text for text in plain if len(text) < PREFIX]:
            tests.append(f'"left"(f.said, {PREFIX}) = ANY(%s::text[])')
            bound.append(short)
        if long := [text for text in plain if len(text) >= PREFIX]:
            tests.append(f'("left"(f.said, {PREFIX}) = ANY(%s::text[]) AND f.said = ANY(%s::text[]))')
            bound += [[text[:PREFIX] for text in long], long]
        for odd in (text for text in texts if not is_plain(text)):  # stored in another form
            tests.append(f'("left"(f.said, {PREFIX}) = "left"(%s, {PREFIX}) AND f.said = %s)')
            bound += [odd, odd]
        if numbers:
            tests.append("f.number = ANY(%s::numeric[])")
            bound.append(numbers)
        return self._fields(" OR ".join(tests), name, bound) if tests else _NOTHING

    def _range(self, where: Range) -> Sql:
        built_in, name = split_field(where.field)
        bounds = [(_SYMBOLS[op], getattr(where, op)) for op in _SYMBOLS if getattr(where, op) is not None]
        text = is_text(bounds[0][1])
        if built_in:
            if text != (name in _TEXT_COLUMNS):
                return _NOTHING
            tests = [f"{self.row}.{name} {symbol} %s" for symbol, _ in bounds]
            return " AND ".join(tests), [bound if text else float(bound) for _, bound in bounds]
        if not text:
            tests = [f"f.number {symbol} %s" for symbol, _ in bounds]
            return self._fields(" AND ".join(tests), name, [number_of(bound) for _, bound in bounds])
        tests, values = [], []
        for symbol, bound in bounds:
            # the index has only the beginnings: they narrow, and the whole text decides
            tests.append(f'"left"(f.said, {PREFIX}) {symbol[0]}= "left"(%s, {PREFIX}) AND f.said {symbol} %s')
            values += [bound, bound]
        return self._fields(" AND ".join(tests), name, values)

    def _contains(self, field: str, text: str) -> Sql:
        """Return the condition that a text has a part; no LIKE, as no character of a text is a wildcard."""
        test, values = "strpos({}, %s) > 0", [text]
        if text[:1] in ("0", "1"):  # such a digit may be half of a stored NUL
            test, values = f"{test} AND strpos({without_digits('{}')}, {without_digits('%s')}) > 0", [text, text]
        return self._test(field, test, values)

    def _test(self, field: str, test: str, values: list[Any]) -> Sql:
        built_in, name = split_field(field)
        condition = test.format(*[f"{self.row}.{name}" if built_in else "f.said"] * 2)
        return (condition, values) if built_in else self._fields(condition, name, values)

    def _fields(self, test: str, key: str, values: list[Any]) -> Sql:
        """Return the condition that a document has a value that passes the test.

        EXISTS, as a cluster does not send ``IN (SELECT …)`` within OR or NOT to the workers.
        """
        same = f"{self.tables.beside('f', self.row)} AND f.did = {self.row}.did"
        found = f"SELECT 1 FROM {self.tables.fields} f WHERE {same} AND f.key = %s AND ({test})"
        return f"EXISTS ({found})", [key, *values]


def number_of(value: Any) -> Decimal:
    """Return the number as an exact decimal: 0.1 means the same in a filter and in a document."""
    return Decimal(int(value)) if isinstance(value, bool | int) else Decimal(repr(float(value)))
