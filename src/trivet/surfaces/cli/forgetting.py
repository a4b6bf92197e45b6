"""The commands that erase: ``forget`` and ``compact``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.errors import InputError, NotFoundError
from trivet.surfaces.cli import opening, options, screen
from trivet.surfaces.cli.care import size
from trivet.surfaces.cli.documents import told
from trivet.surfaces.cli.options import argument, flag

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Compacted


def forget(
    ids: Annotated[list[str] | None, argument("IDS…", "The documents' ids.")] = None,
    where: options.Where = None,
    expired: Annotated[bool, flag("--expired", "Forget the documents whose time has passed.")] = False,
    compact: Annotated[
        bool, flag("--compact", "Erase them from every file at once, as `trivet compact` does.")
    ] = False,
    yes: Annotated[bool, flag("--yes -y", "Do not ask before forgetting by filter.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Delete documents with their links, accesses and feedback. `trivet compact` then erases them from the files."""
    if (bool(ids), bool(where), expired).count(True) != 1:
        raise InputError("forget: give ids, --where or --expired, one of the three")
    with opening.existing(store, collection) as engine:
        wanted = list(dict.fromkeys(ids or ()))
        missing = [id for id in wanted if engine.get(id) is None]
        if where:
            _confirm(engine, where, yes)
        count = engine.sweep() if expired else engine.forget(wanted or None, where=where or None).documents
        done = _compacted(engine) if compact else None
    if json:
        from trivet.surfaces import wire

        screen.print_json({"forgotten": count, "missing": missing, "compacted": done and wire.plain(done)})
    elif done is None:
        print(f"forgot {told(count)}; `trivet compact` erases what is left in the files")
    else:
        print(f"forgot {told(count)}; nothing is left of that in the files ({size(done.bytes_after)} in all)")
    if missing:
        raise NotFoundError(f"id: there is no document {', '.join(map(repr, missing))} in collection {collection!r}")


def _confirm(engine: Engine, where: list[str], yes: bool) -> None:
    count = sum(1 for _ in engine.documents(where))
    if count and not yes:
        if not sys.stdin.isatty():
            raise InputError(f"forget: {told(count)} would go; add --yes to forget without being asked")
        typer.confirm(f"Forget {told(count)}?", abort=True, err=True)


def _compacted(engine: Engine) -> Compacted:
    with screen.progress("compacting", "passages") as report:
        return engine.compact(report)


def compact(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Erase what was deleted from the store's file, its log and the collection's indexes, and give the space back."""
    started = time.monotonic()
    with opening.existing(store, collection) as engine:
        done = _compacted(engine)
    took = time.monotonic() - started
    if json:
        from trivet.surfaces import wire

        screen.print_json({**wire.plain(done), "seconds": round(took, 3)})
        return
    gone = f", {told(done.expired)} had expired" if done.expired else ""
    print(
        f"{size(done.bytes_before)} → {size(done.bytes_after)} in {took:.1f} s; "
        f"{done.pruned:,} removed passages erased from the indexes{gone}"
    )
