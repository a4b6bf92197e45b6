"""Parquet: the values of every type, and damage."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from made_files import parquet
from trivet.files import formats
from trivet.files import parquet as module
from trivet.files.formats import UnreadableError


def test_rows_with_values_of_every_type() -> None:
    content = parquet(
        {
            "id": ["a", "b"],
            "at": [datetime(2026, 6, 1, tzinfo=UTC), None],
            "price": [Decimal("4.50"), None],
            "tags": [["wet", "north"], []],
            "rate": [float("nan"), 0.5],
            "thumbnail": [b"\x89PNG", b""],
        }
    )
    one, two = formats.parts(content, "parquet")
    assert (one.key, two.key, one.notes) == ("a", "b", ("binary columns left out: thumbnail",))
    assert one.meta == {"id": "a", "at": "2026-06-01T00:00:00+00:00", "price": 4.5, "tags": ["wet", "north"], "row": 1}
    assert one.text == 'id: a\nat: 2026-06-01T00:00:00+00:00\nprice: 4.5\ntags: ["wet", "north"]'
    assert two.meta["rate"] == 0.5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (parquet({"a": []}), "empty"),
        (parquet({"a": ["x"]})[:-30], "broken Parquet"),
        (b"PAR1 and no more", "broken Parquet"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "parquet")


def test_a_table_that_grows_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", 10)
    with pytest.raises(UnreadableError, match="when unpacked"):
        formats.parts(parquet({"a": ["many words here"]}), "parquet")
