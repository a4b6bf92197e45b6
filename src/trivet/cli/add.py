"""``trivet add``: store one document."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from trivet.cli import options, output
from trivet.cli.options import argument, flag, option
from trivet.cli.store import open_or_create
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Added


def add(
    text: Annotated[str | None, argument("TEXT", "The text; `-` or nothing reads it from a pipe.")] = None,
    id: Annotated[
        str | None, option("--id", "ID", "The document's id; an existing document is replaced. Default: a new id.")
    ] = None,
    title: Annotated[str | None, option("--title", "TEXT", "A short title.")] = None,
    kind: Annotated[str | None, option("--kind", "NAME", "note (the default), episode, decision…")] = None,
    meta: Annotated[
        list[str] | None,
        option("--meta -m", "KEY=VALUE", "A metadata field. Repeat for more; a repeated key becomes a list."),
    ] = None,
    importance: Annotated[float | None, option("--importance", "0–1", "How important it is. Default: 0.5.")] = None,
    created: Annotated[
        str | None, option("--created", "TIME", "When it was created, in ISO 8601: 2026-03-01T09:30Z. Default: now.")
    ] = None,
    expires: Annotated[
        str | None, option("--expires", "TIME", "From this time on (ISO 8601) it is not found, and it is deleted.")
    ] = None,
    link: Annotated[
        list[str] | None, option("--link", "ID:TYPE", "Link it to another document; the default type is see-also.")
    ] = None,
    markdown: Annotated[
        bool, flag("--markdown", "Read fields from the YAML front matter; options on the command line override them.")
    ] = False,
    redact: options.Redact = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    json: options.Json = False,
) -> None:
    """Store one document. Creates the store if it does not exist."""
    content, metadata = read_text(text, "add"), options.parse_meta(meta or ())
    given: dict[str, Any] = {
        "id": id,
        "title": title,
        "kind": kind,
        "importance": importance,
        "created": created,
        "expires": expires,
        "links": [options.parse_link(item) for item in link] if link else None,
    }
    with open_or_create(store, collection, embedder) as engine:
        document: dict[str, Any] = _from_markdown(engine, content) if markdown else {"text": content, "meta": {}}
        document |= {name: value for name, value in given.items() if value is not None}
        document["meta"] = {**document["meta"], **metadata}
        added = engine.add(document, redact=redact)
    _show(added, redact, json)


def _show(added: Added, redact: bool, json: bool) -> None:
    result = next((name for name in ("added", "updated") if getattr(added, name)), "unchanged")
    if json:
        shown = {"id": added.ids[0], "result": result, "pending": added.pending}
        output.print_json({**shown, "redacted": added.redacted} if redact else shown)
    else:
        print(f"{result} {output.clean(added.ids[0])}")
        if added.redacted:
            from trivet.memory.redaction import counted

            print(f"redacted {counted(added.redacted)}")
    for item in added.degraded:
        output.message(f"degraded: {item.part}: {item.reason}", "yellow")


def _from_markdown(engine: Engine, text: str) -> dict[str, Any]:
    from trivet.files import markdown

    try:
        return markdown.document(text, markdown.resolve_ids(engine))
    except markdown.FrontMatterError as error:
        raise InputError(f"text line {error.line}: {error}") from None


def read_text(given: str | None, command: str) -> str:
    """Return the text that was given, or that of the pipe; ``command`` is named in the error."""
    if given is not None and given != "-":
        return given
    if sys.stdin.isatty() and given is None:
        raise InputError(f'text: it is missing; write `trivet {command} "some text"` or pipe the text in')
    return sys.stdin.read()
