"""The engine behind an adapter: how it is opened, searched and called by asynchronous code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from trivet.engine import Engine, open
from trivet.errors import InputError, MissingExtraError
from trivet.filters import And, Contains, Eq, Exists, Filter, In, Not, Or, Prefix, Range, split_field
from trivet.types import Document, Embedder, Results

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("trivet.integrations")

IDS_AT_ONCE = 500  # in one filter: reading many documents by one long list takes longer than in parts

#: The filter that allows every document; ``delete`` takes it where an empty one is refused.
EVERY_DOCUMENT = Exists("id")


def missing_extra(extra: str, error: ImportError) -> MissingExtraError:
    """Return the error of an adapter whose framework is not installed; it holds the pip line."""
    return MissingExtraError(f"trivet.integrations: {error.name or error} is missing: pip install 'trivet[{extra}]'")


def open_engine(store: str | Path | Engine, collection: str, embedder: str | Embedder | None) -> Engine:
    """Return the collection of a store by its path or address; an engine is returned as it is."""
    if not isinstance(store, Engine):
        return open(store, collection, embedder=embedder)
    if embedder is not None:
        raise InputError("embedder: an open engine has its model; give the path of the store, or leave the model out")
    return store


def search(engine: Engine, query: str, k: int | None, where: Any, options: Mapping[str, Any]) -> Results:
    """Return the results of a search, and log what was degraded, as frameworks have no place for it."""
    results = engine.search(query, k, where, **options)
    for part in results.degraded:
        log.warning("trivet: %s was degraded: %s", part.part, part.reason)
    return results


def by_ids(engine: Engine, ids: Iterable[str]) -> dict[str, Document]:
    """Return the documents with these ids, by their id; one that does not exist is left out."""
    wanted = list(ids)
    pages = (wanted[at : at + IDS_AT_ONCE] for at in range(0, len(wanted), IDS_AT_ONCE))
    return {document.id: document for page in pages for document in engine.documents({"id": page})}


def lenient(engine: Engine, where: Filter, call: Callable[[Filter], T]) -> T:
    """Call with a filter in which a condition on a field that no document has is simply not met.

    That is what most frameworks expect. trivet refuses such a field, since its name may be misspelt, so the known
    fields are looked up only after that.
    """
    try:
        return call(where)
    except InputError:
        known = without_unknown(where, set(engine.stats().fields))
        if known == where:
            raise
        return call(known)


def without_unknown(where: Filter, known: set[str]) -> Filter:
    """Return the filter with ``Exists``, which is not met either, for each condition on a field that is not known."""
    match where:
        case And(parts) | Or(parts):
            return type(where)(tuple(without_unknown(part, known) for part in parts))
        case Not(part):
            return Not(without_unknown(part, known))
        case Eq(field) | In(field) | Range(field) | Prefix(field) | Contains(field):
            built_in, name = split_field(field)
            return where if built_in or name in known else Exists(field)
        case Exists():
            return where


def in_thread(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the asynchronous form of a method, which runs it in a thread."""

    @wraps(method)
    async def run(*args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **options)

    return run
