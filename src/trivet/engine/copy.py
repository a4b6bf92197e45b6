"""Copy collections from one store to another.

Documents are copied in the order in which they were first added, with links, feedback, settings and the vectors of
the current model: nothing is embedded again. Documents that are there already are skipped, so an interrupted copy is
simply started again. In the end both sides are read and must agree, by count and by hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from trivet.engine import transfer, validation
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.stores import is_there, open_store, shown
from trivet.stores.contract import Collection, Model, Store
from trivet.types import Document, Link, Passage, StepProgress

MADE_WITH = ("language", "passage_size", "words_only")  # config that a collection keeps for good
BATCH = 200  # documents read and written at a time
#: Name of the step, done, total.


@dataclass(frozen=True, slots=True)
class Copied:
    """What a collection has on both sides after a copy."""

    collection: str
    documents: int
    passages: int
    vectors: int
    links: int
    feedback: int
    written: int  # documents that were new or different
    pending: int  # passages without a vector, as in the source
    hash: str  # of everything that was compared


def copy(
    source: str | Path, target: str | Path, collections: Sequence[str] = (), progress: StepProgress | None = None
) -> list[Copied]:
    """Copy collections, all or those named, into another store; both agree when it returns."""
    if str(source) == str(target):
        raise InputError(f"copy: {shown(source)!r} is both the source and the target; name two stores")
    if not is_there(source):
        raise NotFoundError("copy: the source is not a store")
    source_store = open_store(source)
    try:
        known = source_store.names()
        if strange := [name for name in collections if name not in known]:
            there = ", ".join(known) or "none"
            raise NotFoundError(f"collection: the source has no {strange[0]!r}; there are: {there}")
        target_store = open_store(target)
        try:
            return [_copied(source_store, target_store, name, progress) for name in collections or known]
        finally:
            target_store.close()
    finally:
        source_store.close()


def _copied(source_store: Store, target_store: Store, name: str, progress: StepProgress | None) -> Copied:
    source = source_store.collection(name, {}, "")
    state = source.state()
    new = name not in target_store.names()
    # the rest of the config says how the source stores it
    made_with = {key: source.config[key] for key in MADE_WITH if key in source.config}
    target = target_store.collection(name, made_with if new else {}, state.settings)
    _check(source, target)
    model = _model(source, target)
    written = 0
    links = _outgoing(source)
    done = 0
    for batch in _batches(source):
        spans = _spans(source, [did for did, _ in batch])
        prepared = [
            validation.prepare(document, tuple(links.get(document.id, ())), None, _as_cut(spans[did]), None)
            for did, document in batch
        ]
        made = target.documents.write(prepared, None)
        written += made.added + made.updated
        if model is not None:
            _add_vectors(source, target, model, batch)
        done += len(batch)
        if progress:
            progress(f"copy {name}", done, max(done, state.documents))
    feedback = source.feedback.read()
    if feedback:
        target.feedback.restore(feedback)
    if target.state().settings != state.settings:
        target.settings.change(lambda _: state.settings, "copy")
    target.maintenance.update()
    return _verified(source, target, model, written, progress)


def _check(source: Collection, target: Collection) -> None:
    """Refuse a target whose analyser, passages or model differ."""
    for key in ("language", "passage_size"):  # ``words_only`` follows from the model
        one, other = source.config.get(key), target.config.get(key)
        if one != other:
            differs = f"{target.name!r} exists and was created with {other!r}, not {one!r}"
            raise InputError(f"copy: {key}: {differs}; drop it, or copy into another store")
    one_model, other_model = source.state().model, target.state().model
    if one_model and other_model and other_model.vectors and one_model.id != other_model.id:
        differs = f"{target.name!r} exists with vectors of {other_model.id!r}, not of {one_model.id!r}"
        raise InputError(f"copy: model: {differs}; drop it, or copy into another store")


def _model(source: Collection, target: Collection) -> tuple[Model, Model] | None:
    model = source.state().model
    return None if model is None else (model, target.vectors.add_model(model.id, model.spec, model.dim, answers=True))


def _batches(collection: Collection) -> Iterator[list[tuple[int, Document]]]:
    after = 0
    while batch := collection.documents.page(None, after, BATCH):
        yield batch
        after = batch[-1][0]


def _outgoing(collection: Collection) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in collection.links.of():
        found.setdefault(link.source, []).append(link)
    return found


def _spans(collection: Collection, dids: Sequence[int]) -> dict[int, list[tuple[int, int, int]]]:
    found: dict[int, list[tuple[int, int, int]]] = {did: [] for did in dids}
    for _, did, *span, _ in collection.documents.passages(dids):
        found[did].append((span[0], span[1], span[2]))
    return found


def _as_cut(spans: Sequence[tuple[int, int, int]]) -> Callable[[str], list[Passage]]:
    """Cut where the source was cut, which may be an older version's way or not at all."""
    return lambda text: [Passage(ordinal, start, stop, text[start:stop]) for ordinal, start, stop in spans]


