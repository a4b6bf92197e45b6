"""A copy is told from a near copy, and a change from an addition."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from trivet.memory.duplicates import compare, in_common, same, words
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
    ("text", "suggestion", "relation"),
    [
        ("Postgres listens on port 5433 in staging.", "supersede", "contradicting"),
        ("Postgres does not listen on port 5432 in staging.", "supersede", "contradicting"),
        ("Postgres now listens on port 5433 in staging.", "supersede", "updated"),
        ("In staging Postgres listens on port 5432.", "update", "same"),
        ("Postgres listens on port 5432 in staging, behind the proxy.", "update", "same"),
        ("The Postgres listens on port 5432 in staging.", "update", "same"),
        ("Postgres listens on some port in production and staging too", "keep both", "same"),
    ],
)
def test_what_was_changed_tells_what_to_do(text: str, suggestion: str, relation: str) -> None:
    found = compare(note(text), OLD)
    assert found is not None
    assert 0.6 <= found.similarity <= 1.0
    assert (found.suggestion, found.relation) == (suggestion, relation)


def test_what_is_of_another_scope_is_kept() -> None:
    for other in (note(OLD.text, meta={"user": "sam"}), note(OLD.text, kind="decision")):
        found = compare(other, OLD)
        assert found is not None
        assert (found.similarity, found.suggestion, found.relation) == (1.0, "keep both", "same")


def test_other_words_need_the_meaning_and_are_for_a_reader_to_judge() -> None:
    other = note("The database of the test system can be reached at 5432")
    assert compare(other, OLD) is None
    assert compare(other, OLD, meaning=0.79) is None
    found = compare(other, OLD, meaning=0.9)
    assert found is not None
    assert (found.similarity, found.suggestion, found.relation) == (0.9, "keep both", "related")


def test_a_statement_is_compared_with_the_title_and_each_sentence() -> None:
    reasons = "Growers compare a week with that of the year before. Rollups of an hour stay for ever."
    titled = note(reasons, title="Raw readings are kept for 13 months")
    new = note("Raw readings are kept for 24 months.")
    long = note(f"{reasons} Raw readings are kept for 13 months. {reasons * 3}")
    for longer in (titled, long, note(f"{reasons} Raw readings are kept for 13 months. The disk has 2 TB.")):
        found = compare(new, longer)
        assert found is not None
        assert (found.relation, found.changed, found.suggestion) == ("contradicting", "13 → 24", "supersede")
        assert found.statement.rstrip(".") == "Raw readings are kept for 13 months"
        back = compare(longer, new)
        assert back is not None
        assert (back.relation, back.changed) == ("contradicting", "24 → 13")
    assert compare(note("The pump was oiled by Noor."), titled) is None
    assert compare(note("Growers moved a week ago."), long) is None, "a few common words are chance in a longer text"


def test_long_documents_need_most_words_in_common() -> None:
    start = " ".join(f"word{n}" for n in range(300))
    one, other = note(f"{start} {'left ' * 900}"), note(f"{start} {'right ' * 900}")
    assert compare(one, other) is None
    assert compare(note(f"{start} end"), note(start)) is not None
