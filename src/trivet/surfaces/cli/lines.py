"""What documents, and what feedback, does a JSONL file hold?

Our own export or anyone's lines. A broken line is a value with its place, not an exception: the lines around it are
still good.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trivet.errors import InputError
from trivet.transfer import FORMAT, feedback_of, is_feedback, is_header, parse_line
from trivet.types import Feedback


@dataclass(frozen=True, slots=True)
class Broken:
    place: str
    reason: str

    def position(self) -> tuple[str, int]:
        """Where it stands, to be told in reading order."""
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
    place: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A line that says how good an answer was."""

    feedback: Feedback


Parsed = Header | Line | Judged | Broken


def parsed(raw: Iterable[bytes], name: str) -> Iterator[Parsed]:
    for number, content in enumerate(raw, start=1):
        place = f"{name} line {number}"
        try:
            text = content.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            part = _part(parse_line(text, place), place)
        except InputError as error:
            yield Broken(place, str(error).removeprefix(f"{place}: "))
        except UnicodeDecodeError as error:
            yield Broken(place, f"not UTF-8 ({error.reason} at byte {error.start})")
        else:
            yield part


def _part(item: dict[str, Any], place: str) -> Parsed:
    if is_header(item):
        return _header(item, place)
    return Judged(feedback_of(item)) if is_feedback(item) else Line(place, item)


def _header(item: dict[str, Any], place: str) -> Header | Broken:
    settings, model, count = item.get("settings"), item.get("model"), item.get("documents")
    if item["trivet"] != FORMAT:
        return Broken(place, f"export format {item['trivet']!r}; this trivet reads {FORMAT}")
    if "settings" in item and not isinstance(settings, dict):
        return Broken(place, f"settings: {type(settings).__name__} is not an object")
    return Header(place, settings, model if isinstance(model, str) else None, count if isinstance(count, int) else 0)


def looks_like_jsonl(start: bytes) -> bool:
    """Is the first line that is not blank a JSON object?"""
    first = next((line for line in start.split(b"\n") if line.strip()), b"")
    try:
        return isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False
