"""What is in a collection, counted: which values do its fields have, when was it written?

For people who look around. Nothing here ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from trivet.stores.postgres.links import All
from trivet.types import Facet, Period

Condition = tuple[str, Sequence[Any]]  # " AND d.did IN (…)" and its values; empty for everything

#: How a moment is cut to a period.
STEPS = {"day": "YYYY-MM-DD", "month": "YYYY-MM", "year": "YYYY"}
DAY = 86_400.0  # seconds
#: A step is fine enough when it makes at most this many periods: about what a line of a page has room for.
MOST_DAYS, MOST_MONTHS = 62, 72


def kinds(every: All, cid: int, within: Condition, values: int) -> Facet:
    condition, bound = within
    sql = f"SELECT d.kind, count(*) FROM documents d WHERE d.cid = %s{condition} GROUP BY d.kind ORDER BY 2 DESC, 1"
    rows = every(sql, (cid, *bound))
    return Facet(
        "kind", sum(count for _, count in rows), len(rows), tuple((kind, count) for kind, count in rows[:values])
    )


def facet(every: All, cid: int, key: str, within: Condition, values: int) -> Facet:
    """One field of the metadata: its commonest values. A document with several is counted under each."""
    condition, bound = within
    rows = every(
        "SELECT d.said, d.number, count(*), count(*) OVER () FROM fields d "
        f"WHERE d.cid = %s AND d.key = %s{condition} GROUP BY d.said, d.number "
        "ORDER BY 3 DESC, d.number NULLS LAST, d.said LIMIT %s",
        (cid, key, *bound, values),
    )
    sql = f"SELECT count(DISTINCT d.did) FROM fields d WHERE d.cid = %s AND d.key = %s{condition}"
    documents = int(every(sql, (cid, key, *bound))[0][0])
    listed = tuple((_plain(said, number), count) for said, number, count, _ in rows)
    return Facet(key, documents, int(rows[0][3]) if rows else 0, listed)


def _plain(said: str | None, number: Decimal | None) -> str | int | float:
    if number is None:
        return said or ""
    return int(number) if number == number.to_integral_value() and number.as_tuple().exponent == 0 else float(number)


def timeline(every: All, cid: int, column: str, step: str | None, within: Condition) -> tuple[str, list[Period]]:
    """(the step, how many documents in each period that has any); ``column`` is from the closed list of times."""
    condition, bound = within
    if step is None:
        sql = f"SELECT min(d.{column}), max(d.{column}) FROM documents d WHERE d.cid = %s{condition}"
        first, last = every(sql, (cid, *bound))[0]
        step = _fitting((last - first) / DAY if first is not None else 0.0)
    rows = every(
        f"SELECT to_char(to_timestamp(d.{column}) AT TIME ZONE 'UTC', '{STEPS[step]}') AS period, count(*) "
        f"FROM documents d WHERE d.cid = %s AND d.{column} IS NOT NULL{condition} GROUP BY period ORDER BY period",
        (cid, *bound),
    )
    return step, [Period(*row) for row in rows]


def _fitting(days: float) -> str:
    if days <= MOST_DAYS:
        return "day"
    return "month" if days / 30 <= MOST_MONTHS else "year"
