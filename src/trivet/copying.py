"""How does a collection move from one store to another?

Document by document, in the order they were first added, with its links, its feedback, the settings and the vectors of
the model that answers: nothing is embedded again. What is there already and says the same is passed over, so a copy
that was broken off is simply started again. In the end both sides are read and must agree, by count and by hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from trivet import intake, transfer
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.stores import is_there, open_store
from trivet.stores.contract import Model, Shelf, Store
from trivet.types import Document, Link, Passage

MADE_WITH = ("language", "passage_size", "words_only")  # what a collection is told when it is made
BATCH = 200  # documents read and written at a time
#: What is being done, how far it is, and how far it goes.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What one collection has on both sides now."""

    collection: str
    documents: int
    passages: int
    vectors: int
    links: int
    feedback: int
    written: int  # documents that were not there, or said something else
    pending: int  # passages that wait to be embedded, as they do in the source
    hash: str  # of everything that was compared


def copy(
    source: str | Path, target: str | Path, collections: Sequence[str] = (), progress: Progress | None = None
) -> list[Copied]:
    """Copy collections (all of them unless some are named) into another store; both agree when it returns."""
    if str(source) == str(target):
        raise InputError(f"copy: {str(source)!r} is both the source and the target; name two stores")
    if not is_there(source):
        raise NotFoundError("copy: there is no store at the source's address")
    giving = open_store(source)
    try:
        known = giving.names()
        if strange := [name for name in collections if name not in known]:
            told = f"the source has no {strange[0]!r}; there are: {', '.join(known) or 'none'}"
            raise NotFoundError(f"collection: {told}")
        taking = open_store(target)
        try:
            return [_copied(giving, taking, name, progress) for name in collections or known]
        finally:
            taking.close()
    finally:
        giving.close()


def _copied(giving: Store, taking: Store, name: str, progress: Progress | None) -> Copied:
    source = giving.shelf(name, {}, "")
    state = source.state()
    new = name not in taking.names()
    # where and how it is kept is the target's own: the rest of a collection's config stays behind
    made_with = {key: source.config[key] for key in MADE_WITH if key in source.config}
    target = taking.shelf(name, made_with if new else {}, state.settings)
    _check(source, target)
    model = _model(source, target)
    written = 0
    links = _outgoing(source)
    done = 0
    for batch in _batches(source):
        spans = _spans(source, [did for did, _ in batch])
        prepared = [
            intake.prepare(document, tuple(links.get(document.id, ())), None, _as_cut(spans[did]), None)
            for did, document in batch
        ]
        made = target.write(prepared, None)
        written += made.added + made.updated
        if model is not None:
            _add_vectors(source, target, model, batch)
        done += len(batch)
        if progress:
            progress(f"copy {name}", done, max(done, state.documents))
    feedback = source.feedbacks()
    if feedback:
        target.restore_feedback(feedback)
    if target.state().settings != state.settings:
        target.change_settings(lambda _: state.settings, "copy")
    target.tidy()
    return _verified(source, target, model, written, progress)


def _check(source: Shelf, target: Shelf) -> None:
    """What a collection is made with, for good, decides its words and its passages."""
    for key in MADE_WITH[:2]:
        one, other = source.config.get(key), target.config.get(key)
        if one != other:
            told = f"{target.name!r} is there and was made with {other!r}, not {one!r}"
            raise InputError(f"copy: {key}: {told}; drop it, or copy into another store")
    one_model, other_model = source.state().model, target.state().model
    if one_model and other_model and other_model.vectors and one_model.id != other_model.id:
        told = f"{target.name!r} is there with vectors of {other_model.id!r}, not of {one_model.id!r}"
        raise InputError(f"copy: model: {told}; drop it, or copy into another store")


def _model(source: Shelf, target: Shelf) -> tuple[Model, Model] | None:
    model = source.state().model
    return None if model is None else (model, target.add_model(model.id, model.spec, model.dim, answers=True))


def _batches(shelf: Shelf) -> Iterator[list[tuple[int, Document]]]:
    after = 0
    while batch := shelf.page(None, after, BATCH):
        yield batch
        after = batch[-1][0]


