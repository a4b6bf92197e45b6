"""The newest documents that a filter allows."""

from __future__ import annotations

from datetime import UTC, datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from trivet.engine import validation
from trivet.filters import Filter, Range, both, parse_filter

if TYPE_CHECKING:
    from trivet.engine.engine import Engine
    from trivet.types import Document

_NO_TIME = datetime.min.replace(tzinfo=UTC)


def newest(engine: Engine, where: Any = None, limit: int = 20) -> list[Document]:
    """Return up to ``limit`` documents, the latest ``created`` first; of one time, the one that was added last.

    Only the documents of the last days are read, as many days as it takes: a store reads them in the order of adding.
    """
    size = validation.check_limit(limit, validation.MAX_PAGE)
    given = parse_filter(where)
    documents = enumerate(engine.documents(_since(engine, given, size)))
    latest = nlargest(size, documents, key=lambda item: (item[1].created or _NO_TIME, item[0]))
    return [document for _, document in latest]


def _since(engine: Engine, where: Filter | None, size: int) -> Filter | None:
    """Narrow the filter to the latest days that together have at least ``size`` documents."""
    found = 0
    for day in reversed(engine.timeline(where, "created", "day").periods):
        found += day.documents
        if found >= size:
            begin = datetime.fromisoformat(day.period).replace(tzinfo=UTC)
            return both(where, Range("created", gte=begin.timestamp()))
    return where
