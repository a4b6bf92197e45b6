"""``trivet copy``, ``trivet backup`` and ``trivet restore``: copy whole stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.filesize import decimal

from trivet.cli import options, output
from trivet.cli.options import argument, option
from trivet.cli.output import plural
from trivet.cli.store import check_exists, open_existing
from trivet.errors import NotFoundError

if TYPE_CHECKING:
    from trivet.engine.copy import Copied


def copy(
    source: Annotated[str, argument("SOURCE", "The store to copy from: a file, postgresql://… or qdrant://…")],
    target: Annotated[str, argument("TARGET", "The store to copy into; created if it does not exist.")],
    only: Annotated[list[str] | None, option("--only", "NAME", "Copy only this collection. Repeat for more.")] = None,
    json: options.Json = False,
) -> None:
    """Copy collections to another store: documents, vectors, links, feedback, settings. Nothing is embedded again.

    If it is interrupted, run it again: it continues where it stopped. At the end both stores are read and compared.
    """
    from trivet.engine.copy import copy as copy_store

    with output.steps("copying", "documents") as report:
        found = copy_store(source, target, only or (), report)
    output.result(found, "\n".join(map(_line, found)), json)


def _line(item: Copied) -> str:
    counts = (plural(item.documents, "document"), plural(item.vectors, "vector"), plural(item.links, "link"))
    pending = f"; {plural(item.pending, 'passage')} not embedded yet" if item.pending else ""
    same = f"both stores hold the same ({item.hash})"
    return f"{item.collection}: {', '.join(counts)}, {item.written:,} written; {same}{pending}"


def backup(
    source: Annotated[Path, argument("SOURCE", "The store's file.")],
    target: Annotated[Path, argument("TARGET", "The file to write; it must not exist.")],
    json: options.Json = False,
) -> None:
    """Copy a whole store to one file while it is in use, and check every row of the copy.

    Other processes may go on writing; the copy is the store as it was when the command started.
    `trivet restore` puts it back.
    """
    from trivet.engine import collections_in, is_store, on_server

    if not is_store(source) and not on_server(source):  # check_exists would advise --store, which is no option here
        raise NotFoundError(
            f"store: there is none at {str(source)!r}; SOURCE is a store's file, as in "
            "`trivet backup memory.db monday.db`"
        )
    names = collections_in(source)
    if not names:
        check_exists(str(source), options.DEFAULT_COLLECTION)
        return
    with open_existing(str(source), names[0]) as engine, output.progress("copying", "pages") as report:
        saved = engine.backup(target, report)
    collections = ", ".join(saved.collections)
    output.result(saved, f"wrote {decimal(saved.bytes)} to {saved.path} ({collections}); every row was checked", json)


def restore(
    backup: Annotated[Path, argument("BACKUP", "The file that `trivet backup` wrote.")],
    store: Annotated[Path, argument("STORE", "The store's file; an existing store is replaced.")],
    json: options.Json = False,
) -> None:
    """Replace a store by a backup. The backup is checked first; the indexes are built again.

    Refused while another process has the store open, because what it writes afterwards would be lost.
    """
    from trivet.engine import restore as restore_store

    with output.progress("copying", "pages") as report:
        found = restore_store(backup, store, report)
    action, names = "replaced" if found.replaced else "created", ", ".join(found.collections)
    size = f"{plural(found.documents, 'document')} ({names}), {decimal(found.bytes)}"
    output.result(found, f"{action} {found.path}: {size}; every row was checked", json)
