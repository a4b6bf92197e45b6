"""Move a store to another and keep it safe (``trivet copy``, ``trivet backup``, ``trivet restore``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from trivet.errors import NotFoundError
from trivet.surfaces.cli import opening, options, screen
from trivet.surfaces.cli.care import size
from trivet.surfaces.cli.documents import told as counted
from trivet.surfaces.cli.options import argument, option


def copy(
    source: Annotated[str, argument("SOURCE", "The store to copy from: a file, postgresql://… or qdrant://…")],
    target: Annotated[str, argument("TARGET", "The store to copy into, made if it is new.")],
    only: Annotated[list[str] | None, option("--only", "NAME", "Just this collection. Repeat for several.")] = None,
    json: options.Json = False,
) -> None:
    """Copy collections to another store: documents, vectors, links, feedback, settings. Nothing is embedded again.

    Broken off, it goes on where it was when it is started again; at the end both sides are read and compared.
    """
    from trivet.copying import copy as copied

    with screen.steps("copying", "documents") as report:
        found = copied(source, target, only or (), report)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(found))
        return
    for item in found:
        counts = f"{item.documents:,} documents, {item.vectors:,} vectors, {item.links:,} links"
        wait = f"; {item.pending:,} passages wait to be embedded" if item.pending else ""
        print(
            screen.clean(f"{item.collection}: {counts}, {item.written:,} written; both sides agree ({item.hash}){wait}")
        )


def backup(
    source: Annotated[Path, argument("SOURCE", "The store's file.")],
    target: Annotated[Path, argument("TARGET", "The file to write; it must not exist.")],
    json: options.Json = False,
) -> None:
    """Copy a whole store to one file while it is used, and check the copy row by row.

    Writers go on; the copy is the store as it was when the command began. `trivet restore` puts it back.
    """
    from trivet.engine import collections_in, is_store, on_server

    if not is_store(source) and not on_server(source):  # not `opening`'s advice: there is no --store here
        raise NotFoundError(
            f"store: there is none at {str(source)!r}; SOURCE is the file of a store, as in "
            "`trivet backup memory.db monday.db`"
        )
    for name in collections_in(source)[:1]:
        with opening.existing(source, name) as engine, screen.progress("copying", "pages") as report:
            saved = engine.backup(target, report)
        break
    else:
        opening.check(source, options.DEFAULT_COLLECTION)  # tells what is missing
        return
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(saved))
    else:
        names = ", ".join(saved.collections)
        print(screen.clean(f"wrote {size(saved.bytes)} to {saved.path} ({names}); every row was checked"))


def restore(
    backup: Annotated[Path, argument("BACKUP", "The file that `trivet backup` wrote.")],
    store: Annotated[Path, argument("STORE", "The store's file; one that exists is replaced as a whole.")],
    json: options.Json = False,
) -> None:
    """Put a backup in the place of a store. It is checked first; the indexes are made anew.

    Refused while any process has the store open: what it wrote afterwards would be lost.
    """
    from trivet.engine import restore as restored

    with screen.progress("copying", "pages") as report:
        found = restored(backup, store, report)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(found))
    else:
        names = ", ".join(found.collections)
        what = "replaced" if found.replaced else "made"
        told = f"{what} {found.path}: {counted(found.documents)} ({names}), {size(found.bytes)}"
        print(screen.clean(f"{told}; every row was checked"))
