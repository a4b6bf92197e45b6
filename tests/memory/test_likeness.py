"""Is a copy told from a near copy, and a change from an addition?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from trivet.memory.likeness import compare, in_common, same, words
from trivet.types import Document


def note(text: str, **fields: object) -> Document:
    return replace(Document("x", text), **fields)  # type: ignore[arg-type]


OLD = note("Postgres listens on port 5432 in staging.")


def test_in_common_is_by_hand() -> None:
    assert in_common(words("a b c"), words("b c d e")) == 2 * 2 / 7
    assert in_common(words("a a"), words("a")) == 2 * 1 / 3
    assert in_common([], []) == 0.0


@pytest.mark.parametrize(
    "other",
    [
        note("  postgres LISTENS on\nport 5432 in staging. "),
        note("Ｐostgres listens on port 5432 in staging."),
        note("Postgres listens on port 5432 in staging.", importance=0.9, accesses=3, id="y"),
    ],
)
def test_the_same_up_to_case_width_and_white_space(other: Document) -> None:
    assert same(OLD, other)


@pytest.mark.parametrize(
    "other",
    [
        note("Postgres listens on port 5433 in staging."),
        note("Postgres listens on port 5432 in staging.", kind="decision"),
        note("Postgres listens on port 5432 in staging.", meta={"user": "sam"}),
        note("Postgres listens on port 5432 in staging.", title="Ports"),
        note("Postgres listens on port 5432 in staging.", valid_to=datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_another_kind_scope_title_or_time_is_another_memory(other: Document) -> None:
    assert not same(OLD, other)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("Postgres listens on port 5433 in staging.", "supersede"),
        ("Postgres does not listen on port 5432 in staging.", "supersede"),
        ("In staging Postgres listens on port 5432.", "supersede"),
        ("Postgres listens on port 5432 in staging, behind the proxy.", "update"),
        ("The Postgres listens on port 5432 in staging.", "update"),
        ("Postgres listens on some port in production and staging too", "keep both"),
    ],
)
def test_what_was_changed_tells_what_to_do(text: str, suggestion: str) -> None:
    found = compare(note(text), OLD)
    assert found is not None
    assert 0.6 <= found[0] <= 1.0
    assert found[1] == suggestion


def test_what_is_of_another_scope_is_kept() -> None:
    assert compare(note(OLD.text, meta={"user": "sam"}), OLD) == (1.0, "keep both")
    assert compare(note(OLD.text, kind="decision"), OLD) == (1.0, "keep both")


def test_other_words_need_the_meaning_and_are_for_a_reader_to_judge() -> None:
    other = note("The database of the test system can be reached at 5432")
    assert compare(other, OLD) is None
    assert compare(other, OLD, meaning=0.79) is None
    assert compare(other, OLD, meaning=0.9) == (0.9, "keep both")
