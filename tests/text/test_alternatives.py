"""The forms of German verbs and the parts of German compounds, in terms of the German analyser."""

from __future__ import annotations

import pytest

from trivet.text.alternatives import Alternatives, german
from trivet.text.analysis import Analyzer

ANALYZER = Analyzer("de")


def alternatives(word: str) -> Alternatives:
    return german(word, lambda part: ANALYZER.content(part)[0])


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("gewächshaustür", ("gewachshaus", "tur")),
        ("wohnungstür", ("wohnung", "tur")),
        ("sonnenschirm", ("sonn", "schirm")),
        ("steuererklärung", ("steu", "erklar")),
        ("kinderzimmer", ("kind", "zimm")),
        ("fahrradkeller", ("fahrrad", "kell")),
    ],
)
def test_a_compound_has_its_parts_among_the_alternatives(word: str, parts: tuple[str, str]) -> None:
    assert parts in alternatives(word)


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("klemmende", "klemmt"),
        ("klemmt", "klemm"),
        ("geklemmt", "klemmt"),
        ("klemmst", "klemmt"),
        ("klemmen", "geklemmt"),
        ("arbeiten", "gearbeitet"),
        ("wartend", "gewartet"),
    ],
)
def test_a_verb_has_its_other_forms_among_them(word: str, form: str) -> None:
    assert (form,) in alternatives(word)


@pytest.mark.parametrize("word", ["tür", "rad", "x86", "e-mail", ""])
def test_short_words_and_names_have_none(word: str) -> None:
    assert german(word, str) == ()


def test_parts_are_not_shorter_than_a_word() -> None:
    pairs = [words for words in alternatives("reparatur") if len(words) == 2]
    assert ("repara", "tur") in pairs
    assert all(len(first) >= 4 and len(last) >= 3 for first, last in pairs)


def test_stop_words_are_no_alternatives() -> None:
    """Every document has them: Gesicht is not ge-sich-t, Nachricht not nach and richt."""
    for word, of in (("gesicht", ("sich",)), ("nachricht", ("nach", "richt"))):
        assert of in alternatives(word)
        query = ANALYZER.query(word)
        assert query.alternatives is not None
        assert of not in query.alternatives(query.required[0])


def test_only_german_queries_have_alternatives() -> None:
    found = ANALYZER.query("die Gewächshaustür").alternatives
    assert found is not None
    assert ("gewachshaus", "tur") in found("gewachshaustur")
    assert found("baum") == ()
    assert Analyzer("en").query("greenhouse doors").alternatives is None
