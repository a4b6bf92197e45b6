"""The period of time that a query names, by language."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.text import times
from trivet.text.times import find_window

AT = datetime(2026, 6, 14, 12, tzinfo=UTC)  # a Sunday


def days(text: str, language: str = "en") -> tuple[str, str] | None:
    window = find_window(text, AT, language)
    return (f"{window.begin:%Y-%m-%d}", f"{window.end:%Y-%m-%d}") if window else None


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("what did I plant yesterday", "2026-06-13", "2026-06-14"),
        ("what did I plant 5 days ago?", "2026-06-09", "2026-06-10"),
        ("what did I plant three weeks ago?", "2026-05-21", "2026-05-28"),
        ("a couple of days ago", "2026-06-12", "2026-06-13"),
        ("in the past two weeks", "2026-05-31", "2026-06-15"),
        ("which shops in the past month", "2026-05-14", "2026-06-15"),
        ("last month", "2026-05-01", "2026-06-01"),
        ("last May", "2026-05-01", "2026-06-01"),
        ("in December?", "2025-12-01", "2026-01-01"),
        ("in July 2024", "2024-07-01", "2024-08-01"),
        ("on 9 October, 2024", "2024-10-09", "2024-10-10"),
        ("on October 9th", "2025-10-09", "2025-10-10"),
        ("from March 3 to April 5", "2026-03-03", "2026-04-06"),
        ("between March and early May", "2026-03-01", "2026-06-01"),
        ("in 2024", "2024-01-01", "2025-01-01"),
        ("on 2024-05-07", "2024-05-07", "2024-05-08"),
        ("the talk of 20240507", "2024-05-07", "2024-05-08"),
        ("last Saturday", "2026-06-13", "2026-06-14"),
    ],
)
def test_english(text: str, begin: str, end: str) -> None:
    assert days(text) == (begin, end)


@pytest.mark.parametrize(
    ("language", "text", "begin"),
    [
        ("de", "Was war vor drei Wochen?", "2026-05-21"),
        ("de", "im letzten Mai", "2026-05-01"),
        ("de", "am 7. Mai 2024", "2024-05-07"),
        ("fr", "il y a trois semaines", "2026-05-21"),
        ("fr", "en mai 2024", "2024-05-01"),
        ("es", "hace tres semanas", "2026-05-21"),
        ("es", "el mes pasado", "2026-05-01"),
        ("zh", "三周前说了什么", "2026-05-21"),
        ("zh", "2024年5月7日的会议", "2024-05-07"),
        ("ja", "先月何をした", "2026-05-01"),
        ("ko", "3주 전에", "2026-05-21"),
        ("de", "what was said yesterday", "2026-06-13"),  # English is understood everywhere
    ],
)
def test_other_languages(language: str, text: str, begin: str) -> None:
    found = days(text, language)
    assert found is not None
    assert found[0] == begin


@pytest.mark.parametrize(
    "text",
    [
        "what did we decide",
        "may I come in",
        "we met 100 people",
        "march of the penguins",
        "how many days ago did I buy the lamp",
        "three weeks before the trip",
        "before the move",
        "what do I do on Tuesdays",
        "version 2.1 of 3",
        "call me at 5",
        "",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert days(text) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("on 9 October, 2024", True),
        ("on 2024-05-07", True),
        ("5 days ago", False),
        ("yesterday", False),
        ("in July 2024", False),
        ("from March 3 to April 5", False),
    ],
)
def test_a_date_is_a_named_day(text: str, named: bool) -> None:
    window = find_window(text, AT)
    assert window is not None
    assert window.named is named


def test_a_moment_without_a_zone_is_utc() -> None:
    naive, aware = find_window("yesterday", AT.replace(tzinfo=None)), find_window("yesterday", AT)
    assert naive == aware


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["en", "de", "fr", "es", "zh", "ja", "ko", "none", "ru"]))
def test_any_text_is_read(text: str, language: str) -> None:
    window = find_window(text, AT, language)
    assert window is None or window.begin < window.end


@pytest.mark.parametrize(
    "text",
    [
        *("2024", "2024-02", "2024-02-29", "2023-02-29", "20240507", "May 2024", "Sept., 2024", "may of 2024"),
        *("9 October, 2024", "9th of October 2024", "October 9th, 2024", "Feb 30, 2024", "31 Jun 2024", "dec. 01 2024"),
        *("today", "Tonight", "last night", "yesterday"),
        *("in May", "in june", "sept. 14", "Dec 31", "1st of January", "June 31", "in the past 2 months", "last year"),
        *("a day ago", "3 weeks ago", "twelve months ago", "40 years ago", "last week", "the past month"),
    ],
)
def test_an_english_date_is_read_as_the_library_reads_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = days(text)
    times._read_at.cache_clear()
    monkeypatch.setattr(times, "_dated", lambda text, today: None)
    assert days(text) == own
    times._read_at.cache_clear()
    monkeypatch.undo()
    monkeypatch.setattr(times, "_library", lambda: pytest.fail("the library was loaded"))
    assert own is None or days(text) == own


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
@pytest.mark.parametrize("text", ["yesterday", "today", "last week", "in the past 2 months", "3 days ago", "in 2024"])
def test_a_period_beyond_the_calendar_is_none(text: str, at: datetime) -> None:
    window = find_window(text, at)
    assert window is None or window.begin < window.end
    assert text != "in 2024" or window is not None
