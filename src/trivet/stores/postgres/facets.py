"""Counts of documents by metadata value and by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from trivet.stores.periods import step_for
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.shards import Shard
from trivet.stores.postgres.visibility import Condition
from trivet.types import Facet, Period

Conditions = Sequence[tuple[Shard, Condition]]

#: How PostgreSQL writes a period.
FORMATS = {"day": "YYYY-MM-DD", "month": "YYYY-MM", "year": "YYYY"}


def kinds(select: Select, conditions: Conditions, values: int) -> Facet:
    """Count documents by kind."""
    counts: Counter[str] = Counter()
    for shard, (condition, bound) in conditions:
        sql = f"SELECT d.kind, count(*) FROM documents d WHERE d.cid = %s{condition} GROUP BY d.kind"
        counts.update(dict(select(sql, (shard.cid, *bound))))
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Facet("kind", counts.total(), len(listed), tuple(listed[:values]))


def facet(select: Select, key: str, conditions: Conditions, values: int) -> Facet:
    """Count documents by the commonest values of a metadata key; one with several values counts for each."""
    counts: Counter[tuple[str | None, Decimal | None]] = Counter()
    documents = distinct = 0
    one_shard = len(conditions) == 1
    for shard, (condition, bound) in conditions:
        rows = select(
            "SELECT d.said, d.number, count(*), count(*) OVER () FROM fields d "
            f"WHERE d.cid = %s AND d.key = %s{condition} GROUP BY d.said, d.number "
            "ORDER BY 3 DESC, d.number NULLS LAST, d.said LIMIT %s",
            (shard.cid, key, *bound, values if one_shard else None),  # a rare value of one shard may be common in all
        )
        counts.update({(text, number): count for text, number, count, _ in rows})
        distinct = int(rows[0][3]) if rows else distinct
        sql = f"SELECT count(DISTINCT d.did) FROM fields d WHERE d.cid = %s AND d.key = %s{condition}"
        documents += int(select(sql, (shard.cid, key, *bound))[0][0])
    listed = sorted(counts.items(), key=lambda item: (-item[1], *_order(*item[0])))[:values]
    distinct = distinct if one_shard else len(counts)
    return Facet(key, documents, distinct, tuple((_plain(*value), count) for value, count in listed))


def _order(text: str | None, number: Decimal | None) -> tuple[bool, Decimal, str]:
    """Return a sort key: numbers first, in their order."""
    return number is None, number or Decimal(0), text or ""


def _plain(text: str | None, number: Decimal | None) -> str | int | float:
    if number is None:
        return text or ""
    return int(number) if number == number.to_integral_value() and number.as_tuple().exponent == 0 else float(number)


def timeline(select: Select, column: str, step: str | None, conditions: Conditions) -> tuple[str, list[Period]]:
    """Count documents by period of a time column; return the step, and the periods that have documents."""
    if step is None:
        bounds: list[float] = []
        for shard, (condition, bound) in conditions:
            sql = f"SELECT min(d.{column}), max(d.{column}) FROM documents d WHERE d.cid = %s{condition}"
            bounds += [moment for moment in select(sql, (shard.cid, *bound))[0] if moment is not None]
        step = step_for(min(bounds, default=None), max(bounds, default=None))
    counts: Counter[str] = Counter()
    for shard, (condition, bound) in conditions:
        rows = select(
            f"SELECT to_char(to_timestamp(d.{column}) AT TIME ZONE 'UTC', '{FORMATS[step]}') AS period, count(*) "
            f"FROM documents d WHERE d.cid = %s AND d.{column} IS NOT NULL{condition} GROUP BY period",
            (shard.cid, *bound),
        )
        counts.update(dict(rows))
    return step, [Period(*item) for item in sorted(counts.items())]
