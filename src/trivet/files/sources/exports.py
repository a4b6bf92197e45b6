"""The JSON of an export: a file, a folder or the ZIP file that was sent, and one line at a time of a transcript."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from trivet.errors import InputError
from trivet.files.formats import UnreadableError
from trivet.files.jsonl import Broken
from trivet.files.zipped import open_zip
from trivet.text.conversation import SESSION

KIND = "message"

Item = dict[str, Any] | Broken
#: What makes documents of an object of an export; the text is its place, for what is broken in it.
Convert = Callable[[dict[str, Any], str], Iterable[Item]]


def load(path: Path, *patterns: str) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each JSON file of an export whose name matches one of ``patterns``."""
    found = False
    for name, content in _files(path, patterns):
        found = True
        yield name, parsed(content, name)
    if not found:
        wanted = " or ".join(patterns)
        raise InputError(f"import: {str(path)!r} has no {wanted}; name the export, its folder or its ZIP file")


def parsed(content: bytes | str, name: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"import: {name}: not JSON ({error})") from None


def _files(path: Path, patterns: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        found = {file for pattern in patterns for file in path.rglob(pattern) if file.is_file()}
        yield from ((str(file), file.read_bytes()) for file in sorted(found))
    elif path.suffix.lower() == ".zip":
        try:
            with open_zip(path.read_bytes()) as container:
                for name in sorted(container.namelist()):
                    if any(PurePath(name).match(pattern) for pattern in patterns):
                        yield f"{path}/{name}", container.read(name)
        except UnreadableError as error:
            raise InputError(f"import: {str(path)!r}: {error}") from None
    else:
        yield str(path), path.read_bytes()


def entries(found: Any, name: str, convert: Convert) -> Iterator[Item]:
    """Yield what ``convert`` makes of each object of a list; a file with anything else is refused."""
    if not isinstance(found, list):
        raise InputError(f"import: {name}: {type(found).__name__} instead of a list; is it an export of this program")
    yield from each(found, name, convert)


def each(found: Any, place: str, convert: Convert) -> Iterator[Item]:
    """Yield what ``convert`` makes of each object of a list in an export; what has another type is broken."""
    if not isinstance(found, list | None):
        yield Broken(place, f"{type(found).__name__} instead of a list")
        return
    for number, item in enumerate(found or ()):
        own = f"{place} entry {number}"
        yield from convert(item, own) if isinstance(item, dict) else [Broken(own, "not a JSON object")]


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of an export; an empty one where it has another type or is missing."""
    return value if isinstance(value, dict) else {}


def transcripts(path: Path, pattern: str = "*.jsonl") -> Iterator[tuple[Path, int, dict[str, Any] | Broken]]:
    """Yield file, line number and object of each line of the transcripts below a folder."""
    files = sorted(path.rglob(pattern)) if path.is_dir() else [path]
    if not files:
        raise InputError(f"import: {str(path)!r} has no transcript {pattern}")
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield file, number, _parsed(line, f"{file} line {number}")


def _parsed(line: str, place: str) -> dict[str, Any] | Broken:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Broken(place, f"not JSON ({error})")
    return found if isinstance(found, dict) else Broken(place, "not a JSON object")


def message(id: str, text: str, session: Any, speaker: Any, created: Any, **more: Any) -> dict[str, Any]:
    """Return a message of a conversation as a document; ``more`` is its title and metadata."""
    title = str(more.pop("title", None) or "")
    meta = {SESSION: session, "speaker": "user" if speaker == "human" else speaker, **more}
    kept = {name: value for name, value in meta.items() if value not in (None, "")}
    return {"id": id, "text": text, "title": title, "kind": KIND, "created": moment(created), "meta": kept}


def moment(value: Any) -> Any:
    """Return a time; None where there is none. A number is seconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):  # outside of the calendar: refused with the document
            return value
    return value or None


def texts(content: Any) -> str:
    """Return the text of a content that is a text or a list of blocks; calls of tools and thoughts are left out."""
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list) else []
    found = [block.get("text") for block in blocks if isinstance(block, dict) and str(block.get("type")) in _TEXTS]
    return "\n\n".join(text.strip() for text in found if isinstance(text, str) and text.strip())


_TEXTS = {"text", "input_text", "output_text"}
