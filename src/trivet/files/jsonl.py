"""The documents and the feedback in a JSONL file: an export of trivet, or any file with one document per line.

A broken line is returned as a value with its place, not raised: the lines around it are still imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trivet.engine.transfer import FORMAT, feedback_of, is_feedback, is_header, parse_line
from trivet.errors import InputError
from trivet.types import Feedback


@dataclass(frozen=True, slots=True)
class Broken:
    """A line or a file that could not be read, and why."""

    place: str
    reason: str

    def position(self) -> tuple[str, int]:
        """Return file and line, to sort by."""
        name, _, number = self.place.rpartition(" ")
        return name, int(number) if number.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of an export."""

    place: str
    settings: dict[str, Any] | None
    model: str | None
    documents: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line with a document."""

    place: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A line with a judgement of a hit."""

    feedback: Feedback


Parsed = Header | Line | Judged | Broken


def parse_lines(raw: Iterable[bytes], name: str) -> Iterator[Parsed]:
    """Yield what each line holds; ``name`` is the file's name in messages. Blank lines are skipped."""
    for number, content in enumerate(raw, start=1):
        place = f"{name} line {number}"
        try:
            text = content.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            yield _parse(parse_line(text, place), place)
        except InputError as error:
            yield Broken(place, str(error).removeprefix(f"{place}: "))
        except UnicodeDecodeError as error:
            yield Broken(place, f"not UTF-8 ({error.reason} at byte {error.start})")


def _parse(item: dict[str, Any], place: str) -> Parsed:
    if is_header(item):
        return _header(item, place)
    return Judged(feedback_of(item)) if is_feedback(item) else Line(place, item)


def _header(item: dict[str, Any], place: str) -> Header | Broken:
    settings, model, count = item.get("settings"), item.get("model"), item.get("documents")
    if item["trivet"] != FORMAT:
        return Broken(place, f"export format {item['trivet']!r} is unknown; this version of trivet reads {FORMAT}")
    if "settings" in item and not isinstance(settings, dict):
        return Broken(place, f"settings: {type(settings).__name__} is not a JSON object")
    return Header(place, settings, model if isinstance(model, str) else None, count if isinstance(count, int) else 0)


def looks_like_jsonl(start: bytes) -> bool:
    """Return whether the first line that is not blank is a JSON object."""
    first = next((line for line in start.split(b"\n") if line.strip()), b"")
    try:
        return isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False
