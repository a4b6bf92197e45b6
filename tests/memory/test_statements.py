"""What two statements share and where they differ, by hand and for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.memory.statements import COMPARED_WORDS, SENTENCES, difference, is_short, sentences, words

texts = st.text(max_size=200) | st.lists(
    st.sampled_from(["the", "gateway", "listens", "8443", "not", "13", "Mia", "mag", "三", "天", "保留", "moved"]),
    max_size=12,
).map(" ".join)


def keys(text: str) -> list[str]:
    return [word.key for word in words(text)]


def test_a_word_is_compared_without_case_accents_and_leading_zeros() -> None:
    assert keys("Café at 06:45, two rooms, 5,000 EUR") == ["cafe", "at", "6:45", "2", "rooms", "5000", "eur"]
    assert keys("Anna's cat isn't here") == ["anna", "cat", "is", "not", "here"]
    assert keys("保留三十天") == ["保", "留", "三十", "天"]


def test_overlap_is_by_hand() -> None:
    found = difference("Raw readings are kept for 24 months", "Raw readings are kept for 13 months")
    assert found.overlap == pytest.approx((2 * 4 / 10 + 4 / 5) / 2)  # raw, readings, kept, months of five each
    assert found.beyond == 1  # months; the others are in the words that both begin with
    assert found.exchanges == (("24", "13"),)
    assert found.numbers == ("24", "13")
    assert found.other_number and found.omits
    assert found.in_order == pytest.approx(2 * 6 / 14)


@pytest.mark.parametrize(
    ("old", "new", "exchanges"),
    [
        ("The database is in eu-west-1.", "The database is in eu-central-1.", "eu-west-1 eu-central-1"),
        ("Mr. Haas is responsible.", "Ms. Petrova is responsible.", "Mr Haas Ms Petrova"),
        ("日志保留三十天。", "日志保留九十天。", "三十 九十"),
        ("Mia is allergic to nuts.", "Mia has a nut allergy.", ""),
    ],
)  # fmt: skip
def test_an_exchange_is_told_as_written(old: str, new: str, exchanges: str) -> None:
    found = difference(old, new).exchanges
    assert " ".join(part for exchange in found for part in exchange) == exchanges


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Anna's office is in room 12.", "Ben's office is in room 14.", True),
        ("The train to Graz leaves from platform 4.", "The train to Linz leaves from platform 7.", True),
        ("Anna's office is in room 12.", "Anna's office is in room 14.", False),
        ("Priya leads the project.", "The project is led by Priya.", False),
    ],
)
def test_another_subject_begins_the_statement_or_changes_with_the_value(old: str, new: str, expected: bool) -> None:
    assert difference(old, new).other_subject is expected


def test_a_list_has_room_for_a_second_item() -> None:
    assert difference("The user likes tea.", "The user likes coffee.").list_item
    assert difference("小林喜欢喝绿茶。", "小林喜欢喝红茶。").list_item
    assert not difference("The user likes tea.", "The user hates tea.").list_item
    assert not difference("Theo owns 2 boats.", "Theo owns 3 boats.").list_item


def test_negation_change_and_swap() -> None:
    assert difference("The lease allows pets.", "The lease doesn't allow pets.").negated
    assert difference("图书馆周日开放。", "图书馆周日不开放。").negated
    assert difference("Daniel lives in Hamburg.", "Daniel moved to Leipzig.").changes
    assert difference("Felix wohnt in Kassel.", "Felix wohnt jetzt in Göttingen.").changes
    assert not difference("Julia is married since 2015.", "Julia is married since 2018.").changes
    assert difference("Peter owes Maria 200 euros.", "Maria owes Peter 200 euros.").swapped


def test_sentences_of_a_document() -> None:
    text = "Ask Dr. Weber about the knee. He is in on Mondays!\n\nNo.\n备用钥匙在鞋柜里。门口有灯。"
    assert sentences(text) == ["Weber about the knee.", "He is in on Mondays!", "备用钥匙在鞋柜里。", "门口有灯。"]
    assert len(sentences("One two three four. " * 100)) == SENTENCES
    assert is_short("word " * 40) and not is_short("word " * 41)
    assert is_short("备" * 80) and not is_short("备" * 81)


@given(texts, texts)
def test_any_two_texts_can_be_compared(old: str, new: str) -> None:
    one, other = difference(old, new), difference(new, old)
    assert 0.0 <= one.overlap <= 1.0
    assert 0.0 <= one.in_order <= 1.0
    assert one.negated == other.negated
    assert one.swapped == other.swapped
    assert (one.numbers is None) == (other.numbers is None)
    assert not (one.numbers and not one.omits)
    assert len(words(old * 50)) <= COMPARED_WORDS


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    found = difference(text, text)
    assert found.overlap == (1.0 if words(text) else 0.0)
    assert found.exchanges == ()
    assert not (found.other_subject or found.numbers or found.negated or found.changes or found.swapped)
