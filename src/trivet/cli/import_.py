"""``trivet import``: read files, folders and exports into the store."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet import serialize
from trivet.cli import options, output
from trivet.cli.errors import Interrupted
from trivet.cli.options import argument, flag, option
from trivet.cli.output import message, plural
from trivet.cli.store import catch_up_command, open_or_create
from trivet.errors import EmbedderError, InputError
from trivet.files.generated import KINDS as GENERATED_KINDS

if TYPE_CHECKING:
    from trivet.chat.extraction import Extractor
    from trivet.engine import Engine
    from trivet.files.importer import Importer, Tally

PATHS_SHOWN = 3  # for each reason to skip a file; --json lists all
BROKEN_SHOWN = 20
OBSIDIAN = "obsidian"  # a folder of Markdown with wiki links, which an import of files reads as it is


def import_(
    paths: Annotated[
        list[str],
        argument("PATHS", "Files, folders, JSONL or a trivet export; `-` reads JSONL or text from a pipe."),
    ],
    source: Annotated[
        str,
        option(
            "--from",
            "PROGRAM",
            "Read what it keeps: chatgpt, claude, claude-code, codex, mem0, letta, graphiti, zep, chroma, lancedb, "
            "obsidian.",
        ),
    ] = "",
    prefix: Annotated[
        str, option("--prefix", "TEXT", "Put this before every file's id, to keep two folders apart.")
    ] = "",
    ignored: Annotated[bool, flag("--no-ignore", "Import files that .gitignore excludes, too.")] = False,
    generated: Annotated[
        bool, flag("--generated", "Import generated and minified code and lock files of a folder, too.")
    ] = False,
    redact: options.Redact = False,
    no_wait: Annotated[
        bool, flag("--no-wait", "Do not wait for the embedding: search by words works at once, by meaning later.")
    ] = False,
    workers: Annotated[
        str,
        option("--workers", "N", "Embed with N processes, or on a cluster: ray://HOST:PORT.", default=True),
    ] = "1",
    triples: Annotated[
        bool, flag("--triples", "Extract relations with the endpoint of TRIVET_TRIPLES_URL: docs/explanation/graph.md.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    json: options.Json = False,
) -> None:
    """Read files into the store, creating it if it does not exist. Run it again to import what has changed.

    The suffix tells the format: text, code, Markdown, PDF, Office, web pages, mail, tables: docs/how-to/import.md. The
    YAML front matter of Markdown becomes fields and metadata, a wiki link a link: docs/how-to/import-markdown.md.
    """

    for path in paths:
        if (path != "-" or source) and not Path(path).exists():
            raise InputError(f"import: there is no file or folder {path!r}; check the path")
    if source:
        _check_source(source, paths)
    extractor = _extractor() if triples else None
    with open_or_create(store, collection, embedder) as engine:
        try:
            with contextlib.closing(
                _read(engine, source, paths, store, prefix, not ignored, generated, redact, extractor)
            ) as importer:
                if not json:
                    _show(importer.tally, engine)
                failure = None if no_wait else _finish(engine, workers)
                importer.log()
        except KeyboardInterrupt:
            raise Interrupted("; what was written is kept, and the same command continues from there") from None
        found = engine.stats()
    tally, pending = importer.tally, found.pending
    if found.advice and not json:
        message(found.advice, "yellow")
    if json:
        error = {"error": str(failure)} if failure is not None else {}
        output.print_json({**serialize.plain(tally), "pending": pending, "advice": found.advice, **error})
    elif pending and (found.model or "").startswith("vectors/"):
        message(
            f"{plural(pending, 'passage')} without a vector, which words alone find; import them with one", "yellow"
        )
    elif pending and failure is None:
        command = catch_up_command(store, collection)
        message(f"{plural(pending, 'passage')} not embedded yet; `{command}` embeds them", "yellow")
    for item in tally.broken[:BROKEN_SHOWN]:
        message(f"trivet: {item.place}: {item.reason}", "red")
    if len(tally.broken) > BROKEN_SHOWN:
        message(f"trivet: {len(tally.broken) - BROKEN_SHOWN:,} more errors; --json lists all", "red")
    if failure is not None:
        raise failure
    if tally.broken:
        raise typer.Exit(2)


def _extractor() -> Extractor:
    from trivet.chat.extraction import Extractor

    return Extractor.configured()


def _check_source(source: str, paths: list[str]) -> None:
    from trivet.files.sources import SOURCES

    if source == OBSIDIAN:
        for path in paths:
            if not (Path(path) / ".obsidian").is_dir():
                raise InputError(f"import: {path!r} is not a vault of Obsidian: it has no folder .obsidian")
    elif source not in SOURCES:
        raise InputError(f"--from: {source!r} is unknown; known: {', '.join(SOURCES)}, {OBSIDIAN}")


def _read(
    engine: Engine,
    source: str,
    paths: list[str],
    store: str,
    prefix: str,
    ignore: bool,
    generated: bool,
    redact: bool,
    extractor: Extractor | None,
) -> Importer:
    from trivet.files.paths import import_paths, import_source

    more: Any = {"prefix": prefix, "redact": redact, "extractor": extractor}
    with output.progress("reading", "files") as report:
        if source and source != OBSIDIAN:
            importer = import_source(engine, source, paths, report, **more)
        else:
            importer = import_paths(
                engine, paths, report, store=Path(store), ignore=ignore, generated=generated, **more
            )
    for note in importer.degraded:
        message(note.reason, "yellow")
    if extractor is not None and extractor.failed:
        id, reason = next(iter(extractor.failed.items()))
        failed = plural(len(extractor.failed), "document")
        message(f"no relations could be extracted from {failed}; the first is {id!r}: {reason}", "yellow")
    return importer


def _finish(engine: Engine, workers: str) -> EmbedderError | None:
    """Embed, and finish the indexes, the graph too: a process that asks one query has no time for that."""
    failure = _embed(engine, workers)
    with output.progress("indexing", "passages") as report:
        engine.prepare(progress=report)
    return failure


def _embed(engine: Engine, workers: str) -> EmbedderError | None:
    """Wait for the embedding; return an error instead of raising it, so that the result is shown first."""
    try:
        pending = engine.stats().pending
        if pending and not sys.stderr.isatty():
            message(f"embedding {plural(pending, 'passage')} (safe to interrupt; --no-wait leaves it for later)")
        with output.progress("embedding", "passages") as report:
            engine.wait(report, workers=workers)
    except EmbedderError as error:
        return error
    return None


def _show(tally: Tally, engine: Engine) -> None:
    counts = {
        "added": tally.added,
        "updated": tally.updated,
        "unchanged": tally.unchanged,
        "skipped": len(tally.skipped),
    }
    optional = {"with a repeated id": tally.repeated, "feedback": tally.feedback, "broken": len(tally.broken)}
    counts |= {name: count for name, count in optional.items() if count}
    print(" · ".join(f"{count:,} {name}" for name, count in counts.items()) + f"  →  {engine.path} ({engine.name})")
    if tally.redacted:
        from trivet.memory.redaction import counted

        print(f"  redacted {counted(tally.redacted)}")
    skipped = tally.reasons()
    if made := {kind: len(skipped.pop(kind)) for kind in GENERATED_KINDS if kind in skipped}:
        counted_kinds = ", ".join(f"{count:,} {kind}" for kind, count in made.items())
        print(f"  skipped {sum(made.values()):,} that programs wrote (--generated imports them): {counted_kinds}")
    for verb, found in (("skipped", skipped), ("noted", tally.remarks())):
        for reason, paths in found.items():
            more = f" and {len(paths) - PATHS_SHOWN:,} more" if len(paths) > PATHS_SHOWN else ""
            print(output.clean(f"  {verb} {len(paths):,}: {reason}: {', '.join(paths[:PATHS_SHOWN])}{more}"))
