"""The form in which the reader is taught a turn of a conversation: the one that the product shows it."""

from __future__ import annotations

from datetime import date

from trivet.text.turns import turn_in_context
from trivet.text.turns import with_speaker as named

__all__ = ["named", "shown_turn"]


def shown_turn(turn: str, before: str = "", timestamp: str = "") -> str:
    """Return the passage for a turn; a timestamp that is no ISO date is left out."""
    try:
        day = date.fromisoformat(timestamp[:10])
    except ValueError:
        day = None
    return turn_in_context(turn, before, day)
