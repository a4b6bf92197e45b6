"""Which ``field:value`` becomes a filter?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trivet.filters import Eq, Filter, Not, Or, Range
from trivet.understanding.fields import find_fields, without_fields


def read(text: str) -> list[Filter]:
    return [field.where for field in find_fields(text, lambda: ["author", "page", "draft", "place.city"])]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("kind:note lamps", Eq("kind", "note")),
        ("lamps author:ana", Eq("author", "ana")),
        ('lamps author:"Ana Lima"', Eq("author", "Ana Lima")),
        ("place.city:Porto?", Eq("place.city", "Porto")),
        ("meta.author:ana", Eq("meta.author", "ana")),
        ("-author:ana lamps", Not(Eq("author", "ana"))),
        ("page:12", Or((Eq("page", "12"), Eq("page", 12.0)))),
        ("draft:true", Or((Eq("draft", "true"), Eq("draft", True)))),
        ("importance:0.9", Eq("importance", 0.9)),
    ],
)
def test_known_fields(text: str, where: Filter) -> None:
    assert read(text) == [where]


def test_a_time_is_a_year_a_month_or_a_day() -> None:
    def stamp(*day: int) -> float:
        return datetime(*day, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]

    assert read("created:2026") == [Range("created", gte=stamp(2026, 1, 1), lt=stamp(2027, 1, 1))]
    assert read("created:2026-12") == [Range("created", gte=stamp(2026, 12, 1), lt=stamp(2027, 1, 1))]
    assert read("created:2026-03-31") == [Range("created", gte=stamp(2026, 3, 31), lt=stamp(2026, 4, 1))]
    assert read("created:soon updated:2026-13 valid_from:2026-02-30") == []


@pytest.mark.parametrize(
    "text",
    [
        "at 12:30",
        "http://kind:8080/x",
        "std::sort",
        "colour:red",
        "note: buy milk",
        "kind:",
        "kind :note",
        "a kind:: b",
    ],
)
def test_anything_else_is_text(text: str) -> None:
    assert read(text) == []


def test_the_metadata_is_asked_only_where_there_is_a_need() -> None:
    def never() -> list[str]:
        raise AssertionError("asked")

    assert find_fields("plain words, 12:30 and kind:note", never)[0].written == "kind:note"


def test_what_is_left_is_the_question() -> None:
    text = 'lamps author:"Ana Lima"  kind:note in the hall'
    assert without_fields(text, find_fields(text, lambda: ["author"])) == "lamps in the hall"
