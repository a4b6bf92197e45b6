"""What is in a collection, counted: which values do its fields have, when was it written?

For people who look around. Nothing here ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from trivet.stores.postgres.links import All
from trivet.types import Facet, Period

Condition = tuple[str, Sequence[Any]]  # " AND d.did IN (…)" and its values; empty for everything
Within = Sequence[tuple[int, Condition]]  # of each part: its number, and the condition there

#: How a moment is cut to a period.
STEPS = {"day": "YYYY-MM-DD", "month": "YYYY-MM", "year": "YYYY"}
DAY = 86_400.0  # seconds
#: A step is fine enough when it makes at most this many periods: about what a line of a page has room for.
MOST_DAYS, MOST_MONTHS = 62, 72


def kinds(every: All, within: Within, values: int) -> Facet:
    counts: Counter[str] = Counter()
    for cid, (condition, bound) in within:
        sql = f"SELECT d.kind, count(*) FROM documents d WHERE d.cid = %s{condition} GROUP BY d.kind"
        counts.update(dict(every(sql, (cid, *bound))))
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Facet("kind", counts.total(), len(listed), tuple(listed[:values]))


def facet(every: All, key: str, within: Within, values: int) -> Facet:
    """One field of the metadata: its commonest values. A document with several is counted under each."""
    counts: Counter[tuple[str | None, Decimal | None]] = Counter()
    documents, different = 0, 0
    for cid, (condition, bound) in within:
        rows = every(
            "SELECT d.said, d.number, count(*), count(*) OVER () FROM fields d "
            f"WHERE d.cid = %s AND d.key = %s{condition} GROUP BY d.said, d.number "
            "ORDER BY 3 DESC, d.number NULLS LAST, d.said LIMIT %s",
            (cid, key, *bound, values if len(within) == 1 else None),  # what is rare in one part may not be in all
        )
        counts.update({(said, number): count for said, number, count, _ in rows})
        different = int(rows[0][3]) if rows else different
        sql = f"SELECT count(DISTINCT d.did) FROM fields d WHERE d.cid = %s AND d.key = %s{condition}"
        documents += int(every(sql, (cid, key, *bound))[0][0])
    listed = sorted(counts.items(), key=lambda item: (-item[1], *_order(*item[0])))[:values]
    different = different if len(within) == 1 else len(counts)
    return Facet(key, documents, different, tuple((_plain(*value), count) for value, count in listed))


def _order(said: str | None, number: Decimal | None) -> tuple[bool, Decimal, str]:
    """Numbers first, in their order."""
    return number is None, number or Decimal(0), said or ""


def _plain(said: str | None, number: Decimal | None) -> str | int | float:
    if number is None:
        return said or ""
    return int(number) if number == number.to_integral_value() and number.as_tuple().exponent == 0 else float(number)


def timeline(every: All, column: str, step: str | None, within: Within) -> tuple[str, list[Period]]:
    """(the step, how many documents in each period that has any); ``column`` is from the closed list of times."""
    if step is None:
        ends: list[float] = []
        for cid, (condition, bound) in within:
            sql = f"SELECT min(d.{column}), max(d.{column}) FROM documents d WHERE d.cid = %s{condition}"
            ends += [end for end in every(sql, (cid, *bound))[0] if end is not None]
        step = _fitting((max(ends) - min(ends)) / DAY if ends else 0.0)
    counts: Counter[str] = Counter()
    for cid, (condition, bound) in within:
        rows = every(
            f"SELECT to_char(to_timestamp(d.{column}) AT TIME ZONE 'UTC', '{STEPS[step]}') AS period, count(*) "
            f"FROM documents d WHERE d.cid = %s AND d.{column} IS NOT NULL{condition} GROUP BY period",
            (cid, *bound),
        )
        counts.update(dict(rows))
    return step, [Period(*item) for item in sorted(counts.items())]


def _fitting(days: float) -> str:
    if days <= MOST_DAYS:
        return "day"
    return "month" if days / 30 <= MOST_MONTHS else "year"
