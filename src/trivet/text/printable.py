"""Text made safe for a terminal."""

from __future__ import annotations

import re

# A stored text may hold escape sequences; a terminal must not obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Replace the characters that move a cursor or turn the reading direction."""
    return _CONTROL.sub("\ufffd", text)
