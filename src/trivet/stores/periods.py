"""The step of a timeline: day, month or year."""

from __future__ import annotations

SECONDS_PER_DAY = 86_400.0
MAX_DAYS = 62  # periods by day before the step becomes a month: what a line of a page has room for
MAX_MONTHS = 72  # periods by month before the step becomes a year


def step_for(first: float | None, last: float | None) -> str:
    """Return the finest step that divides the time between two timestamps into few enough periods."""
    days = (last - first) / SECONDS_PER_DAY if first is not None and last is not None else 0.0
    if days <= MAX_DAYS:
        return "day"
    return "month" if days / 30 <= MAX_MONTHS else "year"
