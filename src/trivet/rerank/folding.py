"""When are two texts the same text?

Up to width and compatibility forms (NFKC), letter case and white space: what a reader would call a copy.
"""

from __future__ import annotations

from unicodedata import normalize


def fold(text: str) -> str:
    # NFKC leaves ASCII as it is, and most text is ASCII.
    flat = text.lower() if text.isascii() else normalize("NFKC", text).casefold()
    return " ".join(flat.split())
