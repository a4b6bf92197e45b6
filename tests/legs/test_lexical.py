"""The lexical leg passes the terms of the query on unchanged and says how it searched."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trivet.legs.leg import LegQuery
from trivet.legs.lexical import Lexical
from trivet.text.analysis import Analyzer, ParsedQuery


class Index:
    """A lexical index that records what it is asked and returns what it was given."""

    def __init__(self, *found: tuple[float, int, int], ceiling: float = 10.0) -> None:
        self.found, self.ceiling, self.asked = list(found), ceiling, []

    def search(self, *asked: Any) -> Any:
        self.asked.append(asked)
        return self.found, self.ceiling, ("any word",)


def leg(index: Index, parse: Any = None) -> Lexical:
    analyzer: Any = Analyzer("en") if parse is None else SimpleNamespace(query=parse)
    collection: Any = SimpleNamespace(lexical=index, analyzer=analyzer)
    return Lexical(collection)


def test_what_is_asked() -> None:
    index, scope = Index(), object()
    leg(index).rank(LegQuery('the running "red fox"', 42, scope, match="all"), 7)
    ((parsed, match, depth, seen, version),) = index.asked
    assert parsed.terms == ("run", "red", "fox")
    assert parsed.phrases == (("red", "fox"),)
    assert (match, depth, version) == ("all", 7, 42)
    assert seen is scope


def test_what_is_answered() -> None:
    made = leg(Index((8.0, 5, 1), (4.0, 6, 2))).rank(LegQuery("fox", 1), 10)
    assert (made.leg, made.keys, made.scores, made.passages, made.notes) == (
        "lexical",
        (1, 2),
        (8.0, 4.0),
        (5, 6),
        ("any word",),
    )
    assert (made.floor, made.unrelated, made.strength(8.0)) == (0.0, 0.0, pytest.approx(0.8))


def test_the_gate() -> None:
    index = Index((8.0, 5, 1), (4.0, 6, 2))
    assert leg(index).rank(LegQuery("fox", 1, gate=5.0), 10).keys == (1,)


@pytest.mark.parametrize("text", ["", "?!", "...", "\u2014", "\U0001f600"])
def test_no_words_no_call(text: str) -> None:
    index = Index((8.0, 5, 1))
    made = leg(index).rank(LegQuery(text, 1), 10)
    assert (made.keys, made.notes, index.asked) == ((), ("no words in the query",), [])


def test_a_phrase_alone_is_a_query() -> None:
    index = Index((1.0, 1, 1))
    assert len(leg(index, lambda _: ParsedQuery(phrases=(("to", "be"),))).rank(LegQuery("x", 1), 5)) == 1


def test_stop_words_count_where_there_is_nothing_else() -> None:
    index = Index()
    leg(index).rank(LegQuery("to be or not to be", 1), 5)
    assert set(index.asked[0][0].terms) == {"to", "be", "or", "not"}
