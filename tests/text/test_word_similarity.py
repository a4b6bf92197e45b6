"""The scores of many texts at once are those of each text alone, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.text import word_similarity
from trivet.text.trigrams import PreparedQuery
from trivet.text.word_similarity import similarities

GOLDEN = Path(__file__).parents[1] / "golden" / "pg_trgm.jsonl"

anything = st.text(st.characters(exclude_categories=()), max_size=40)
#: Few letters, so that trigrams repeat, runs meet across words and stretches compete.
crowded = st.text("abc ", max_size=80)


def alone(query: str, texts: list[str]) -> list[float]:
    prepared = PreparedQuery(query)
    return [prepared.score(text) for text in texts]


def golden() -> dict[str, list[dict[str, Any]]]:
    by_query: dict[str, list[dict[str, Any]]] = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines()[1:]:
        case = json.loads(line)
        by_query.setdefault(case["query"], []).append(case)
    return by_query


def test_golden_values_of_a_real_server() -> None:
    for query, cases in golden().items():
        found = similarities(PreparedQuery(query), [case["text"] for case in cases])
        assert found == pytest.approx([case["word_similarity"] for case in cases], abs=1e-6), query


@settings(max_examples=300)
@given(query=crowded, texts=st.lists(crowded, max_size=8))
def test_as_each_alone(query: str, texts: list[str]) -> None:
    assert similarities(PreparedQuery(query), texts) == alone(query, texts)


@given(query=anything, texts=st.lists(anything, max_size=5))
def test_whatever_the_characters(query: str, texts: list[str]) -> None:
    assert similarities(PreparedQuery(query), texts) == alone(query, texts)


def test_texts_without_a_letter_stand_between_others() -> None:
    texts = ["", "kettle", "!?", "  ", "the kettles whistle", ""]
    assert similarities(PreparedQuery("kettle"), texts) == alone("kettle", texts)
    assert similarities(PreparedQuery("?"), texts) == [0.0] * 6
    assert similarities(PreparedQuery("kettle"), []) == []


def test_a_trigram_seen_before_the_first_run_is_new_behind_it() -> None:
    # "dry" stands before the first trigram of the query and again inside the best stretch
    texts = ["dry amber dry amber lamp", "dry dry dry lamp dry amber"]
    assert similarities(PreparedQuery("amber lamp"), texts) == alone("amber lamp", texts)


def test_long_texts_with_many_letters_of_many_scripts() -> None:
    letters = [chr(0x4E00 + n) for n in range(1_500)]
    chinese = "".join(letters)
    long = " ".join(f"word{n} kettle{n % 7}" for n in range(900))  # more than single precision tells apart
    texts = [chinese, long, chinese[::-1] + long, "kettle"]
    for query in ("kettle word7", chinese[100:130]):
        assert similarities(PreparedQuery(query), texts) == alone(query, texts)


def test_what_is_too_much_for_one_batch_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_similarity, "_MAX_CHARACTERS", 40)
    texts = ["a kettle on the stove", "ketle", "x" * 100 + " kettle", "the kettles whistle", "nothing"]
    assert similarities(PreparedQuery("kettle"), texts) == alone("kettle", texts)


def test_the_ways_to_tell_trigrams_apart_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a kettle on the stove, a kettle", "ketle ketle", "stove kettle stove"]
    usual = similarities(PreparedQuery("kettle stove"), texts)
    monkeypatch.setattr(word_similarity, "_TABLE", 1)  # no table: sorted and looked up
    monkeypatch.setattr(word_similarity, "_FEW", 0)  # double precision
    assert similarities(PreparedQuery("kettle stove"), texts) == usual == alone("kettle stove", texts)
