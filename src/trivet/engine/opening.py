"""Opening, restoring and finding stores."""

from __future__ import annotations

from pathlib import Path

from trivet.engine.engine import Engine, Shared, open_collection
from trivet.errors import NotFoundError
from trivet.stores import is_server, is_there, names_in, open_store, restore_store
from trivet.stores import shown as shown_address
from trivet.types import Embedder, Progress, Restored, Scorer

DEFAULT_COLLECTION = "default"


def open(
    path: str | Path,
    collection: str = DEFAULT_COLLECTION,
    *,
    embedder: str | Embedder | None = None,
    language: str | None = None,
    passage_size: int | None = None,
    create: bool = True,
    scorer: str | Scorer | None = None,
    background: bool = True,
) -> Engine:
    """Open a collection of a store. Both are created if they are new, unless ``create`` is false.

    Args:
        path: A file, ``":memory:"`` for a store that is deleted at close, or the address of a server.
        collection: The name of the collection.
        embedder: The model of a new collection, if not the built-in one: ``"none"``, ``"folder:/models/minilm"``,
            ``"http://127.0.0.1:11434/v1#nomic-embed-text"``, ``"vectors:768"`` or an object.
        language: The language of a new collection's texts, ``"en"`` by default.
        passage_size: The size of a new collection's passages in tokens; 0 never cuts.
        create: Whether to create what does not exist.
        scorer: The model of the reranker ``cross_encoder``: ``"folder:/models/reranker"``,
            ``"http://127.0.0.1:8080/rerank"`` or an object.
        background: Whether passages that wait for their vectors are embedded from now on; a process that asks one
            query has no time for that.
    """
    if not create and collection not in (names := collections_in(path)):
        where = f"there are: {', '.join(names)}" if names else "the store does not exist"
        raise NotFoundError(f"collection: {shown(path)!r} has no {collection!r}; {where}")
    store = open_store(path)
    try:
        return open_collection(store, collection, embedder, language, passage_size, Shared(store, scorer), background)
    except BaseException:
        store.close()
        raise


def restore(backup: str | Path, path: str | Path, progress: Progress | None = None) -> Restored:
    """Replace the store at ``path`` by a backup, or create it from one.

    The backup is checked first. A store that a process has open is refused, and the process is named: what it wrote
    afterwards would be lost.
    """
    size, replaced = restore_store(backup, path, progress)
    names = tuple(collections_in(path))
    documents = 0
    for name in names:
        with open(path, name, embedder="none") as engine:
            documents += engine.stats().documents
    return Restored(str(path), size, names, documents, replaced)


def collections_in(path: str | Path) -> list[str]:
    """Return the names of a store's collections without changing anything; none if there is no store."""
    return names_in(path)


def is_store(path: str | Path) -> bool:
    """Tell whether there is a store at a path or address; a server that cannot be reached is an error."""
    return is_there(path)


def on_server(path: str | Path) -> bool:
    """Tell whether an address names a server rather than a file."""
    return is_server(path)


def shown(path: str | Path) -> str:
    """Return an address as a message may show it, without its password and API key."""
    return shown_address(path)
