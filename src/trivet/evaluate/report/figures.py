"""How is a number written?

Scores with three places in pictures and four in tables; times in milliseconds with three figures.
"""

from __future__ import annotations

import math
import unicodedata


def short(score: float) -> str:
    return f"{score:.3f}"


def long(score: float) -> str:
    return f"{score:.4f}"


def signed(difference: float) -> str:
    return f"{difference:+.4f}"


def between(low: float, high: float, sign: bool = False) -> str:
    return f"{low:+.3f} to {high:+.3f}" if sign else f"{low:.3f} to {high:.3f}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def ms(time: float) -> str:
    """Three figures, never an exponent."""
    if time >= 100:
        return f"{time:,.0f}"
    return f"{time:.1f}" if time >= 10 else f"{time:.2f}"


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def setting(value: object) -> str:
    """A value of a sweep's axis."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def clipped(said: str, columns: float) -> str:
    """The text, or its beginning and an ellipsis where it is wider than that many columns."""
    if width(said) <= columns:
        return said
    kept = ""
    for character in said:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def width(said: str) -> int:
    """In columns: an East Asian character takes two, a combining one none."""
    return sum(_columns(character) for character in said)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def places(step: float) -> int:
    """How many decimals tell neighbours that far apart from each other."""
    return max(0, -math.floor(math.log10(step) + 1e-9))
