"""Which store does this command work on?

Only ``add`` and ``import`` make a store or a collection. Every other command refuses a name that does not exist: a
typo in a path must not answer from an empty store.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import NotFoundError

if TYPE_CHECKING:
    from trivet.engine import Engine

EMBEDDER_VARIABLE = "TRIVET_EMBEDDER"
SCORER_VARIABLE = "TRIVET_SCORER"


@contextmanager
def made(path: Path, collection: str, embedder: str | None, scorer: str | None = None) -> Iterator[Engine]:
    """The collection, made if it is new."""
    from trivet.engine import collections_in
    from trivet.engine import open as open_engine

    if not embedder and collection not in collections_in(path):
        embedder = os.environ.get(EMBEDDER_VARIABLE)  # a wish for new collections; an old one has its model
    with open_engine(path, collection, embedder=embedder or None, scorer=scorer) as engine:
        yield engine


@contextmanager
def existing(path: Path, collection: str, *, model: bool = False, scorer: str | None = None) -> Iterator[Engine]:
    """The collection as it is. Without ``model`` none is loaded, which is what makes ``get`` and ``stats`` quick."""
    check(path, collection)
    from trivet.engine import open as open_engine

    with open_engine(path, collection, embedder=None if model else "none", scorer=scorer) as engine:
        yield engine


def scorer_of(given: str | None) -> str | None:
    """The scorer a flag names, else the environment."""
    return given or os.environ.get(SCORER_VARIABLE) or None


def check(path: Path, collection: str) -> None:
    """Refuse a store or a collection that is not there, with the way to make it."""
    place = shlex.quote(str(path))
    from trivet.engine import collections_in, is_store, on_server

    if not is_store(path):
        if on_server(path):  # its address may hold a password
            raise NotFoundError(
                "store: that server has no store of trivet's; make one with `trivet add -s ADDRESS TEXT`"
            )
        raise NotFoundError(
            f"store: there is no file {str(path)!r}; make it with `trivet add -s {place} TEXT` or "
            f"`trivet import -s {place} FOLDER`, or name another with --store or TRIVET_STORE"
        )
    names = collections_in(path)
    if collection not in names:
        here, place = ("the server", "ADDRESS") if on_server(path) else (repr(str(path)), place)
        raise NotFoundError(
            f"collection: {here} has no {collection!r}; there are: {', '.join(names) or 'none'}. "
            f"Make it with `trivet add -s {place} -c {shlex.quote(collection)} TEXT`"
        )
