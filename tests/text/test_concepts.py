"""The concepts of a text, with keys that are the same in every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.text.concepts import MAX_CONCEPTS, MAX_NAME, concepts, digest, key_of, subjects, triples_of
from trivet.text.stop_words import STOP_WORDS

EN = STOP_WORDS["en"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("she wrote to Ada Lovelace from Turin", {"ada lovelace", "turin"}),
        ("the Bridge of the Three Queens was closed", {"bridge of the three queens"}),
        ("a letter by J. R. Hartley", {"j r hartley"}),
        ("Hartley's nephew Tom arrived", {"hartley", "tom"}),
        ("it raises ERR_CONN_42 in os.path and GatewaySession", {"errconn42", "os.path", "gatewaysession"}),
        ("he sang “a lullaby for crows” twice", {"lullaby for crows"}),
        ("we drove to Łódź and Besançon", {"lodz", "besancon"}),
        ("die Straße nach München", {"munchen", "strasse"}),
        ("她在大阪见到老朋友", {"大阪"}),
        ("タワーの写真", {"タワー", "写真"}),
        ("부산에서 친구를 만났다", {"부산", "친구"}),
        ("زرت مدينة حلب القديمة", {"مدينة", "حلب", "مدينة حلب"}),
    ],
)
def test_what_a_text_names(text: str, named: set[str]) -> None:
    assert named <= concepts(text, EN | STOP_WORDS["de"]).keys()


@pytest.mark.parametrize(
    "text", ["", "   ", "nothing is named in here", "The When Where", "?!… 🙂", "42 17 2024", "\ud800"]
)
def test_a_text_that_names_nothing(text: str) -> None:
    assert concepts(text, EN) == {}


def test_two_names_joined_by_a_small_word_are_both_there_and_so_is_the_whole() -> None:
    assert concepts("it was Romeo and Juliet again", EN).keys() == {"romeo", "juliet", "romeo and juliet"}


def test_a_long_name_is_found_by_its_parts_but_not_by_its_single_words() -> None:
    found = concepts("at the Upper Tarn Valley Railway", EN)
    assert {"upper tarn valley railway", "upper tarn", "tarn valley", "valley railway"} <= found.keys()
    assert {"upper", "tarn", "valley", "railway"}.isdisjoint(found)


def test_punctuation_ends_a_name() -> None:
    assert concepts("with Ada, Bert and others", EN).keys() == {"ada", "bert"}


def test_a_concept_remembers_how_it_was_written() -> None:
    assert concepts("in New-Haven, later in new-haven", EN)["newhaven"] == "New-Haven"


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("The Tarns (band)", {"tarns"}),
        ("Tarn", {"tarn"}),
        ("Recipes > Soups", {"recipes soups", "recipes", "soups"}),
        ("", set()),
        ("(untitled)", {"untitled"}),
        ("大阪城", {"大阪城"}),
    ],
)
def test_what_a_title_is_about(title: str, keys: set[str]) -> None:
    assert subjects(title).keys() == keys


def test_a_text_that_mentions_a_title_meets_it() -> None:
    for title, text in (
        ("The Glass Ferry", "They crossed on the Glass Ferry at dawn"),
        ("Émile Rostand", "a portrait of Emile Rostand’s mother"),
        ("大阪城", "我昨天参观了大阪城"),
    ):
        assert subjects(title).keys() & concepts(text, EN).keys(), title


@given(st.text(max_size=400))
def test_any_text_has_concepts_within_bounds(text: str) -> None:
    found = concepts(text, EN)
    assert len(found) <= MAX_CONCEPTS
    assert all(1 < len(key) <= MAX_NAME and written for key, written in found.items())
    assert concepts(text, EN) == found


@given(st.text(alphabet="abÄéØßZ 0-_大阪タハ", max_size=40))
def test_a_key_is_its_own_key(text: str) -> None:
    assert key_of(key_of(text)) == key_of(text)


@given(
    st.lists(
        st.sampled_from(["Ada", "Bert", "saw", "the", "Tarn", "of", "and", "Valley,", "’s", "X9", "“Q”"]), max_size=60
    )
)
def test_more_text_never_takes_a_concept_of_the_first_sentence_away(words: list[str]) -> None:
    first = concepts("Clara met Dora.", EN)
    assert first.keys() <= concepts("Clara met Dora. " + " ".join(words), EN).keys()


def test_a_page_of_names_is_cut() -> None:
    text = ", ".join(f"Name{chr(97 + one)}{chr(97 + two)} Surname" for one in range(26) for two in range(26))
    assert len(concepts(text)) == MAX_CONCEPTS


def test_digests_fit_64_bits_and_are_the_same_everywhere() -> None:
    assert digest("ada lovelace") == 10_652_485_631_638_930_289 < 2**64
    assert digest("ada") != digest("ada ")
    assert len({digest(str(number)) for number in range(10_000)}) == 10_000


def test_triples_are_read_from_metadata_and_other_shapes_are_not() -> None:
    meta = {"triples": [["Tarn", "flows into", "Garonne"], ["only", "two"], "text", ["a", 1, "b"], ["", "r", "o"]]}
    assert [tuple(triple) for triple in triples_of(meta)] == [("Tarn", "flows into", "Garonne")]
    assert triples_of({"triples": "Tarn flows"}) == triples_of({}) == ()
