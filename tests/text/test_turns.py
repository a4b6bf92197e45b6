"""A turn is shown with its date, the end of the turn before it, and its speaker, each only where it is known."""

from __future__ import annotations

from datetime import date

import pytest

from trivet.text.turns import BEFORE, is_personal, turn_in_context, with_speaker


def test_a_turn_has_three_lines() -> None:
    shown = turn_in_context("Ben: In Lund.", "Ann: Where was it?", date(2023, 5, 8))
    assert shown == "8 May 2023\nAnn: Where was it?\nBen: In Lund."


def test_what_is_not_known_takes_no_line() -> None:
    assert turn_in_context("Ben: In Lund.") == "Ben: In Lund."


def test_only_the_end_of_a_long_turn_before_is_shown() -> None:
    shown = turn_in_context("Yes.", "x" * 1000 + " Are you sure?")
    assert shown.startswith("… x")
    assert shown.endswith("Are you sure?\nYes.")
    assert len(shown) == BEFORE + len("… \nYes.")


def test_the_speaker_is_named_once() -> None:
    assert with_speaker("Ann", "Hello") == "Ann: Hello"
    assert with_speaker("Ann", "Ann: Hello") == "Ann: Hello"
    assert with_speaker("", "Hello") == "Hello"


@pytest.mark.parametrize(
    ("text", "personal"),
    [("I'm in Lund", True), ("Is it yours or my bike?", True), ("Type I errors", True), ("The pump is loud", False)],
)
def test_a_text_in_the_first_or_second_person(text: str, personal: bool) -> None:
    assert is_personal(text) is personal