def _outgoing(shelf: Shelf) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in shelf.links_of():
        found.setdefault(link.source, []).append(link)
    return found


def _spans(shelf: Shelf, dids: Sequence[int]) -> dict[int, list[tuple[int, int, int]]]:
    found: dict[int, list[tuple[int, int, int]]] = {did: [] for did in dids}
    for _, did, *span, _ in shelf.passages_of(dids):
        found[did].append((span[0], span[1], span[2]))
    return found


def _as_cut(spans: Sequence[tuple[int, int, int]]) -> Callable[[str], list[Passage]]:
    """Cut where the source was cut: by an older version, or not at all where the caller brought the vector."""
    return lambda text: [Passage(ordinal, start, stop, text[start:stop]) for ordinal, start, stop in spans]


def _add_vectors(
    source: Shelf, target: Shelf, model: tuple[Model, Model], batch: Sequence[tuple[int, Document]]
) -> None:
    """By what the passages say: numbers differ from store to store."""
    known = source.vectors_of(model[0].mid, [did for did, _ in batch])
    by_id = {document.id: known.get(did, {}) for did, document in batch}
    here = target.dids([document.id for _, document in batch])
    ids = {did: id for id, did in here.items()}
    rows = [
        (pid, by_id[ids[did]][digest])
        for pid, did, _, _, _, digest in target.passages_of(list(here.values()))
        if digest in by_id[ids[did]]
    ]
    if rows:
        target.add_vectors(model[1].mid, rows)


# --- do both sides agree? ---------------------------------------------------------------------------------------------


def _verified(
    source: Shelf, target: Shelf, model: tuple[Model, Model] | None, written: int, progress: Progress | None
) -> Copied:
    mids = (model[0].mid, model[1].mid) if model else (None, None)
    one = _reading(source, mids[0], progress)
    other = _reading(target, mids[1], progress)
    for what in ("documents", "links", "feedback", "hash", "vectors", "vector_hash"):
        if one[what] != other[what]:
            told = f"{what}: the source has {one[what]}, the target {other[what]}"
            mend = "was one of them written to meanwhile, or had the target documents of its own? Copy again"
            raise StoreError(f"copy: collection {source.name!r} does not agree: {told}; {mend}")
    state = target.state()
    digest = blake2b(f"{one['hash']}{one['vector_hash']}".encode(), digest_size=8).hexdigest()
    return Copied(
        source.name,
        one["documents"],
        state.passages,
        one["vectors"],
        one["links"],
        one["feedback"],
        written,
        state.pending,
        digest,
    )


def _reading(shelf: Shelf, mid: int | None, progress: Progress | None) -> dict[str, Any]:
    """Counts, and hashes that do not depend on the order: the sum of those of the parts."""
    links = _outgoing(shelf)
    found: dict[str, Any] = {"documents": 0, "links": sum(map(len, links.values())), "hash": 0}
    found |= {"vectors": 0, "vector_hash": 0}
    total = shelf.state().documents
    for batch in _batches(shelf):
        vectors = shelf.vectors_of(mid, [did for did, _ in batch]) if mid is not None else {}
        for did, document in batch:
            linked = sorted((link.target, link.type, link.weight) for link in links.get(document.id, ()))
            line = json.dumps([transfer.plain(document), linked], sort_keys=True, ensure_ascii=True)
            found["hash"] = _summed(found["hash"], line.encode())
            for digest, data in vectors.get(did, {}).items():
                found["vectors"] += 1
                found["vector_hash"] = _summed(found["vector_hash"], document.id.encode() + digest + data)
        found["documents"] += len(batch)
        if progress:
            progress(f"verify {shelf.name}", found["documents"], max(total, found["documents"]))
    feedback = shelf.feedbacks()
    found["feedback"] = len(feedback)
    for item in feedback:
        found["hash"] = _summed(found["hash"], json.dumps(transfer.plain(item), sort_keys=True).encode())
    return found


def _summed(total: int, part: bytes) -> int:
    return (total + int.from_bytes(blake2b(part, digest_size=16).digest(), "big")) % (1 << 128)
