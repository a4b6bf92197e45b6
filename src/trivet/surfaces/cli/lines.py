"""What documents does a JSONL file hold?

Our own export or anyone's lines. A broken line is a value with its place, not an exception: the lines around it are
still good.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trivet.errors import InputError
from trivet.transfer import FORMAT, parse_line


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
    settings: dict[str, Any]
    model: str | None
    documents: int


@dataclass(frozen=True, slots=True)
class Line:
    place: str
    document: dict[str, Any]


def parsed(raw: Iterable[bytes], name: str) -> Iterator[Header | Line | Broken]:
    for number, content in enumerate(raw, start=1):
        place = f"{name} line {number}"
        try:
            text = content.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            item = parse_line(text, place)
        except InputError as error:
            yield Broken(place, str(error).removeprefix(f"{place}: "))
        except UnicodeDecodeError as error:
            yield Broken(place, f"not UTF-8 ({error.reason} at byte {error.start})")
        except (ValueError, RecursionError) as error:
            yield Broken(place, f"not a document ({error})")
        else:
            yield _header(item, place) if _is_header(item) else Line(place, item)


def _is_header(item: dict[str, Any]) -> bool:
    return "trivet" in item and "text" not in item


def _header(item: dict[str, Any], place: str) -> Header | Broken:
    settings, model, count = item.get("settings"), item.get("model"), item.get("documents")
    if item["trivet"] != FORMAT or not isinstance(settings, dict):
        return Broken(place, f"export format {item['trivet']!r}; this trivet reads {FORMAT}")
    return Header(place, settings, model if isinstance(model, str) else None, count if isinstance(count, int) else 0)


def looks_like_jsonl(start: bytes) -> bool:
    """Is the first line that is not blank a JSON object?"""
    first = next((line for line in start.split(b"\n") if line.strip()), b"")
    try:
        return isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False
