"""``trivet list`` and ``trivet collections``: what is in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from trivet import serialize
from trivet.cli import options, output, tables
from trivet.cli.options import flag, option
from trivet.cli.store import check_exists, open_existing

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Document, Stats

TITLE = 60  # characters of a title, or of the text where there is none


def list_(
    limit: Annotated[int, option("--limit -n", "N", "Number of documents.", default=True)] = 20,
    where: options.Where = None,
    full: Annotated[bool, flag("--full", "With --json: the text of each document, too.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """List documents, the newest first."""
    from trivet.engine.newest import newest
    from trivet.errors import InputError

    if full and not json:
        raise InputError("list: --full chooses what --json prints; add --json")
    with open_existing(store, collection) as engine:
        found = newest(engine, where, limit)
    if json:
        output.print_json([_plain(document, full) for document in found])
        return
    screen = output.stdout()
    rows = [[output.one_line(document.id), _day(document), document.kind, _title(document)] for document in found]
    shown = tables.table(("id", "created", "kind", "title"), rows, screen, left=("created", "kind", "title"))
    screen.show(shown if rows else tables.sentence("no documents"))


def collections(store: options.Store = options.DEFAULT_STORE, json: options.Json = False) -> None:
    """List the collections of a store, with their sizes and models."""
    from trivet.engine import collections_in

    names = collections_in(store)
    check_exists(store, names[0] if names else options.DEFAULT_COLLECTION)
    with open_existing(store, names[0]) as engine:
        found = [_stats(engine, name) for name in names]
    if json:
        output.print_json([_size(one) for one in found])
        return
    screen = output.stdout()
    rows = [
        [output.one_line(one.collection), f"{one.documents:,}", f"{one.passages:,}", one.model or "none"]
        for one in found
    ]
    screen.show(tables.table(("collection", "documents", "passages", "model"), rows, screen, left=("model",)))


def _stats(engine: Engine, name: str) -> Stats:
    """Return the counts of a collection without loading its model."""
    return (engine if name == engine.name else engine.collection(name, embedder="none")).stats()


def _size(one: Stats) -> dict[str, Any]:
    return {"collection": one.collection, "documents": one.documents, "passages": one.passages, "model": one.model}


def _plain(document: Document, full: bool) -> dict[str, Any]:
    plain = serialize.document(document)
    return plain if full else {name: value for name, value in plain.items() if name != "text"}


def _day(document: Document) -> str:
    return document.created.date().isoformat() if document.created else "–"


def _title(document: Document) -> str:
    line = output.one_line(document.title or document.text[: 4 * TITLE])
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"
