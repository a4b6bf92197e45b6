from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.text import trigrams as module
from trivet.text.trigrams import PreparedQuery, similarity, trigrams, upper_bound, word_similarity

GOLDEN = Path(__file__).parents[1] / "golden" / "pg_trgm.jsonl"

anything = st.text(st.characters(exclude_categories=()))
#: Few letters, so that trigrams repeat and stretches compete.
crowded = st.text("abc ", max_size=60)


def golden() -> list[dict[str, Any]]:
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def test_golden_values_of_a_real_server() -> None:
    cases = golden()
    assert len(cases) >= 300
    for case in cases:
        query, text = case["query"], case["text"]
        assert word_similarity(query, text) == pytest.approx(case["word_similarity"], abs=1e-6), (query, text)
        assert similarity(query, text) == pytest.approx(case["similarity"], abs=1e-6), (query, text)


def test_a_word_has_two_blanks_before_it_and_one_behind() -> None:
    assert trigrams("Cat, a") == ["  c", " ca", "cat", "at ", "  a", " a "]
    assert trigrams("snake_case") == trigrams("snake case")
    assert trigrams("... _ ²") == []


def test_the_manuals_example() -> None:
    # word: "  w", " wo", "wor", "ord", "rd "; two words holds the first four of them in a row of four.
    assert word_similarity("word", "two words") == pytest.approx(4 / 5)
    assert similarity("word", "two words") == pytest.approx(4 / 11)


def test_a_typo_is_forgiven_and_order_matters_not() -> None:
    assert word_similarity("walnutt", "allergic to walnuts") > 0.6
    assert word_similarity("cat dog", "dog cat") == 1.0


def by_definition(query: str, text: str) -> Fraction:
    """The stretch search of pg_trgm in its plainest form: every start is tried with sets."""
    wanted, found = set(trigrams(query)), trigrams(text)
    best, start = Fraction(0), -1

    def score(begin: int, end: int) -> Fraction:
        stretch = set(found[begin : end + 1])
        return Fraction(len(stretch & wanted), len(stretch | wanted))

    for end, trigram in enumerate(found):
        if trigram in wanted:
            start = end if start < 0 else start
            start = max(range(start, end + 1), key=lambda begin, end=end: (score(begin, end), -begin))  # type: ignore[misc]
            best = max(best, score(start, end))
    return best


@given(crowded, crowded)
def test_the_search_is_that_of_the_definition(query: str, text: str) -> None:
    assert word_similarity(query, text) == pytest.approx(float(by_definition(query, text)))


@given(anything, anything)
def test_similarities_lie_between_0_and_1_for_any_text(query: str, text: str) -> None:
    assert 0.0 <= word_similarity(query, text) <= 1.0
    assert 0.0 <= similarity(query, text) == similarity(text, query) <= 1.0
    assert word_similarity(text, text) == (1.0 if trigrams(text) else 0.0)


@given(crowded, crowded)
def test_the_upper_bound_holds_and_skips_only_what_is_below_it(query: str, text: str) -> None:
    prepared = PreparedQuery(query)
    bound = upper_bound(len(prepared.trigrams.keys() & set(trigrams(text))), prepared.size)
    exact = prepared.score(text)
    assert exact <= bound
    assert prepared.score(text, at_least=0.3) == (0.0 if bound < 0.3 else exact)


def test_an_empty_query_is_like_nothing() -> None:
    assert PreparedQuery("?!").size == 0
    assert PreparedQuery("").score("text", at_least=0.1) == 0.0
    assert upper_bound(0, 0) == 0.0


def test_a_prepared_query_forgets_words_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_WORDS", 4)
    prepared = PreparedQuery("banana")
    assert [prepared.score(f"w{n} x{n} bananas y{n}") for n in range(9)] == [word_similarity("banana", "bananas")] * 9
    assert len(prepared._steps) <= 4
