"""Importing the files, folders and pipes that a user names."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.engine import transfer
from trivet.errors import InputError, TrivetError
from trivet.files import encoding, jsonl, reader
from trivet.files.formats import UnreadableError
from trivet.files.importer import Importer
from trivet.files.names import Names
from trivet.files.sources import SOURCES

if TYPE_CHECKING:
    from trivet.chat.extraction import Extractor
    from trivet.engine import Engine

PIPE = "-"
#: Seconds after a change in which a second change may leave the file's times as they are (the resolution of FAT).
RECENT = 2.0


def import_paths(
    engine: Engine,
    paths: Sequence[str],
    progress: Callable[[int, int], None],
    *,
    store: Path,
    prefix: str = "",
    ignore: bool = True,
    generated: bool = False,
    redact: bool = False,
    extractor: Extractor | None = None,
) -> Importer:
    """Import files, folders and JSONL; ``-`` reads stdin.

    Return the importer with its tally; the caller calls its ``log`` after embedding, and its ``close``. ``progress``
    gets (done, total). ``store`` is left out where it lies in an imported folder; ``ignore`` respects .gitignore;
    ``generated`` includes generated files of a folder.
    """
    files = list(_list_files(paths, store, ignore, generated))
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, max(done, len(files)))

    names = Names()
    importer = Importer(engine, advance, names, redact, extractor)
    try:
        key = "" if extractor else _log_key(paths, files, prefix, redact, generated)
        if key and importer.is_logged(key):
            return importer
        names.add(files, prefix)
        for file in names.files:
            if isinstance(file, reader.Skipped):
                importer.skip(file)
            else:
                importer.add_file(file)
        for path in paths:
            if path == PIPE:
                _import_stdin(importer)
            elif _is_jsonl(path):
                _import_jsonl(importer, path)
        importer.finish()
    except BaseException:
        importer.close()
        raise
    importer.tally.broken.sort(key=jsonl.Broken.position)
    return importer


def import_source(
    engine: Engine,
    source: str,
    paths: Sequence[str],
    progress: Callable[[int, int], None],
    *,
    prefix: str = "",
    redact: bool = False,
    extractor: Extractor | None = None,
) -> Importer:
    """Import what another program keeps; ``prefix`` goes before every id. The rest is as in ``import_paths``."""
    read = SOURCES[source]
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, done)

    importer = Importer(engine, advance, redact=redact, extractor=extractor)
    try:
        for path in paths:
            importer.add_documents(read(Path(path)), prefix, path)
        importer.finish()
    except BaseException as error:
        importer.close()
        if isinstance(error, OSError) and not isinstance(error, TrivetError):
            raise InputError(f"import: cannot read {error.filename!r}: {error.strerror or error}") from error
        raise
    return importer


def _list_files(
    paths: Sequence[str], store: Path, ignore: bool, generated: bool
) -> Iterator[reader.File | reader.Skipped]:
    for path in paths:
        if path == PIPE:
            continue
        if Path(path).is_dir():
            yield from reader.list_folder(Path(path), ignore=ignore, store=store, whatever=generated)
        elif not path.lower().endswith(reader.JSONL):
            yield reader.File(str(Path(path).resolve()), Path(path).name, Path(path).name, named=True)


def _is_jsonl(path: str) -> bool:
    return path.lower().endswith(reader.JSONL) and Path(path).is_file()


def _log_key(
    paths: Sequence[str], files: Sequence[reader.File | reader.Skipped], prefix: str, redact: bool, generated: bool
) -> str:
    """Return a key of everything that decides what this import does, for the import log.

    Lines are identified by their content, other files by their size and times. The key is empty where only reading
    could tell: for a pipe, and for a file that was changed a moment ago.
    """
    parts: list[object] = [prefix, redact, generated]
    latest = time.time() - RECENT
    try:
        for item in files:
            if isinstance(item, reader.Skipped):
                parts.append((item.path, item.reason))
                continue
            stat = os.stat(item.place)  # noqa: PTH116  building a Path takes longer than the call
            if max(stat.st_mtime, stat.st_ctime) > latest:
                return ""
            parts.append((item.place, item.id, *transfer.stamp(stat)))
        if PIPE in paths:
            return ""
        parts += [transfer.content(Path(path)) for path in paths if _is_jsonl(path)]
    except OSError:  # reported when the file is imported
        return ""
    return transfer.fingerprint(parts)


def _import_jsonl(importer: Importer, path: str) -> None:
    try:
        with Path(path).open("rb") as source:
            importer.add_lines(jsonl.parse_lines(source, path))
    except OSError as error:
        raise InputError(f"import: cannot read {path!r}: {error.strerror or error}") from error


def _import_stdin(importer: Importer) -> None:
    source = sys.stdin.buffer
    first = next((line for line in source if line.strip()), b"")
    if jsonl.looks_like_jsonl(first):
        importer.add_lines(jsonl.parse_lines(chain((first,), source), "stdin"))
        return
    try:
        decoded = encoding.decode(first + source.read())
    except UnreadableError as error:
        raise InputError(f"import: stdin is neither JSONL nor a text: {error}") from error
    # an id made of the content: the same text again is the same document
    digest = hashlib.blake2b(decoded.text.encode(), digest_size=6).hexdigest()
    importer.tally.notes += [reader.Skipped("stdin", note) for note in decoded.notes]
    importer.add_text({"id": f"stdin-{digest}", "text": decoded.text, "kind": "text"})
