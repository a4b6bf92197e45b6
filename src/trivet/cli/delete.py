"""``trivet delete`` and ``trivet forget``: delete documents, by id or by filter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from trivet.cli import options, output
from trivet.cli.maintenance import compact_with_progress
from trivet.cli.options import argument, flag
from trivet.cli.output import plural
from trivet.cli.store import open_existing
from trivet.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from trivet.engine import Engine

Ids = Annotated[list[str] | None, argument("IDS", "The documents' ids.")]


def delete(
    ids: Ids = None,
    where: options.Where = None,
    yes: options.Yes = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Delete documents by id, or all that match a filter (asks first)."""
    if bool(ids) == bool(where):
        raise InputError("delete: give either ids or --where")
    with open_existing(store, collection) as engine:
        unique, missing = _unique(engine, ids)
        _confirm(engine, "delete", where, yes)
        count = engine.delete(where=where) if where else engine.delete(unique)
    output.result({"deleted": count, "missing": missing}, f"deleted {plural(count, 'document')}", json)
    _check_found(missing, collection)


def forget(
    ids: Ids = None,
    where: options.Where = None,
    expired: Annotated[bool, flag("--expired", "Delete the documents that have expired.")] = False,
    compact: Annotated[
        bool, flag("--compact", "Also erase them from the files now, as `trivet compact` does.")
    ] = False,
    yes: options.Yes = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Delete documents with their links, access log and feedback. `trivet compact` then erases them from the files."""
    if (bool(ids), bool(where), expired).count(True) != 1:
        raise InputError("forget: give either ids, --where or --expired")
    with open_existing(store, collection) as engine:
        unique, missing = _unique(engine, ids)
        _confirm(engine, "forget", where, yes)
        count = engine.sweep() if expired else engine.forget(unique or None, where=where or None).documents
        compacted = compact_with_progress(engine) if compact else None
    text = f"forgot {plural(count, 'document')}"
    if compacted is None:
        text += "; run `trivet compact` to erase what was deleted from the files"
    else:
        text += f" and erased everything deleted from the files (now {decimal(compacted.bytes_after)})"
    output.result({"forgotten": count, "missing": missing, "compacted": compacted}, text, json)
    _check_found(missing, collection)


def _unique(engine: Engine, ids: list[str] | None) -> tuple[list[str], list[str]]:
    """Return the ids without repetitions, and those of them that do not exist."""
    unique = list(dict.fromkeys(ids or ()))
    return unique, [id for id in unique if engine.get(id) is None]


def _confirm(engine: Engine, command: str, where: list[str] | None, yes: bool) -> None:
    """Ask before a filter deletes documents."""
    if yes or not where:
        return
    count = sum(1 for _ in engine.documents(where))
    if count and not sys.stdin.isatty():
        raise InputError(f"{command}: {plural(count, 'document')} would be deleted; add --yes to confirm")
    if count:
        typer.confirm(f"{command.capitalize()} {plural(count, 'document')}?", abort=True, err=True)


def _check_found(missing: list[str], collection: str) -> None:
    if missing:
        raise NotFoundError(f"id: document {', '.join(map(repr, missing))} not found in collection {collection!r}")
