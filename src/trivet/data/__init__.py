"""What does the demo know, and what can I ask it?

One small collection, written for this project: a year of a product team's shared memory, and questions about it with
their judged answers. `README.md` beside this file says what the fields mean.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def notes() -> list[dict[str, Any]]:
    """What does the demo know? The field notes, oldest first."""
    return _lines("field_notes.jsonl")


def questions() -> list[dict[str, Any]]:
    """What can I ask the demo? The questions, each with the notes that answer it (none, if nothing does)."""
    return _lines("field_questions.jsonl")


def _lines(name: str) -> list[dict[str, Any]]:
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    # Not splitlines(): a note may hold U+2028, which is no line end in JSON Lines.
    return [json.loads(line) for line in text.split("\n") if line]
