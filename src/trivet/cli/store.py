"""Open the store and the collection that a command names.

Only ``add``, ``import`` and ``mcp`` create a store or a collection. Every other command refuses a name that does not
exist: a typo in a path must not give results from an empty store.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trivet.errors import NotFoundError

if TYPE_CHECKING:
    from trivet.engine import Engine

EMBEDDER_VARIABLE = "TRIVET_EMBEDDER"
SCORER_VARIABLE = "TRIVET_SCORER"


@contextmanager
def open_or_create(path: str, collection: str, embedder: str | None, scorer: str | None = None) -> Iterator[Engine]:
    """Open the collection; create it if it is new."""
    from trivet.engine import collections_in
    from trivet.engine import open as open_engine

    if not embedder and collection not in collections_in(path):
        embedder = os.environ.get(EMBEDDER_VARIABLE)  # for new collections only: an existing one keeps its model
    with open_engine(path, collection, embedder=embedder or None, scorer=scorer) as engine:
        yield engine


@contextmanager
def open_existing(
    path: str, collection: str, *, model: bool = False, scorer: str | None = None, background: bool = False
) -> Iterator[Engine]:
    """Open an existing collection. Without ``model`` no model is loaded, which makes ``get`` and ``stats`` quick.

    ``background`` is for a process that stays: one that ends at once would wait for the batch that it began.
    """
    check_exists(path, collection)
    from trivet.engine import open as open_engine

    embedder = None if model else "none"
    with open_engine(path, collection, embedder=embedder, scorer=scorer, background=background) as engine:
        yield engine


def catch_up_command(path: str, collection: str) -> str:
    """Return the command that embeds what waits and finishes the indexes."""
    from trivet.engine import shown

    return f"trivet reembed -s {shlex.quote(shown(path))} -c {shlex.quote(collection)}"


def scorer_or_default(given: str | None) -> str | None:
    """Return the scorer of ``--scorer``, or that of the environment."""
    return given or os.environ.get(SCORER_VARIABLE) or None


def check_store(path: str) -> None:
    """Raise NotFoundError, with the command that creates it, where the store does not exist."""
    from trivet.engine import is_store, on_server

    if is_store(path):
        return
    if on_server(path):  # the address is not shown: it may hold a password
        raise NotFoundError("store: there is no trivet store on this server; `trivet add -s ADDRESS TEXT` makes it")
    place = shlex.quote(path)
    raise NotFoundError(
        f"store: there is no file {path!r}; make it with `trivet add -s {place} TEXT` or "
        f"`trivet import -s {place} FOLDER`, or name another with --store or TRIVET_STORE"
    )


def check_exists(path: str, collection: str) -> None:
    """Raise NotFoundError, with the command that creates it, where the store or the collection does not exist."""
    from trivet.engine import collections_in, on_server

    check_store(path)
    place = shlex.quote(path)
    names = collections_in(path)
    if collection not in names:
        here, place = ("the server", "ADDRESS") if on_server(path) else (repr(path), place)
        raise NotFoundError(
            f"collection: there is no {collection!r} in {here}; there are: {', '.join(names) or 'none'}. "
            f"Make it with `trivet add -s {place} -c {shlex.quote(collection)} TEXT`"
        )
