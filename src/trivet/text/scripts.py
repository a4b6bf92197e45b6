"""Scripts: the writing systems that the letters of a text belong to."""

from __future__ import annotations

import unicodedata


def written_in(text: str, scripts: tuple[str, ...]) -> bool:
    """Tell whether at least half of the letters belong to these scripts, named as in Unicode; so has a text without."""
    letters = [letter for letter in text if letter.isalpha()]
    known = sum(unicodedata.name(letter, "").startswith(scripts) for letter in letters)
    return known * 2 >= len(letters)
