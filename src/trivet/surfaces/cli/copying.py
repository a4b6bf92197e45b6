"""How is a store moved to another? (``trivet copy``)"""

from __future__ import annotations

from typing import Annotated

from trivet.surfaces.cli import options, screen
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
