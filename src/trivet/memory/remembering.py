"""What becomes of something that is told again?

The same memory is reinforced: counted, its importance raised, nothing stored twice. One that says nearly the same is
stored and reported, with a suggestion; whether they are one is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, TrivetError
from trivet.filters import And, Eq, Filter, flatten
from trivet.memory import likeness
from trivet.profile import Profile
from trivet.types import Degraded, Document, Hit, Similar

if TYPE_CHECKING:
    from trivet.models import Models
    from trivet.search import Search
    from trivet.stores.contract import Shelf

REINFORCED = 0.1  # of what its importance lacks to 1: it comes near, and never past
ASKED = 2_000  # characters a near copy is looked for by
LOOKED_AT = 8  # hits compared
CONDITIONS = 50  # metadata values a twin is looked for by; the others are compared all the same

#: Keys of the metadata that say whose a document is: what belongs to somebody else is not similar.
OWNERS = ("tenant", "tenant_id", "namespace", "scope", "project", "project_id", "user", "user_id")

# Copies by their words: whatever else they say, they have all of them.
_TWINS = Profile(name="twins", k=20, weights={"lexical": 1.0}, match="all", follow_links=False)


def reinforced(importance: float, given: float | None) -> float:
    """A little more than it was, and no less than was asked for."""
    return max(importance + (1.0 - importance) * REINFORCED, given or 0.0)


def likely_twins(search: Search, shelf: Shelf, document: Document) -> list[int]:
    """Row numbers of documents that may be the same up to case, width and white space: a hash does not find those."""
    question = _question(document)
    if not question or not shelf.state().documents:
        return []
    pairs = list(flatten(document.meta))[:CONDITIONS]
    parts: tuple[Filter, ...] = (Eq("kind", document.kind), *(Eq(f"meta.{key}", value) for key, value in pairs))
    try:
        found = search.run(question, None, _TWINS, (), None, 0, None, {})
        if len(found) == _TWINS.k:  # a short text that many have: among those of the same scope, then
            found = search.run(question, And(parts), _TWINS, (), None, 0, None, {})
    except TrivetError:  # a field that no document has yet; or words do not answer, and the hash has to do
        return []
    return list(shelf.dids([hit.id for hit in found if likeness.same(document, hit.document)]).values())


def similar(
    search: Search, shelf: Shelf, models: Models, document: Document, where: Any, known: Sequence[str]
) -> tuple[tuple[Similar, ...], tuple[Degraded, ...]]:
    """The documents that say nearly this, best first; ``known`` are those the caller linked it to, and knows of.
    Without a ``where``, those of the same owner."""
    where = _of_owner(document) if where is None else where
    state, question = shelf.state(), _question(document)
    if not question:
        return (), ()
    embedder, vector = models.embedder_of(state.model), None
    if state.model is not None and embedder is not None:
        (did,) = shelf.dids([document.id]).values() or (0,)
        vector = _vector(shelf, state.model.mid, did)  # embedded a moment ago
        if vector is None and state.model.spec.startswith("vectors:"):
            embedder = None
    weights = {"lexical": 1.0, "dense": 1.0 if embedder is not None else 0.0}
    depths = {"lexical": 3 * LOOKED_AT, "dense": 3 * LOOKED_AT}
    profile = Profile(
        name="similar", k=LOOKED_AT, weights=weights, depths=depths, match="any", fusion="rrf", follow_links=False
    )
    try:
        found = search.run(question, where, profile, (document.id, *known), vector, 0, None, {})
    except InputError:
        raise
    except TrivetError as error:  # it is stored; what it resembles is told another time
        return (), (Degraded("similar", str(error)),)
    newer = shelf.successors(list(shelf.dids([hit.id for hit in found]).values()))
    superseded = {item.old_id for item in newer.found}
    lost = (Degraded("links", newer.cut),) if newer.cut else ()
    unrelated = embedder.unrelated if embedder is not None else 0.0
    alike = [
        Similar(hit.id, round(verdict[0], 4), hit.text, verdict[1])
        for hit in found
        if hit.id not in superseded
        and (verdict := likeness.compare(document, hit.document, _meaning(hit, unrelated))) is not None
    ]
    return tuple(sorted(alike, key=lambda item: -item.similarity)), (*found.degraded, *lost)


def _of_owner(document: Document) -> Filter | None:
    named = ((key, document.meta.get(key)) for key in OWNERS)
    parts = tuple(Eq(f"meta.{key}", value) for key, value in named if isinstance(value, str | int) and value != "")
    return And(parts) if parts else None


def _question(document: Document) -> str:
    return f"{document.title}\n{document.text}"[:ASKED].strip()


def _vector(shelf: Shelf, mid: int, did: int) -> Any:
    import numpy as np

    data = shelf.sole_vectors(mid, [did]).get(did)
    return None if data is None else np.frombuffer(data, dtype="<f4")


def _meaning(hit: Hit, unrelated: float) -> float:
    """How strong is the cosine; 0 where meaning did not find it."""
    raw = next((part.raw for part in hit.contributions if part.leg == "dense"), unrelated)
    return min(1.0, max(0.0, (raw - unrelated) / (1.0 - unrelated))) if unrelated < 1.0 else 0.0
