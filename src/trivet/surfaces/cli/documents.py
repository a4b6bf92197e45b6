"""How is one document put in, read, taken out and connected? (``add``, ``get``, ``delete``, ``link``)"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.errors import InputError, NotFoundError
from trivet.surfaces.cli import flags, opening, options, screen
from trivet.surfaces.cli.options import argument, flag, option

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Added, Document, Link


def add(
    text: Annotated[str | None, argument("TEXT", "What to remember; `-` or nothing reads it from a pipe.")] = None,
    id: Annotated[str | None, option("--id", "ID", "Its name; an existing one is replaced. Else made up.")] = None,
    title: Annotated[str | None, option("--title", "TEXT", "A short name for people.")] = None,
    kind: Annotated[str | None, option("--kind", "NAME", "note (the default), episode, decision…")] = None,
    meta: Annotated[
        list[str] | None,
        option("--meta -m", "KEY=VALUE", "A field to filter by. Repeat for more; a key again makes a list."),
    ] = None,
    importance: Annotated[float | None, option("--importance", "0–1", "How much it matters; 0.5 if not said.")] = None,
    created: Annotated[str | None, option("--created", "TIME", "ISO 8601: 2026-03-01T09:30Z. Now if not said.")] = None,
    expires: Annotated[
        str | None, option("--expires", "TIME", "ISO 8601: from then on nobody sees it, and it is forgotten.")
    ] = None,
    link: Annotated[
        list[str] | None, option("--link", "ID:TYPE", "Connect it, as see-also if no type is said.")
    ] = None,
    markdown: Annotated[
        bool, flag("--markdown", "Read the text's YAML front matter as fields, which flags go before.")
    ] = False,
    redact: Annotated[bool, flag("--redact", "Take secrets of known shapes out first, and say how many.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    json: options.Json = False,
) -> None:
    """Remember one document. Makes the store if it is new."""
    said, fields = _text(text), flags.meta(meta or ())
    given: dict[str, Any] = {"id": id, "title": title, "kind": kind, "importance": importance, "created": created}
    given["expires"] = expires
    given["links"] = [flags.link(item) for item in link] if link else None
    with opening.made(store, collection, embedder) as engine:
        document: dict[str, Any] = _document(engine, said) if markdown else {"text": said, "meta": {}}
        document |= {name: value for name, value in given.items() if value is not None}
        document["meta"] = {**document["meta"], **fields}
        added = engine.add(document, redact=redact)
    if json:
        told = {"id": added.ids[0], "result": _became(added), "pending": added.pending}
        screen.print_json({**told, "redacted": dict(added.redacted)} if redact else told)
    else:
        print(f"{_became(added)} {screen.clean(added.ids[0])}")
        if added.redacted:
            from trivet.memory.redaction import counted

            print(f"taken out: {counted(added.redacted)}")
    for item in added.degraded:
        screen.say(f"degraded: {item.part}: {item.reason}", "yellow")


def _document(engine: Engine, text: str) -> dict[str, Any]:
    """A Markdown text, whose ``[[links]]`` name documents of the store."""
    from trivet.surfaces import markdown

    try:
        return markdown.document(text, markdown.known_to(engine))
    except markdown.FrontMatterError as error:
        raise InputError(f"text line {error.line}: {error}") from None


def _text(given: str | None) -> str:
    if given is not None and given != "-":
        return given
    if sys.stdin.isatty() and given is None:
        raise InputError('text: there is none; write `trivet add "what to remember"` or pipe it in')
    return sys.stdin.read()


def _became(added: Added) -> str:
    return next((name for name in ("added", "updated") if getattr(added, name)), "unchanged")


def get(
    id: Annotated[str, argument("ID", "The document's id.")],
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Show one document with its fields and links."""
    with opening.existing(store, collection) as engine:
        document = _found(engine, id)
        links = engine.links(id)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.document(document, links))
        return
    place = screen.stdout()
    place.show(_fields(document, links))
    # in a pipe the text is given back as it was stored
    sys.stdout.write(f"\n{screen.clean(document.text) if place.terminal else document.text}\n")


def _found(engine: Engine, id: str) -> Document:
    document = engine.get(id)
    if document is None:
        raise NotFoundError(f"id: there is no document {id!r} in collection {engine.name!r} of {engine.path!r}")
    return document


