"""The demo collection: a year of a product team's notes, and judged queries about them.

`README.md` in this folder describes the fields.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def notes() -> list[dict[str, Any]]:
    """Return the notes, oldest first."""
    return _lines("field_notes.jsonl")


def questions() -> list[dict[str, Any]]:
    """Return the queries, each with the notes that are relevant to it."""
    return _lines("field_questions.jsonl")


def _lines(name: str) -> list[dict[str, Any]]:
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    # Not splitlines(): it would split at U+2028, which a note may hold.
    return [json.loads(line) for line in text.split("\n") if line]
