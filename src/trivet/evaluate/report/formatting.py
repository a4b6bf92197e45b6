"""Numbers and texts as the report writes them.

Scores have three decimals in charts and four in tables; times are in milliseconds with three significant figures.
"""

from __future__ import annotations

import math

from rich.cells import cell_len, chop_cells


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
    """Format milliseconds with three significant figures, never with an exponent."""
    if time >= 100:
        return f"{time:,.0f}"
    return f"{time:.1f}" if time >= 10 else f"{time:.2f}"


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def setting(value: object) -> str:
    """Format a value of a sweep's axis."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def clipped(text: str, columns: float) -> str:
    """Shorten the text to that many columns, with an ellipsis; an East Asian character takes two columns."""
    if cell_len(text) <= columns:
        return text
    return chop_cells(text, max(1, int(columns) - 1))[0].rstrip() + "…"


def places(step: float) -> int:
    """Return how many decimals tell two numbers apart that differ by ``step``."""
    return max(0, -math.floor(math.log10(step) + 1e-9))
