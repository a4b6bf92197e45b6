"""Counts of documents by metadata value and by time."""

from __future__ import annotations

from decimal import Decimal

from trivet.stores.periods import step_for
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.visibility import Condition
from trivet.types import Facet, Period

#: How PostgreSQL writes a period.
FORMATS = {"day": "YYYY-MM-DD", "month": "YYYY-MM", "year": "YYYY"}


def kinds(select: Select, tables: Tables, condition: Condition, values: int) -> Facet:
    """Count documents by kind."""
    where, bound = condition
    sql = f"SELECT d.kind, count(*) FROM {tables.documents} d WHERE {tables.of('d')}{where} GROUP BY d.kind"
    counts: dict[str, int] = dict(select(sql, bound))
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Facet("kind", sum(counts.values()), len(listed), tuple(listed[:values]))


def facet(select: Select, key: str, tables: Tables, condition: Condition, values: int) -> Facet:
    """Count documents by the commonest values of a metadata key; one with several values counts for each."""
    where, bound = condition
    having = f"FROM {tables.fields} d WHERE {tables.of('d')} AND d.key = %s{where}"
    rows = select(
        f"SELECT said, number, n, count(*) OVER () FROM (SELECT d.said, d.number, count(*) AS n {having} "
        "GROUP BY d.said, d.number) v ORDER BY n DESC, number NULLS LAST, said LIMIT %s",
        (key, *bound, values),
    )
    documents = int(select(f"SELECT count(DISTINCT d.did) {having}", (key, *bound))[0][0])
    listed = tuple((_plain(text, number), count) for text, number, count, _ in rows)
    return Facet(key, documents, int(rows[0][3]) if rows else 0, listed)


def _plain(text: str | None, number: Decimal | None) -> str | int | float:
    if number is None:
        return text or ""
    return int(number) if number == number.to_integral_value() and number.as_tuple().exponent == 0 else float(number)


def timeline(
    select: Select, column: str, step: str | None, tables: Tables, condition: Condition
) -> tuple[str, list[Period]]:
    """Count documents by period of a time column; return the step, and the periods that have documents."""
    where, bound = condition
    having = f"FROM {tables.documents} d WHERE {tables.of('d')}"
    if step is None:
        step = step_for(*select(f"SELECT min(d.{column}), max(d.{column}) {having}{where}", bound)[0])
    rows = select(
        f"SELECT to_char(to_timestamp(d.{column}) AT TIME ZONE 'UTC', '{FORMATS[step]}') AS period, count(*) "
        f"{having} AND d.{column} IS NOT NULL{where} GROUP BY period ORDER BY period",
        bound,
    )
    return step, [Period(*row) for row in rows]
