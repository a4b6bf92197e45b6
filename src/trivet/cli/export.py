"""``trivet export``: write a collection as JSONL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from trivet.cli import options, output
from trivet.cli.options import argument, flag
from trivet.cli.store import open_existing


def export(
    target: Annotated[str, argument("FILE", "The JSONL file to write; `-` writes to stdout.")],
    vectors: Annotated[
        bool, flag("--vectors", "Include the vectors, so that an import with the same model embeds nothing.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Write a collection as JSONL: its settings, one document per line, its feedback. `trivet import` reads it."""
    with open_existing(store, collection) as engine:
        if target == "-":
            for line in engine.lines(vectors):
                sys.stdout.write(f"{line}\n")
            return
        with output.progress("writing", "documents") as report:
            count = engine.export(Path(target), vectors, report)
    output.result({"documents": count, "file": target}, f"wrote {output.plural(count, 'document')} to {target}", json)
