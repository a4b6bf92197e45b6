"""The newest documents, in order, however they were added."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trivet.engine import Engine
from trivet.engine.newest import newest
from trivet.errors import InputError

START = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


@pytest.fixture
def memory(words: Engine) -> Engine:
    """Twelve documents, one each hour over midnight, added in another order than that of their times."""
    hours = [5, 0, 11, 3, 8, 1, 10, 2, 7, 4, 9, 6]
    words.add(
        [{"id": f"d{at}", "text": "x", "meta": {"even": at % 2 == 0}, "created": START + timedelta(hours=at)}
         for at in hours]
    )  # fmt: skip
    return words


@pytest.mark.parametrize("limit", [1, 5, 11, 12, 100])
def test_the_latest_first(memory: Engine, limit: int) -> None:
    assert [document.id for document in newest(memory, limit=limit)] == [f"d{at}" for at in range(11, -1, -1)][:limit]


def test_among_what_a_filter_allows(memory: Engine) -> None:
    assert [document.id for document in newest(memory, ["even=true", "created<2026-03-02T05:00:00"], 2)] == ["d4", "d2"]
    assert newest(memory, {"even": "never"}) == []


def test_of_one_time_the_one_added_last_and_only_the_last_days_are_read(words: Engine) -> None:
    words.add([{"id": id, "text": "x", "created": START} for id in ("a", "b")])
    words.add({"id": "old", "text": "x", "created": "0001-01-01"})
    assert [document.id for document in newest(words, limit=2)] == ["b", "a"]
    assert [document.id for document in newest(words)] == ["b", "a", "old"]


def test_a_limit_that_is_none(words: Engine) -> None:
    with pytest.raises(InputError, match="limit: 0"):
        newest(words, limit=0)
