"""How do files, folders and exports get in? (``trivet import``)"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.errors import EmbedderError, InputError
from trivet.surfaces.cli import opening, options, screen
from trivet.surfaces.cli.failures import Interrupted
from trivet.surfaces.cli.options import argument, flag, option

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.graph.extraction import Extractor
    from trivet.surfaces.cli import files
    from trivet.surfaces.cli.intake import Intake, Tally

NAMED = 3  # paths named per reason; --json has all of them
BROKEN_SHOWN = 20
SETTLED = 2.0  # seconds: a second change within them may leave a file's times as they are (those of FAT, for one)


def import_(
    paths: Annotated[
        list[str],
        argument("PATHS…", "Files, folders, JSONL or a trivet export; `-` reads JSONL or text from a pipe."),
    ],
    prefix: Annotated[str, option("--prefix", "TEXT", "Put before every file's id, to keep two folders apart.")] = "",
    ignored: Annotated[bool, flag("--no-ignore", "Take files that .gitignore leaves out, too.")] = False,
    redact: Annotated[
        bool, flag("--redact", "Take secrets of known shapes out before anything is stored, and say how many.")
    ] = False,
    no_wait: Annotated[
        bool, flag("--no-wait", "Do not wait for the embedding: words answer at once, meaning follows.")
    ] = False,
    workers: Annotated[
        str,
        option(
            "--workers",
            "N",
            "Embed with N processes, each with the model, or on a cluster: ray://HOST:PORT.",
            default=True,
        ),
    ] = "1",
    triples: Annotated[
        bool, flag("--triples", "Ask the endpoint of TRIVET_TRIPLES_URL what each document states: docs/GRAPH.md.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    json: options.Json = False,
) -> None:
    """Read files into the store. Makes it if it is new; run it again to take in what has changed.

    YAML front matter of Markdown files becomes fields and metadata, a wiki link a link: docs/MARKDOWN.md.
    """
    for path in paths:
        if path != "-" and not Path(path).exists():
            raise InputError(f"import: there is no file or folder {path!r}")
    with opening.made(store, collection, embedder) as engine:
        try:
            with contextlib.closing(_take_in(engine, paths, store, prefix, not ignored, redact, triples)) as intake:
                tally = intake.tally
                if not json:
                    _show(tally, engine)
                trouble = None if no_wait else _embed(engine, workers)
                intake.keep()
        except KeyboardInterrupt:
            raise Interrupted("; what was written is kept, the same command goes on from there") from None
        stats = engine.stats()
    if json:
        screen.print_json(_as_json(tally, stats.pending, trouble))
    elif stats.pending and trouble is None:
        screen.say(f"{stats.pending:,} passages wait to be embedded: `trivet reembed -s {store}` does it", "yellow")
    for item in tally.broken[:BROKEN_SHOWN]:
        screen.say(f"trivet: {item.place}: {item.reason}", "red")
    if len(tally.broken) > BROKEN_SHOWN:
        screen.say(f"trivet: and {len(tally.broken) - BROKEN_SHOWN:,} more broken lines (--json lists all)", "red")
    if trouble is not None:
        raise trouble
    if tally.broken:
        raise typer.Exit(2)


def _extractor() -> Extractor:
    from trivet.graph.extraction import Extractor

    return Extractor.configured()


def _take_in(
    engine: Engine, paths: list[str], store: Path, prefix: str, ignore: bool, redact: bool, triples: bool
) -> Intake:
    from trivet.surfaces.cli.files import Skipped
    from trivet.surfaces.cli.intake import Intake
    from trivet.surfaces.cli.lines import Broken
    from trivet.surfaces.cli.names import Names

    listed = list(_files(paths, store, ignore))
    key = "" if triples else _key(paths, listed, prefix, redact)
    reached, found = 0, listed
    with screen.progress("reading", "files") as report:

        def done(count: int) -> None:
            nonlocal reached
            reached += count
            report(reached, max(reached, len(found)))

        extractor = _extractor() if triples else None
        names = Names()
        intake = Intake(engine, done, names, redact, extractor)
        if key and intake.is_known(key):
            return intake
        try:
            names.learn(listed, prefix)
            for item in names.files:
                if isinstance(item, Skipped):
                    intake.tally.skipped.append(item)
                    done(1)
                else:
                    intake.take_file(item)
            for path in paths:
                _take_in_lines(intake, path)
            for note in intake.finish():
                screen.say(note.reason, "yellow")
        except BaseException:
            intake.close()
            raise
    if extractor is not None and extractor.failed:
        first = next(iter(extractor.failed.items()))
        screen.say(f"{len(extractor.failed):,} documents have no triples, as {first[0]!r}: {first[1]}", "yellow")
    intake.tally.broken.sort(key=Broken.position)
    return intake


def _key(paths: list[str], listed: list[files.File | files.Skipped], prefix: str, redact: bool) -> str:
    """What decides what this import would do; nothing where that cannot be told without reading: a pipe, a file that
    was changed this very moment. Lines are told by their content, other files by what the file system says of them."""
    from trivet import receipts
    from trivet.surfaces.cli.files import JSONL, Skipped

    parts: list[object] = [prefix, redact]
    latest = time.time() - SETTLED
    try:
        for item in listed:
            if isinstance(item, Skipped):
                parts.append((item.path, item.reason))
                continue
            stat = os.stat(item.place)  # noqa: PTH116  a Path of each costs more than to ask for it
            if max(stat.st_mtime, stat.st_ctime) > latest:
                return ""
            parts.append((item.place, item.id, *receipts.stamp(stat)))
        for path in paths:
            if path == "-":
                return ""
            if Path(path).suffix.lower() in JSONL and Path(path).is_file():
                parts.append(receipts.content(Path(path)))
    except OSError:  # told when it is taken in
        return ""
    return receipts.key(parts)


def _files(paths: list[str], store: Path, ignore: bool) -> Iterator[files.File | files.Skipped]:
    from trivet.surfaces.cli.files import JSONL, File, below

    for path in map(Path, (path for path in paths if path != "-")):
        if path.is_dir():
            yield from below(path, ignore=ignore, own=store)
        elif path.suffix.lower() not in JSONL:
            yield File(str(path.resolve()), path.name, path.name)


def _take_in_lines(intake: Intake, path: str) -> None:
    from trivet.surfaces.cli.files import JSONL
    from trivet.surfaces.cli.lines import parsed

    if path == "-":
        _take_in_pipe(intake)
    elif Path(path).suffix.lower() in JSONL and Path(path).is_file():
        try:
            with Path(path).open("rb") as source:
                intake.take_lines(parsed(source, path))
        except OSError as error:
            raise InputError(f"import: cannot read {path!r}: {error.strerror or error}") from error


def _take_in_pipe(intake: Intake) -> None:
    from trivet.surfaces.cli.files import decoded
    from trivet.surfaces.cli.lines import looks_like_jsonl, parsed

    source = sys.stdin.buffer
    first = next((line for line in source if line.strip()), b"")
    if looks_like_jsonl(first):
        intake.take_lines(parsed(_chained(first, source), "stdin"))
        return
    text = decoded(first + source.read())
    if text is None:
        raise InputError("import: what came through the pipe is neither JSONL nor text")
    # the same text again is the same document
    intake.take_text(
        {"id": f"stdin-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}", "text": text, "kind": "text"}
    )


def _chained(first: bytes, rest: Any) -> Iterator[bytes]:
    yield first
    yield from rest


def _embed(engine: Engine, workers: str = "1") -> EmbedderError | None:
    """Wait for the meaning; what went wrong is told after what went in."""
    try:
        waiting = engine.stats().pending
        if waiting and not sys.stderr.isatty():
            screen.say(f"embedding {waiting:,} passages (interrupting is safe; --no-wait leaves them for later)")
        with screen.progress("embedding", "passages") as report:
            engine.wait(report, workers=workers)
    except EmbedderError as error:
        return error
    return None


def _show(tally: Tally, engine: Engine) -> None:
    told = {"added": tally.added, "updated": tally.updated, "unchanged": tally.unchanged, "skipped": len(tally.skipped)}
    if tally.repeated:
        told["given twice"] = tally.repeated
    if tally.feedback:
        told["feedback"] = tally.feedback
    if tally.broken:
        told["broken"] = len(tally.broken)
    print(" · ".join(f"{count:,} {name}" for name, count in told.items()) + f"  →  {engine.path} ({engine.name})")
    if tally.redacted:
        from trivet.memory.redaction import counted

        print(f"  taken out: {counted(tally.redacted)}")
    for reason, paths in tally.reasons().items():
        more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
        print(screen.clean(f"  skipped {len(paths):,}: {reason}: {', '.join(paths[:NAMED])}{more}"))


def _as_json(tally: Tally, pending: int, trouble: EmbedderError | None) -> dict[str, Any]:
    from trivet.surfaces import wire

    found: dict[str, Any] = {**wire.plain(tally), "pending": pending}
    return {**found, "error": str(trouble)} if trouble is not None else found
