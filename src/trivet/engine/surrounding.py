"""The passages around a hit: those next to it in its document, or the turns next to it in its session.

They are attached to the hit as ``context`` and are never hits themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.filters import Eq, Filter, In, Not, both
from trivet.text.conversation import session_of_turn
from trivet.types import Document, Hit, Passage

if TYPE_CHECKING:
    from trivet.stores.contract import Documents

REACH = 32  # documents read for each neighbour: others may have been added between two turns of a session


def neighbours_of(
    hit: Hit,
    count: int,
    cut: Callable[[str], Sequence[Any]],
    documents: Documents,
    where: Filter | None = None,
    exclude: Sequence[str] = (),
) -> tuple[Passage, ...]:
    """Return up to ``count`` passages on each side, in reading order; of other documents, what the filter allows."""
    spans = cut(hit.document.text)
    if len(spans) > 1:
        return _passages(hit, count, spans)
    session = session_of_turn(hit.document.meta)
    if not session:
        return ()
    condition = both(where, Not(In("id", tuple(exclude))) if exclude else None)
    for key, value in session.items():
        condition = both(condition, Eq(f"meta.{key}", value))
    return _turns(hit, count, condition, session, documents)


def _passages(hit: Hit, count: int, spans: Sequence[Any]) -> tuple[Passage, ...]:
    at = hit.passage.ordinal
    near = [span for span in spans if 0 < abs(span.ordinal - at) <= count]
    return tuple(Passage(span.ordinal, span.start, span.end, hit.document.text[span.start : span.end]) for span in near)


def _turns(
    hit: Hit, count: int, condition: Filter | None, session: Mapping[str, Any], documents: Documents
) -> tuple[Passage, ...]:
    here = documents.numbers([hit.id]).get(hit.id)
    if here is None:  # deleted meanwhile
        return ()

    def read(after: int, limit: int) -> list[tuple[int, Document]]:
        # one that has a further key, such as a user where the hit has none, is of another session
        found = documents.page(condition, after, limit)
        return [(did, document) for did, document in found if session_of_turn(document.meta) == session]

    found = read(max(0, here - 1 - REACH * count), (REACH + 1) * count + 1)
    before = [document for did, document in found if did < here][-count:]
    after = [document for did, document in found if did > here][:count]
    if len(after) < count:  # the page ended before them
        after = [document for _, document in read(here, (REACH + 1) * count)][:count]
    turns = [*zip(range(-len(before), 0), before, strict=True), *enumerate(after, start=1)]
    return tuple(Passage(place, 0, len(turn.text), turn.text) for place, turn in turns)
