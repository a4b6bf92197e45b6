"""The log of the service: lines for people on a terminal, JSON elsewhere."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from trivet.http import logs
from trivet.http.config import Config


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def record() -> logging.LogRecord:
    made = logging.LogRecord("trivet.http", logging.INFO, "", 0, "request", None, None)
    made.details = {"method": "GET", "status": 200}
    return made


@pytest.fixture(autouse=True)
def request_id() -> Iterator[None]:
    token = logs.request_id.set("ab12")
    yield
    logs.request_id.reset(token)


def test_the_default_is_for_people_on_a_terminal(record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    line = logs.formatter(Config().log_format).format(record)
    assert re.fullmatch(r"\d\d:\d\d:\d\d info request method=GET status=200 request_id=ab12", line)


def test_the_default_is_json_elsewhere(record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = json.loads(logs.formatter(Config().log_format).format(record))
    assert (line["event"], line["status"], line["request_id"]) == ("request", 200, "ab12")


@pytest.mark.parametrize(("format", "as_json"), [("json", True), ("text", False)])
def test_a_format_that_is_named_counts_everywhere(
    format: str, as_json: bool, record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if format == "json" else io.StringIO())
    assert logs.formatter(format).format(record).startswith("{") is as_json
