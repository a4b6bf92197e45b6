"""How much is there, and how is it moved, re-embedded and rebuilt? (``stats``, ``reembed``, ``rebuild``, ``export``)"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trivet.surfaces.cli import opening, options, screen
from trivet.surfaces.cli.documents import told
from trivet.surfaces.cli.options import argument, flag, option

if TYPE_CHECKING:
    from trivet.types import Stats


def stats(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    json: options.Json = False,
) -> None:
    """How much is in the collection, which model and profile answer, how large it is."""
    with opening.existing(store, collection, scorer=opening.scorer_of(scorer)) as engine:
        found, collections = engine.stats(), engine.collections()
    if json:
        from trivet.surfaces import wire

        screen.print_json({**wire.plain(found), "collections": collections})
        return
    place = screen.stdout()
    place.show(_stats(found, collections))


def _stats(found: Stats, collections: list[str]) -> Any:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    waiting = f", {found.pending:,} wait" if found.pending else ""
    rows = {
        "store": found.path,
        "collection": found.collection + (f"  (of {', '.join(collections)})" if len(collections) > 1 else ""),
        "documents": f"{found.documents:,}",
        "passages": f"{found.passages:,}  ({found.embedded:,} embedded{waiting})",
        "links": f"{found.links:,}",
        "model": found.model or "none: found by words alone",
        "scorer": found.scorer or "none",
        "language": found.language,
        "size": f"{size(found.bytes_store)} store, {size(found.bytes_index)} index",
        "fields": ", ".join(found.fields) or "–",
        "profile": found.profile,
    }
    for name, said in rows.items():
        grid.add_row(name, Text(screen.clean(said)))
    return grid


def size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def reembed(
    embedder: Annotated[
        str | None,
        option(
            "--embedder",
            "SPEC",
            "The new model: builtin, folder:PATH, http://HOST/v1#MODEL… Without one, finish what is left to do.",
        ),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Embed everything with another model; the old one answers until the last passage is done."""
    started = time.monotonic()
    with (
        opening.existing(store, collection, model=embedder is None) as engine,
        screen.progress("embedding", "passages") as report,
    ):
        before = engine.stats()
        if embedder is None:
            engine.wait(report)
            done = before.pending - engine.stats().pending
        else:
            done = engine.reembed(embedder, report)
        after = engine.stats()
    took = time.monotonic() - started
    if json:
        screen.print_json({"embedded": done, "pending": after.pending, "model": after.model, "seconds": round(took, 3)})
    else:
        print(f"embedded {done:,} passages in {took:.1f} s; {after.model or 'no model'} answers")


def rebuild(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Throw the indexes away and build them again from the documents."""
    started = time.monotonic()
    with opening.existing(store, collection) as engine, screen.progress("indexing", "passages") as report:
        engine.rebuild(report)
        found = engine.stats()
    took = time.monotonic() - started
    if json:
        screen.print_json({"passages": found.passages, "bytes_index": found.bytes_index, "seconds": round(took, 3)})
    else:
        print(f"indexed {found.passages:,} passages in {took:.1f} s ({size(found.bytes_index)})")


def export(
    target: Annotated[str, argument("FILE", "The JSONL file to write; `-` streams to stdout.")],
    vectors: Annotated[bool, flag("--vectors", "With the vectors: the same model need not embed again.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Write the collection as JSONL: its settings, a document a line, then the feedback. `trivet import` reads it."""
    with opening.existing(store, collection) as engine:
        if target == "-":
            for line in engine.lines(vectors):
                sys.stdout.write(f"{line}\n")
            return
        with screen.progress("writing", "documents") as report:
            count = engine.export(Path(target), vectors, report)
    if json:
        screen.print_json({"documents": count, "file": target})
    else:
        print(f"wrote {told(count)} to {target}")
