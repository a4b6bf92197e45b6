"""The form in which the reader sees a turn of a conversation: its date, the turn before it, the turn.

The reader was trained on this form (``training/dialogue.py``).
"""

from __future__ import annotations

import calendar
import re
from datetime import date

#: Characters kept of the turn before, from its end: a long reply must not push the turn itself out of the window.
BEFORE = 240
MONTHS = tuple(calendar.month_name)[1:]  # English: the locale is never set

#: Of the first 30 hits of a query, 79 to 99 % have one of these in two sets of conversations, 0 to 10 % in nine others.
_PERSONAL = re.compile(r"\b(?:I|I['’](?:m|ve|d|ll)|[Mm]y|me|[Yy]ou|[Yy]our)\b")


def is_personal(text: str) -> bool:
    """Return whether an English text speaks in the first or second person."""
    return _PERSONAL.search(text) is not None


def written_date(day: date) -> str:
    """Return a date as ``8 May 2023``."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def with_speaker(speaker: str, text: str) -> str:
    """Return ``speaker: text``; the text alone where the speaker is unknown or already in front."""
    return f"{speaker}: {text}" if speaker and not text.startswith(f"{speaker}:") else text


def turn_in_context(turn: str, before: str = "", day: date | None = None) -> str:
    """Return the passage for a turn: a line with the date, a line with the turn before, the turn."""
    if len(before) > BEFORE:
        before = f"… {before[-BEFORE:]}"
    return "\n".join(line for line in (written_date(day) if day else "", before, turn) if line)
