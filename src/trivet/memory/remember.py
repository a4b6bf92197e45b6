"""``remember``: reinforce a memory that is stored already, and report near-duplicates of a new one.

The same memory again is reinforced: it is counted and its importance rises, and nothing is stored twice. A
near-duplicate is stored and reported with a suggestion; the caller decides whether the two are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trivet.engine.request import SearchRequest
from trivet.errors import InputError, TrivetError
from trivet.filters import And, Eq, Filter, flatten
from trivet.memory import duplicates, relation
from trivet.profile import Profile
from trivet.text.conversation import OWNER_KEYS
from trivet.types import Degraded, Document, Hit, Similar

if TYPE_CHECKING:
    from trivet.engine.models import CollectionModels
    from trivet.engine.pipeline import Pipeline
    from trivet.stores.contract import Collection

REINFORCEMENT = 0.1  # share of the distance to importance 1 that one repetition adds
QUERY_CHARACTERS = 2_000  # of a document, used as the query for its near-duplicates
COMPARED_HITS = 8
MAX_CONDITIONS = 50  # metadata values in the filter for duplicates; the comparison looks at all of them

# A duplicate has every word of the document, so the lexical leg finds it.
_DUPLICATES = Profile(name="duplicates", k=20, weights={"lexical": 1.0}, match="all", follow_links=False)


def reinforced(importance: float, given: float | None) -> float:
    """Return the raised importance, at least ``given``."""
    return max(importance + (1.0 - importance) * REINFORCEMENT, given or 0.0)


def likely_duplicates(pipeline: Pipeline, collection: Collection, document: Document) -> list[int]:
    """Return numbers of documents that may be equal up to case, width and white space, which a hash misses."""
    query = _query(document)
    if not query or not collection.state().documents:
        return []
    pairs = list(flatten(document.meta))[:MAX_CONDITIONS]
    parts: tuple[Filter, ...] = (Eq("kind", document.kind), *(Eq(f"meta.{key}", value) for key, value in pairs))
    try:
        found = pipeline.search(SearchRequest(query, profile=_DUPLICATES))
        if len(found) == _DUPLICATES.k:  # a short text with many matches: search within its own kind and metadata
            found = pipeline.search(SearchRequest(query, And(parts), _DUPLICATES))
    except TrivetError:  # no document has such a field yet, or the leg failed: only the hash decides then
        return []
    return list(
        collection.documents.numbers([hit.id for hit in found if duplicates.same(document, hit.document)]).values()
    )


def similar(
    pipeline: Pipeline,
    collection: Collection,
    models: CollectionModels,
    document: Document,
    where: Any,
    known: Sequence[str],
) -> tuple[tuple[Similar, ...], tuple[Degraded, ...]]:
    """Return the near-duplicates of a stored document, best first, and what the search had to do without.

    ``known`` are documents the caller linked it to, which are not reported. Without ``where``, only documents of the
    same owner are compared.
    """
    where = _of_owner(document) if where is None else where
    state, query = collection.state(), _query(document)
    if not query:
        return (), ()
    embedder, vector = models.embedder_of(state.model), None
    if state.model is not None and embedder is not None:
        (did,) = collection.documents.numbers([document.id]).values() or (0,)
        vector = _vector(collection, state.model.mid, did)  # it was embedded when it was stored
        if vector is None and state.model.spec.startswith("vectors:"):
            embedder = None
    weights = {"lexical": 1.0, "dense": 1.0 if embedder is not None else 0.0}
    depths = {"lexical": 3 * COMPARED_HITS, "dense": 3 * COMPARED_HITS}
    profile = Profile(
        name="similar", k=COMPARED_HITS, weights=weights, depths=depths, match="any", fusion="rrf", follow_links=False
    )
    try:
        found = pipeline.search(SearchRequest(query, where, profile, (document.id, *known), vector))
    except InputError:
        raise
    except TrivetError as error:  # the document is stored all the same
        return (), (Degraded("similar", str(error)),)
    newer = collection.links.successors(list(collection.documents.numbers([hit.id for hit in found]).values()))
    superseded = {item.old_id for item in newer.found}
    lost = (Degraded("links", newer.cut),) if newer.cut else ()
    unrelated = embedder.unrelated if embedder is not None else 0.0
    compared = (
        (hit, duplicates.compare(document, hit.document, _meaning(hit, unrelated)))
        for hit in found
        if hit.id not in superseded
    )
    found_similar = [_similar(hit, comparison) for hit, comparison in compared if comparison is not None]
    return tuple(sorted(found_similar, key=lambda item: -item.similarity)), (*found.degraded, *lost)


def _of_owner(document: Document) -> Filter | None:
    """Return a filter for the documents of the same owner; None where the metadata names none."""
    named = ((key, document.meta.get(key)) for key in OWNER_KEYS)
    parts = tuple(Eq(f"meta.{key}", value) for key, value in named if isinstance(value, str | int) and value != "")
    return And(parts) if parts else None


def _query(document: Document) -> str:
    return f"{document.title}\n{document.text}"[:QUERY_CHARACTERS].strip()


def _vector(collection: Collection, mid: int, did: int) -> Any:
    import numpy as np

    data = collection.vectors.of_documents(mid, [did]).get(did)
    return None if data is None else np.frombuffer(data, dtype="<f4")


def _meaning(hit: Hit, unrelated: float) -> float | None:
    """Return the cosine scaled from 0 (unrelated) to 1; None where the dense leg did not find the hit."""
    raw = next((part.raw for part in hit.contributions if part.leg == "dense"), None)
    return None if raw is None else relation.scaled(raw, unrelated)


def _similar(hit: Hit, found: duplicates.Comparison) -> Similar:
    similarity = round(found.similarity, 4)
    return Similar(hit.id, similarity, hit.text, found.suggestion, found.relation, found.changed, found.statement)
