"""``trivet get``: show one document."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text

from trivet import serialize
from trivet.cli import options, output, tables
from trivet.cli.options import argument
from trivet.cli.store import open_existing
from trivet.errors import NotFoundError

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Document, Link

TIMES = ("created", "updated", "valid_from", "valid_to", "expires")


def get(
    id: Annotated[str, argument("ID", "The document's id.")],
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Show one document with its fields and links."""
    with open_existing(store, collection) as engine:
        document = find(engine, id)
        links = engine.links(id)
    if json:
        output.print_json(serialize.document(document, links))
        return
    screen = output.stdout()
    screen.show(tables.fields(_rows(document, links)))
    # a pipe gets the text as it was stored, with the form feeds between its pages
    text = output.clean(document.text.replace("\f", "")) if screen.terminal else document.text
    sys.stdout.write(f"\n{text}\n")


def find(engine: Engine, id: str) -> Document:
    """Return the document, or raise NotFoundError."""
    document = engine.get(id)
    if document is None:
        raise NotFoundError(f"id: document {id!r} not found in collection {engine.name!r} of {engine.path!r}")
    return document


def _rows(document: Document, links: list[Link]) -> Iterator[tuple[str, str | Text]]:
    yield "id", document.id
    if document.title:
        yield "title", Text(output.clean(document.title), style="bold")
    yield "kind", document.kind
    yield "importance", f"{document.importance:g}"
    for name in TIMES:
        if moment := getattr(document, name):
            yield name, moment.isoformat(timespec="seconds")
    for name, value in document.meta.items():
        yield name, _text(value)
    for link in links:
        if link.source == document.id:
            yield f"{link.type} →", link.target
        if link.target == document.id:
            yield f"← {link.type}", link.source


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_.dumps(value, ensure_ascii=False)
