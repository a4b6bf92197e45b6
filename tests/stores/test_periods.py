"""The step of a timeline (``trivet.stores.periods``)."""

from __future__ import annotations

import pytest

from trivet.stores.periods import MAX_DAYS, MAX_MONTHS, SECONDS_PER_DAY, step_for


@pytest.mark.parametrize(
    ("days", "step"),
    [(0, "day"), (MAX_DAYS, "day"), (MAX_DAYS + 1, "month"), (MAX_MONTHS * 30, "month"), (MAX_MONTHS * 30 + 1, "year")],
)
def test_the_finest_step_with_few_enough_periods(days: int, step: str) -> None:
    assert step_for(1_000.0, 1_000.0 + days * SECONDS_PER_DAY) == step


def test_without_documents_the_step_is_a_day() -> None:
    assert step_for(None, None) == "day"
