"""Dividing a collection between the workers of a cluster by its documents, or keeping it on one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trivet.engine.opening import is_store, open
from trivet.errors import InputError, NotFoundError
from trivet.stores import open_store
from trivet.types import Progress

BY = ("documents", "collections")


@dataclass(frozen=True, slots=True)
class Redistributed:
    """A collection after ``redistribute``; ``moved`` is false where it was distributed like that already."""

    collection: str
    by: str
    moved: bool
    documents: int
    passages: int


def redistribute(
    path: str | Path, collection: str, by: str = "documents", progress: Progress | None = None
) -> Redistributed:
    """Move a collection to the tables that are distributed by ``documents`` or by ``collections``; index it there.

    Writers wait meanwhile. Another process that has the collection open has to open it again.
    """
    if by not in BY:
        raise InputError(f"by: {by!r} is unknown; known: {', '.join(BY)}")
    if not is_store(path):
        raise NotFoundError("redistribute: there is no store at this address")
    store = open_store(path)
    try:
        moved = store.redistribute(collection, by)
    finally:
        store.close()
    with open(path, collection, embedder="none", background=False) as engine:
        if moved:
            engine.prepare(progress=progress)
        found = engine.stats()
    return Redistributed(collection, by, moved, found.documents, found.passages)
