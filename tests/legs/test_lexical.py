"""Does the lexical leg hand the question's words on unchanged and say how it was asked?"""

from __future__ import annotations

from typing import Any

import pytest

from trivet.analysis import Analyzer, ParsedQuery
from trivet.legs.lexical import Lexical
from trivet.legs.question import Question


class Shelf:
    """What is asked of it, and what it was told to find."""

    def __init__(self, *found: tuple[float, int, int], ceiling: float = 10.0) -> None:
        self.found, self.ceiling, self.asked = list(found), ceiling, []

    def find_words(self, *asked: Any) -> Any:
        self.asked.append(asked)
        return self.found, self.ceiling, ("any word",)


def test_what_is_asked() -> None:
    shelf, scope = Shelf(), object()
    Lexical(Analyzer("en").query, shelf).rank(Question('the running "red fox"', 42, scope, match="all"), 7)
    ((parsed, match, depth, seen, version),) = shelf.asked
    assert parsed.terms == ("run", "red", "fox")
    assert parsed.phrases == (("red", "fox"),)
    assert (match, depth, version) == ("all", 7, 42)
    assert seen is scope


def test_what_is_answered() -> None:
    made = Lexical(Analyzer("en").query, Shelf((8.0, 5, 1), (4.0, 6, 2))).rank(Question("fox", 1), 10)
    assert (made.leg, made.keys, made.scores, made.passages, made.notes) == (
        "lexical",
        (1, 2),
        (8.0, 4.0),
        (5, 6),
        ("any word",),
    )
    assert (made.floor, made.unrelated, made.strength(8.0)) == (0.0, 0.0, pytest.approx(0.8))


def test_the_gate() -> None:
    shelf = Shelf((8.0, 5, 1), (4.0, 6, 2))
    assert Lexical(Analyzer("en").query, shelf).rank(Question("fox", 1, gate=5.0), 10).keys == (1,)


@pytest.mark.parametrize("text", ["", "?!", "...", "\u2014", "\U0001f600"])
def test_no_words_no_call(text: str) -> None:
    shelf = Shelf((8.0, 5, 1))
    made = Lexical(Analyzer("en").query, shelf).rank(Question(text, 1), 10)
    assert (made.keys, made.notes, shelf.asked) == ((), ("no words in the question",), [])


def test_a_phrase_alone_is_a_question() -> None:
    shelf = Shelf((1.0, 1, 1))
    assert len(Lexical(lambda _: ParsedQuery(phrases=(("to", "be"),)), shelf).rank(Question("x", 1), 5)) == 1


def test_stop_words_count_where_there_is_nothing_else() -> None:
    shelf = Shelf()
    Lexical(Analyzer("en").query, shelf).rank(Question("to be or not to be", 1), 5)
    assert set(shelf.asked[0][0].terms) == {"to", "be", "or", "not"}
