"""When is a refused request asked again, and after how long?"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Statuses that may pass by themselves: timeouts, conflicts, rate limits, overload. Everything else is the caller's.
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: Seconds; a server that asks for more is not waited for longer than this at a time.
LONGEST = 60.0


def pause_before(attempt: int, backoff: float, asked_for: str | None, jitter: float) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (1-based).

    Doubling from ``backoff``, spread by up to a half (``jitter`` in [0, 1)) so that clients refused together do not
    come back together; never less than a Retry-After header asks for.
    """
    growing = backoff * 2.0 ** (attempt - 1) * (1.0 + jitter / 2)
    return min(LONGEST, max(growing, retry_after(asked_for)))


def retry_after(header: str | None) -> float:
    """Seconds a Retry-After header asks for, given as a number or a date; 0 where it says nothing readable."""
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
