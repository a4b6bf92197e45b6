"""Maintenance of a collection: ``trivet stats``, ``reembed``, ``rebuild`` and ``compact``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from rich.filesize import decimal

from trivet import serialize
from trivet.cli import options, output, tables
from trivet.cli.options import flag, option
from trivet.cli.output import plural
from trivet.cli.store import open_existing, scorer_or_default

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Compacted, Stats


def stats(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    bytes_: Annotated[
        bool, flag("--bytes", "What the bytes on disk are for, part by part; it reads the whole file.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show how much is in a collection, its model, its profile and its size on disk."""
    with open_existing(store, collection, scorer=scorer_or_default(scorer)) as engine:
        found, collections = engine.stats(), engine.collections()
        space = engine.space() if bytes_ else None
    if json:
        told = {} if space is None else {"space": space}
        output.print_json({**serialize.plain(found), "collections": collections, **told})
    elif space is None:
        output.show(tables.fields(_rows(found, collections).items()))
    else:
        _show_space(space, found.passages)


def _show_space(space: dict[str, int], passages: int) -> None:
    """Print the parts of the store; the last row is the sum."""
    total = sum(space.values())
    rows = [
        [part, f"{taken:,}", f"{taken / total:.1%}" if total else "–", f"{taken / passages:,.0f}" if passages else "–"]
        for part, taken in (*space.items(), ("all files", total))
    ]
    screen = output.stdout()
    screen.show(tables.table(("part", "bytes", "share", "bytes a passage"), rows, screen))


def _rows(found: Stats, collections: list[str]) -> dict[str, str]:
    pending = f", {found.pending:,} pending" if found.pending else ""
    return {
        "store": found.path,
        "collection": found.collection + (f"  (of {', '.join(collections)})" if len(collections) > 1 else ""),
        "documents": f"{found.documents:,}",
        "passages": f"{found.passages:,}  ({found.embedded:,} embedded{pending})",
        "links": f"{found.links:,}",
        "model": found.model or "none: search by words only",
        "scorer": found.scorer or "none",
        "language": found.language,
        **({"advice": found.advice} if found.advice else {}),
        "size": f"{decimal(found.bytes_store)} store, {decimal(found.bytes_index)} index",
        "fields": ", ".join(found.fields) or "–",
        "profile": found.profile,
    }


def reembed(
    embedder: Annotated[
        str | None,
        option(
            "--embedder",
            "SPEC",
            "The new model: builtin, multilingual, folder:PATH, http://HOST/v1#MODEL… Without it, embed the pending "
            "passages and finish the indexes.",
        ),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Embed all passages with another model. Searches use the old model until the last passage is done."""
    started = time.monotonic()
    with (
        open_existing(store, collection, model=embedder is None) as engine,
        output.progress("embedding", "passages") as report,
    ):
        before = engine.stats()
        if embedder is None:
            engine.wait(report)
            engine.prepare(progress=report)
            done = before.pending - engine.stats().pending
        else:
            done = engine.reembed(embedder, report)
        after = engine.stats()
    seconds = time.monotonic() - started
    value = {"embedded": done, "pending": after.pending, "model": after.model, "seconds": round(seconds, 3)}
    text = f"embedded {plural(done, 'passage')} in {seconds:.1f} s; the model is {after.model or 'none'}"
    output.result(value, text, json)


def rebuild(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Delete the indexes and build them again from the documents."""
    started = time.monotonic()
    with open_existing(store, collection) as engine, output.progress("indexing", "passages") as report:
        engine.rebuild(report)
        found = engine.stats()
    seconds = time.monotonic() - started
    value = {"passages": found.passages, "bytes_index": found.bytes_index, "seconds": round(seconds, 3)}
    text = f"indexed {plural(found.passages, 'passage')} in {seconds:.1f} s ({decimal(found.bytes_index)})"
    output.result(value, text, json)


def compact(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Erase deleted documents from the store's file, its log and the indexes, and free the disk space."""
    started = time.monotonic()
    with open_existing(store, collection) as engine:
        done = compact_with_progress(engine)
    seconds = time.monotonic() - started
    expired = f"; {plural(done.expired, 'expired document')} deleted" if done.expired else ""
    erased = f"{plural(done.pruned, 'deleted passage')} erased from the indexes{expired}"
    text = f"{decimal(done.bytes_before)} → {decimal(done.bytes_after)} in {seconds:.1f} s; {erased}"
    output.result({**serialize.plain(done), "seconds": round(seconds, 3)}, text, json)


def compact_with_progress(engine: Engine) -> Compacted:
    with output.progress("compacting", "passages") as report:
        return engine.compact(report)
