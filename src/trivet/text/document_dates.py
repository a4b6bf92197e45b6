"""The time of a document, for the ``temporal`` reranker and for the filter by a period.

It is the time in the metadata if there is one, else the time from which the document is valid, else when it was
created.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from trivet.errors import InputError
from trivet.filters import And, Exists, Filter, Not, Or, Range, epoch, flatten
from trivet.types import Document

KEYS = ("timestamp", "datetime", "date", "time")


def time_of(document: Document) -> datetime | None:
    """Return the time of a document; None if it has none."""
    if document.meta:
        known = dict(flatten(document.meta))
        for key in KEYS:
            value = known.get(key)
            if value is None or isinstance(value, bool):
                continue
            try:
                return datetime.fromtimestamp(epoch(value), UTC)
            except (InputError, OSError, OverflowError):  # not a time, such as "spring"
                continue
    moment = document.valid_from or document.created
    return None if moment is None else aware(moment)


def aware(moment: datetime) -> datetime:
    """Return the time with a zone; one without is taken as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def within(begin: datetime, end: datetime, keys: Collection[str]) -> Filter:
    """Return the filter for documents from ``begin`` on and before ``end``.

    ``keys`` are the metadata keys of the collection. A time in the metadata is ISO 8601 text, which sorts like times,
    or a number of epoch seconds.
    """
    first, last = begin.timestamp(), end.timestamp()
    where: Filter = Or((_between("valid_from", first, last), _absent("valid_from", _between("created", first, last))))
    for key in reversed([key for key in KEYS if key in keys]):
        field = f"meta.{key}"
        inside = Or((Range(field, gte=_iso(begin), lt=_iso(end)), _between(field, first, last)))
        where = Or((inside, _absent(field, where)))
    return where


def _between(field: str, first: float, last: float) -> Range:
    return Range(field, gte=first, lt=last)


def _absent(field: str, otherwise: Filter) -> Filter:
    return And((Not(Exists(field)), otherwise))


def _iso(moment: datetime) -> str:
    """Return ISO 8601 text, a date alone for midnight: "2026-03-01" must not sort before the start of its day."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return text.removesuffix("T00:00:00")
