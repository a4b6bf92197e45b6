from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from trivet.embedders.retries import LONGEST, RETRIED, pause_before, retry_after


def test_pauses_double_and_jitter_adds_up_to_half() -> None:
    assert [pause_before(attempt, 0.5, None, 0.0) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_before(2, 0.5, None, 1.0) == 1.0 * 1.5


def test_a_server_is_never_asked_earlier_than_it_wants() -> None:
    assert pause_before(1, 0.5, "7", 0.0) == 7.0
    assert pause_before(5, 0.5, "1", 0.0) == 8.0


def test_no_pause_is_longer_than_the_longest() -> None:
    assert pause_before(30, 0.5, None, 0.0) == pause_before(1, 0.5, "86400", 0.0) == LONGEST


@pytest.mark.parametrize(("header", "seconds"), [(None, 0), ("", 0), ("soon", 0), ("-3", 0), ("2.5", 2.5), ("0", 0)])
def test_retry_after_in_seconds(header: str | None, seconds: float) -> None:
    assert retry_after(header) == seconds


def test_retry_after_as_a_date() -> None:
    now = datetime.now(UTC)
    assert 3000 < retry_after(format_datetime(now + timedelta(hours=1), usegmt=True)) <= 3600
    assert retry_after(format_datetime(now - timedelta(hours=1), usegmt=True)) == 0.0


def test_what_the_caller_did_wrong_is_not_asked_again() -> None:
    assert not RETRIED & {200, 400, 401, 403, 404, 413, 422}
    assert {429, 500, 502, 503, 504} <= RETRIED
