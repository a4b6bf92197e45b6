"""What stands before and after a hit?

The passages next to it in its document; where the document is a single passage and part of a session, what was said
before and after. Attached to the hit as ``context``, never hits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from trivet.filters import Eq, Filter, In, Not, both
from trivet.types import Document, Hit, Passage

SESSION = "session"  # the metadata key that the documents of a session share
REACH = 32  # documents looked through for each neighbour: others may have been added between two of a session


class Documents(Protocol):
    def dids(self, ids: Sequence[str]) -> dict[str, int]: ...
    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]: ...


def context_of(
    hit: Hit,
    count: int,
    cut: Callable[[str], Sequence[Any]],
    documents: Documents,
    where: Filter | None = None,
    exclude: Sequence[str] = (),
) -> tuple[Passage, ...]:
    """Up to ``count`` passages on each side, in reading order; of other documents only what the filter allows."""
    spans = cut(hit.document.text)
    if len(spans) > 1:
        return _passages(hit, count, spans)
    session = hit.document.meta.get(SESSION)
    if not isinstance(session, str | int | float):
        return ()
    left_out = Not(In("id", tuple(exclude))) if exclude else None
    of_session = both(both(where, left_out), Eq(f"meta.{SESSION}", session))
    return _turns(hit, count, of_session, documents)


def _passages(hit: Hit, count: int, spans: Sequence[Any]) -> tuple[Passage, ...]:
    at = hit.passage.ordinal
    near = [span for span in spans if 0 < abs(span.ordinal - at) <= count]
    return tuple(Passage(span.ordinal, span.start, span.end, hit.document.text[span.start : span.end]) for span in near)


def _turns(hit: Hit, count: int, of_session: Filter | None, documents: Documents) -> tuple[Passage, ...]:
    here = documents.dids([hit.id]).get(hit.id)
    if here is None:  # deleted meanwhile
        return ()
    found = documents.page(of_session, max(0, here - 1 - REACH * count), (REACH + 1) * count + 1)
    before = [document for did, document in found if did < here][-count:]
    after = [document for did, document in found if did > here][:count]
    if len(after) < count:  # the page ended before them
        after = [document for _, document in documents.page(of_session, here, count)]
    turns = [*zip(range(-len(before), 0), before, strict=True), *enumerate(after, start=1)]
    return tuple(Passage(place, 0, len(turn.text), turn.text) for place, turn in turns)
