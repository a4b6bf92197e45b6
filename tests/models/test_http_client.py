from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from trivet.concurrency import deadline
from trivet.errors import DeadlineError, TrivetError
from trivet.models.http_client import (
    LONGEST_PAUSE,
    RETRIED,
    HttpClient,
    Limits,
    environment_keys,
    pause_after,
    retry_after,
)


def test_pauses_double_and_jitter_adds_up_to_half() -> None:
    assert [pause_after(attempt, 0.5, 0.0, 0.0) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_after(2, 0.5, 0.0, 1.0) == 1.0 * 1.5


def test_a_server_is_never_asked_earlier_than_it_wants() -> None:
    assert pause_after(1, 0.5, 7.0, 0.0) == 7.0
    assert pause_after(5, 0.5, 1.0, 0.0) == 8.0


def test_no_pause_is_longer_than_the_longest() -> None:
    assert pause_after(30, 0.5, 0.0, 0.0) == pause_after(1, 0.5, 86400.0, 0.0) == LONGEST_PAUSE


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


def client(limits: Limits, *keys: str) -> HttpClient:
    """A client of a port on which nothing listens."""
    return HttpClient(
        "http://127.0.0.1:9/v1", limits, lambda: keys, lambda error: TrivetError(f"{error.kind}: {error}")
    )


def test_no_request_is_made_after_the_deadline() -> None:
    with deadline.limit(0), pytest.raises(DeadlineError):
        client(Limits(timeout=1.0)).post({})


def test_a_pause_that_does_not_fit_into_the_time_ends_the_call() -> None:
    with pytest.raises(TrivetError, match=r"unreachable: could not be reached .* \(tried 1 time\)"):
        client(Limits(timeout=1.0, total=30.0, attempts=3, backoff=60.0)).post({})


def test_every_attempt_is_counted() -> None:
    with pytest.raises(TrivetError, match=r"\(tried 3 times\)"):
        client(Limits(timeout=1.0, attempts=3, backoff=0.001)).post({})


def test_a_stream_is_tried_once() -> None:
    with (
        pytest.raises(TrivetError, match=r"^unreachable: could not be reached \([^()]*\)$"),
        client(Limits(1.0)).stream({}),
    ):
        pass


def test_no_message_holds_a_key() -> None:
    http = client(Limits(timeout=1.0), "first", "second")
    assert str(http.error("got first and second")) == "garbage: got … and …"
    assert http.excerpt(b"first\n\xff /opt/model/run.py") == "… \ufffd [path]"
    assert http.excerpt({"a": "second"}) == "{'a': '…'}"
    assert http.excerpt(b"") == "(empty)"


def test_keys_come_from_the_environment_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", " \n")
    monkeypatch.setenv("KEY_B", "b\n")
    monkeypatch.setenv("KEY_C", "c")
    assert environment_keys(["KEY_A", "KEY_B", "KEY_C", "KEY_D"]) == ["b", "c"]