def _fields(document: Document, links: list[Link]) -> Any:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    times = {name: getattr(document, name) for name in ("created", "updated", "valid_from", "valid_to", "expires")}
    rows = [
        ("id", document.id),
        ("title", document.title),
        ("kind", document.kind),
        ("importance", f"{document.importance:g}"),
        *((name, moment.isoformat(timespec="seconds") if moment else "") for name, moment in times.items()),
        *((name, _value(said)) for name, said in document.meta.items()),
        *((f"{link.type} →", link.target) for link in links if link.source == document.id),
        *((f"← {link.type}", link.source) for link in links if link.target == document.id),
    ]
    for name, said in rows:
        if said:
            grid.add_row(Text(screen.clean(name)), Text(screen.clean(said), style="bold" if name == "title" else ""))
    return grid


def _value(said: Any) -> str:
    import json as jsons

    return said if isinstance(said, str) else jsons.dumps(said, ensure_ascii=False)


def delete(
    ids: Annotated[list[str] | None, argument("IDS…", "The documents' ids.")] = None,
    where: options.Where = None,
    yes: Annotated[bool, flag("--yes -y", "Do not ask before deleting by filter.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Delete documents by id, or all that a filter matches (asks first)."""
    if bool(ids) == bool(where):
        raise InputError("delete: give ids or --where, one of the two")
    with opening.existing(store, collection) as engine:
        if where:
            count, missing = _delete_matching(engine, where, yes), list[str]()
        else:
            wanted = list(dict.fromkeys(ids or ()))
            missing = [id for id in wanted if engine.get(id) is None]
            count = engine.delete(wanted)
    if json:
        screen.print_json({"deleted": count, "missing": missing})
    else:
        print(f"deleted {told(count)}")
    if missing:
        raise NotFoundError(f"id: there is no document {', '.join(map(repr, missing))} in collection {collection!r}")


def told(count: int) -> str:
    return f"{count:,} document" if count == 1 else f"{count:,} documents"


def _delete_matching(engine: Engine, where: list[str], yes: bool) -> int:
    count = sum(1 for _ in engine.documents(where))
    if count and not yes:
        if not sys.stdin.isatty():
            raise InputError(f"delete: {told(count)} would go; add --yes to delete without being asked")
        typer.confirm(f"Delete {told(count)}?", abort=True, err=True)
    return engine.delete(where=where)


def link(
    source: Annotated[str | None, argument("SOURCE", "From this document…")] = None,
    target: Annotated[str | None, argument("TARGET", "…to this one.")] = None,
    type: Annotated[
        str, option("--type -t", "NAME", "supersedes, resolved-by, part-of, see-also…", default=True)
    ] = "see-also",
    weight: Annotated[float, option("--weight", "N", "How strong, from 0 up.", default=True)] = 1.0,
    list_: Annotated[str | None, option("--list -l", "ID", "Show the links from and to a document instead.")] = None,
    remove: Annotated[bool, flag("--remove", "Take the link away instead.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Connect two documents, or list the links of one."""
    if list_ is None and (source is None or target is None):
        raise InputError("link: name the source and the target, or list the links of one document with --list ID")
    if list_ is not None and source is not None:
        raise InputError("link: --list stands alone; leave out the source and the target")
    with opening.existing(store, collection) as engine:
        if list_ is not None:
            _found(engine, list_)
            links = engine.links(list_)
        elif remove:
            if not engine.unlink(str(source), str(target), type):
                raise NotFoundError(f"link: there is no {type!r} link from {source!r} to {target!r}")
            links = []
        else:
            links = [engine.link(str(source), str(target), type, weight)]
    _show_links(links, json, one=list_ is None)


def _show_links(links: list[Link], json: bool, one: bool) -> None:
    if json:
        from trivet.surfaces import wire

        found = wire.plain(links)
        screen.print_json((found[0] if found else {"removed": 1}) if one else found)
        return
    for item in links:
        print(
            screen.clean(f"{item.source} —{item.type}→ {item.target}")
            + (f"  {item.weight:g}" if item.weight != 1 else "")
        )
    if not links:
        print("removed" if one else "no links")