def _add_vectors(
    source: Collection, target: Collection, model: tuple[Model, Model], batch: Sequence[tuple[int, Document]]
) -> None:
    """Copy vectors by the hash of their passage, since numbers differ between stores."""
    known = source.vectors.by_hash(model[0].mid, [did for did, _ in batch])
    by_id = {document.id: known.get(did, {}) for did, document in batch}
    here = target.documents.numbers([document.id for _, document in batch])
    ids = {did: id for id, did in here.items()}
    rows = [
        (pid, by_id[ids[did]][digest])
        for pid, did, _, _, _, digest in target.documents.passages(list(here.values()))
        if digest in by_id[ids[did]]
    ]
    if rows:
        target.vectors.add(model[1].mid, rows)


# --- verification -----------------------------------------------------------------------------------------------------


def _verified(
    source: Collection,
    target: Collection,
    model: tuple[Model, Model] | None,
    written: int,
    progress: StepProgress | None,
) -> Copied:
    mids = (model[0].mid, model[1].mid) if model else (None, None)
    one = _reading(source, mids[0], progress)
    other = _reading(target, mids[1], progress)
    for what in ("documents", "links", "feedback", "hash", "vectors", "vector_hash"):
        if one[what] != other[what]:
            differs = f"{what}: the source has {one[what]}, the target {other[what]}"
            mend = "one of them was written to meanwhile, or the target had documents of its own; copy again"
            raise StoreError(f"copy: collection {source.name!r} does not agree: {differs}; {mend}")
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


def _reading(collection: Collection, mid: int | None, progress: StepProgress | None) -> dict[str, Any]:
    """Return counts, and hashes that do not depend on the order: sums of the hashes of the items."""
    import numpy as np

    links = _outgoing(collection)
    found: dict[str, Any] = {"documents": 0, "links": sum(map(len, links.values())), "hash": 0}
    found |= {"vectors": 0, "vector_hash": 0}
    total = collection.state().documents
    for batch in _batches(collection):
        vectors = collection.vectors.by_hash(mid, [did for did, _ in batch]) if mid is not None else {}
        for did, document in batch:
            linked = sorted((link.target, link.type, link.weight) for link in links.get(document.id, ()))
            line = json.dumps([transfer.plain(document), linked], sort_keys=True, ensure_ascii=True)
            found["hash"] = _summed(found["hash"], line.encode())
            for digest, data in vectors.get(did, {}).items():
                found["vectors"] += 1
                rounded = np.frombuffer(data, dtype="<f4").astype("<f2").tobytes()  # SQLite keeps 16 bits a number
                found["vector_hash"] = _summed(found["vector_hash"], document.id.encode() + digest + rounded)
        found["documents"] += len(batch)
        if progress:
            progress(f"verify {collection.name}", found["documents"], max(total, found["documents"]))
    feedback = collection.feedback.read()
    found["feedback"] = len(feedback)
    for item in feedback:
        found["hash"] = _summed(found["hash"], json.dumps(transfer.plain(item), sort_keys=True).encode())
    return found


def _summed(total: int, part: bytes) -> int:
    return (total + int.from_bytes(blake2b(part, digest_size=16).digest(), "big")) % (1 << 128)
