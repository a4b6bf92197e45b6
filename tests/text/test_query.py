"""Fields, the excluded part and identifiers are found in a query; everything else stays text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.filters import Eq, Filter, Not, Or, Range
from trivet.text.query import MAX_IDENTIFIERS, MAX_WORDS, find_fields, find_identifiers, split_negation, without_fields


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


# --- negation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted", "avoided"),
    [
        ("moods of the sea but not storms", "moods of the sea", ("storms",)),
        ("bread recipes excluding rye, with photographs", "bread recipes , with photographs", ("rye",)),
        ("How did it grow (excluding the harbour fees), and what came next?", None, ("the harbour fees",)),
        ("Describe the old town without the cathedral.", "Describe the old town .", ("the cathedral",)),
        ("Tell me about tea, but do not mention milk", "Tell me about tea,", ("milk",)),
        ("songs other than lullabies", "songs", ("lullabies",)),
        ("seal pups -circus", "seal pups", ("circus",)),
        ('seal pups -circus -"sea lion"', "seal pups", ("circus", "sea lion")),
        ("seal pups NOT circus", "seal pups", ("circus",)),
        ("Vögel aber nicht Möwen", "Vögel", ("Möwen",)),
        ("Brot außer Roggenbrot", "Brot", ("Roggenbrot",)),
        ("oiseaux sauf les mouettes", "oiseaux", ("les mouettes",)),
        ("pájaros pero no gaviotas", "pájaros", ("gaviotas",)),
        ("鸟类，不包括海鸥", "鸟类，", ("海鸥",)),
        ("除了海鸥以外的鸟", "鸟", ("海鸥",)),
        ("カモメ以外の鳥", "鳥", ("カモメ",)),
        ("갈매기 제외하고 새", "새", ("갈매기",)),
    ],
)
def test_what_is_cut_out(text: str, wanted: str | None, avoided: tuple[str, ...]) -> None:
    found = split_negation(text)
    assert found.avoided == avoided
    if wanted is not None:
        assert found.wanted == wanted


@pytest.mark.parametrize(
    "text",
    [
        "why does it not start",
        "sort a list without recursion",
        "I do not know what this is",
        "git log -p",
        "tar -xzf backup",
        "find . -name notes",
        "ls src/parts -recursive",
        "-circus",
        "but not storms",
        "state-of-the-art pumps",
        "a well-known -3 offset",
        "除了海鸥还有什么鸟",
        "notwithstanding the weather",
        "",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert split_negation(text) == (text, ())


def test_a_part_has_an_end() -> None:
    found = split_negation(f"the sea excluding {' '.join(f'word{n}' for n in range(40))}")
    assert len(found.avoided[0].split()) == MAX_WORDS
    assert "word39" in found.wanted


@given(st.text(max_size=80))
def test_any_text_is_split(text: str) -> None:
    found = split_negation(text)
    assert found.avoided or found.wanted == text


# --- identifiers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "E1234",
        "ORA-00942",
        "CVE-2021-44228",
        "ERR_CONNECTION_RESET",
        "snake_case_name",
        "getUserName",
        "os.path.join",
        "std::sort",
        "src/parts/lamp.py",
        "./run/start.sh",
        "1.2.3",
        "v2.0.1-rc1",
        "0x80070005",
        "9f1c2ab",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_names(name: str) -> None:
    assert find_identifiers(f"why does {name} fail") == (name,)
    assert find_identifiers(f"({name})") == (name,)


@pytest.mark.parametrize(
    "text",
    [
        "plain words only",
        "in 2026 and 1999",
        "the end.Then another",
        "CD34 and IL-10 cells",
        "mRNA levels",
        "3.5 percent",
        "NASA and the WHO",
        "decade facade",
        "e-mail from ana@example.org",
    ],
)
def test_words_numbers_and_genes_are_not(text: str) -> None:
    assert find_identifiers(text) == ()


def test_there_is_an_end_to_it() -> None:
    assert len(find_identifiers(" ".join(f"E{n}" for n in range(1000, 1100)))) == MAX_IDENTIFIERS
