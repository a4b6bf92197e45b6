"""The judged set in six languages: what it holds, and that the page is that of the results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trivet.text.languages import language_of

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


@pytest.fixture
def languages(script: Any) -> Any:
    return script("languages")


def test_every_question_has_its_document(languages: Any) -> None:
    documents = {row["id"]: row["language"] for row in languages.read("documents")}
    questions = languages.read("questions")
    assert Counter(documents.values()) == dict.fromkeys(languages.LANGUAGES, 8)
    assert Counter(row["set"] for row in questions) == {
        **dict.fromkeys(languages.LANGUAGES, 6),
        "forms": 12,
        "cross": 6,
    }
    for row in questions:
        assert (documents[row["document"]] == row["language"]) is (row["set"] != languages.CROSS)


def test_the_language_of_the_documents_is_recognised(languages: Any) -> None:
    for code in languages.LANGUAGES:
        _, documents = languages.collection_of(code)
        found = language_of(row["text"] for row in documents)
        assert found is not None, code
        assert found.code == code


def test_a_cell_counts_what_is_not_found(languages: Any) -> None:
    assert languages.cell([1, 2, 0, 1]) == "0.62 (2 of 4)"
    assert languages.rank(["b", "a"], "a") == 2
    assert languages.rank(["b"], "a") == 0


def test_words_give_the_ranks_of_the_results(languages: Any) -> None:
    (newest,) = RESULTS.glob("languages-*.json")
    told = json.loads(newest.read_text(encoding="utf-8"))["ranks"]
    for name in ("de", languages.FORMS):
        assert languages.ranks(name, "words") == told[name]["words"]


def test_the_page_is_that_of_the_results(languages: Any) -> None:
    (newest,) = RESULTS.glob("languages-*.json")
    found = json.loads(newest.read_text(encoding="utf-8"))
    assert languages.PAGE.read_text(encoding="utf-8") == languages.page(found, newest.name)
