"""``trivet remember``: store a statement, and say which older documents it repeats or contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from trivet.cli import add, options, output
from trivet.cli.options import argument, option
from trivet.cli.store import open_or_create

if TYPE_CHECKING:
    from trivet.types import Remembered, Similar

STATEMENT = 160  # characters of an older statement that are shown


def remember(
    text: Annotated[str | None, argument("TEXT", "The statement; `-` or nothing reads it from a pipe.")] = None,
    id: Annotated[
        str | None, option("--id", "ID", "The document's id; an existing document is replaced. Default: a new id.")
    ] = None,
    title: Annotated[str, option("--title", "TEXT", "A short title.")] = "",
    kind: Annotated[str, option("--kind", "NAME", "note, fact, episode, decision…", default=True)] = "note",
    meta: Annotated[
        list[str] | None,
        option("--meta -m", "KEY=VALUE", "A metadata field. Repeat for more; a repeated key becomes a list."),
    ] = None,
    importance: Annotated[float | None, option("--importance", "0–1", "How important it is. Default: 0.5.")] = None,
    link: Annotated[
        list[str] | None, option("--link", "ID:TYPE", "Link it to another document, as OLD:supersedes.")
    ] = None,
    redact: options.Redact = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    json: options.Json = False,
) -> None:
    """Store a statement once, and report older documents that say the same or that it contradicts."""
    content, metadata = add.read_text(text, "remember"), options.parse_meta(meta or ())
    links = [options.parse_link(item) for item in link or ()]
    with open_or_create(store, collection, embedder) as engine:
        done = engine.remember(
            content,
            id=id,
            title=title,
            kind=kind,
            meta=metadata,
            importance=importance,
            links=links,
            redact=redact,
        )
    if json:
        output.print_json(done)
    else:
        _show(done)
    for item in done.degraded:
        output.message(f"degraded: {item.part}: {item.reason}", "yellow")


def _show(done: Remembered) -> None:
    print(f"{'remembered' if done.stored else 'already known as'} {output.clean(done.id)}")
    for item in done.similar:
        print(_line(item))
    if done.redacted:
        print(f"redacted {', '.join(done.redacted)}")


def _line(item: Similar) -> str:
    from trivet.memory.relation import VERBS

    statement = output.one_line(item.statement or item.text)
    shown = statement if len(statement) <= STATEMENT else f"{statement[:STATEMENT].rstrip()}…"
    changed = f" ({output.one_line(item.changed)})" if item.changed else ""
    return f'{VERBS[item.relation]} {output.one_line(item.id)}: "{shown}"{changed}; suggestion: {item.suggestion}'
