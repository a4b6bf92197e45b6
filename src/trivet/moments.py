"""When is a document from?

A time in its metadata says when what it tells happened or was said; else it counts from when it became valid, else from
when it was created. One order for the reranker that boosts a time and for the filter that asks for one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from trivet.errors import InputError
from trivet.filters import And, Exists, Filter, Not, Or, Range, epoch, flatten
from trivet.types import Document

KEYS = ("timestamp", "datetime", "date", "time")


def time_of(document: Document) -> datetime | None:
    """None where nothing says so."""
    if document.meta:
        known = dict(flatten(document.meta))
        for key in KEYS:
            value = known.get(key)
            if value is None or isinstance(value, bool):
                continue
            try:
                return datetime.fromtimestamp(epoch(value), UTC)
            except (InputError, OSError, OverflowError):  # "spring", 12: its own business
                continue
    moment = document.valid_from or document.created
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def within(begin: datetime, end: datetime, keys: Collection[str]) -> Filter:
    """Documents from ``begin`` on, before ``end``; ``keys`` are those the collection's metadata has.

    A metadata time is text in ISO 8601, which sorts as time does, or a number of seconds.
    """
    first, last = begin.timestamp(), end.timestamp()
    where: Filter = Or((_between("valid_from", first, last), _absent("valid_from", _between("created", first, last))))
    for key in reversed([key for key in KEYS if key in keys]):
        field = f"meta.{key}"
        said = Or((Range(field, gte=_iso(begin), lt=_iso(end)), _between(field, first, last)))
        where = Or((said, _absent(field, where)))
    return where


def _between(field: str, first: float, last: float) -> Range:
    return Range(field, gte=first, lt=last)


def _absent(field: str, otherwise: Filter) -> Filter:
    return And((Not(Exists(field)), otherwise))


def _iso(moment: datetime) -> str:
    """As short as it can be said: a day's first moment must not sort behind the day itself."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return text.removesuffix("T00:00:00")
