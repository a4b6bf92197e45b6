"""The time of a document, and the filter for a period."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trivet.filters import matches
from trivet.text.document_dates import time_of, within
from trivet.types import Document

DAY = datetime(2026, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("known", "moment"),
    [
        ({"created": DAY}, DAY),
        ({"created": datetime(2020, 1, 1), "valid_from": DAY}, DAY),
        ({"created": datetime(2020, 1, 1), "meta": {"timestamp": "2026-05-09"}}, DAY),
        ({"created": DAY, "meta": {"date": "spring", "time": True}}, DAY),
        ({"meta": {"time": DAY.timestamp()}}, DAY),
        ({"created": datetime(2026, 5, 9)}, DAY),
        ({}, None),
    ],
)
def test_the_order_of_what_may_say_so(known: dict[str, object], moment: datetime | None) -> None:
    assert time_of(Document(id="a", text="x", **known)) == moment  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "inside"),
    [
        ({"created": DAY}, True),
        ({"created": datetime(2026, 6, 1, tzinfo=UTC)}, False),
        ({"created": DAY, "valid_from": datetime(2020, 1, 1, tzinfo=UTC)}, False),
        ({"created": datetime(2020, 1, 1, tzinfo=UTC), "meta": {"timestamp": "2026-05-01T00:00:00"}}, True),
        ({"created": datetime(2020, 1, 1, tzinfo=UTC), "meta": {"timestamp": "2026-05-01"}}, True),
        ({"created": DAY, "meta": {"timestamp": "2026-06-01"}}, False),
        ({"meta": {"date": DAY.timestamp()}}, True),
    ],
)
def test_the_filter_says_the_same(known: dict[str, object], inside: bool) -> None:
    begin, end = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    document = Document(id="a", text="x", **known)  # type: ignore[arg-type]
    moment = time_of(document)
    assert matches(within(begin, end, ["timestamp", "date", "colour"]), document) is inside
    assert (moment is not None and begin <= moment < end) is inside
