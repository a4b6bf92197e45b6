"""A misspelt word is corrected, unless the nearest word is probably another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.text.analysis import ParsedQuery
from trivet.text.spelling import beginnings, corrected, may_be_misspelt, nearest

KNOWN = [("kettle", 9), ("kettles", 2), ("methyltransferas", 3), ("muhammad", 4), ("clam", 8), ("inhibit", 5)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("kettel", "kettle"),  # swapped
        ("ketttle", "kettle"),  # one too many
        ("kettl", None),  # five letters: too short to guess
        ("ketles", "kettles"),  # left out
        ("muhummad", "muhammad"),  # mistaken, in a long word
        ("inhabit", None),  # mistaken, in a short one: mostly another word
        ("claim", None),
        ("methyltrasnferras", "methyltransferas"),  # two slips in a very long word
        ("keeettle", None),  # two slips in a shorter one
        ("zebra", None),
    ],
)
def test_slips(written: str, meant: str | None) -> None:
    assert (nearest(written, KNOWN) if may_be_misspelt(written) else None) == meant


def test_the_fewest_slips_then_the_commonest() -> None:
    assert nearest("servrer", [("server", 5), ("servrers", 50)]) == "servrers"
    assert nearest("lanterm", [("lantern", 1)]) is None  # seven letters, one mistaken
    assert nearest("lanterrn", [("lantern", 1), ("lanternn", 7)]) == "lanternn"


@pytest.mark.parametrize("term", ["e12345", "os.path", "202612", "tea", ""])
def test_names_numbers_and_short_words_are_not_guessed_at(term: str) -> None:
    assert not may_be_misspelt(term)


@given(st.text("abcde", min_size=6, max_size=9), st.data())
def test_a_swap_behind_the_second_letter_is_found_among_its_beginnings(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(word) - 2))
    slip = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    assert any(word.startswith(begin) for begin in beginnings(slip))
    assert slip == word or nearest(slip, [(word, 1)]) == word


@pytest.mark.parametrize(
    ("known", "terms"),
    [
        ({"haustur"}, ("haustur",)),
        ({"haus", "tur"}, ("haus", "tur")),
        ({"haus", "kastur"}, ("kastur",)),
        ({"haus"}, ("haustur",)),
    ],
)
def test_a_word_goes_before_its_alternatives_and_these_before_a_similar_word(
    known: set[str], terms: tuple[str, ...]
) -> None:
    query = ParsedQuery(("haustur",), ("haustur",), lenient=True, alternatives=lambda term: (("haus", "tur"),))
    prepared: list[str] = []
    found, notes = corrected(
        query, known.__contains__, lambda term: "kastur" if "kastur" in known else None, prepared.extend
    )
    assert prepared == ([] if "haustur" in known else ["haus", "tur"])
    assert found.terms == found.required == terms
    assert bool(notes) is (terms != ("haustur",))


def test_a_query_that_is_not_lenient_stays() -> None:
    query = ParsedQuery(("latnern",), ("latnern",))
    assert corrected(query, lambda term: False, lambda term: "lantern") == (query, ())
