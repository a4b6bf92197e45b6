"""Hits with what the query excludes are demoted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trivet.rerank.avoid import Avoid
from trivet.text.analysis import Analyzer
from trivet.types import Hit, Query, Understood

MakeHit = Callable[..., Hit]
TERMS = Analyzer("en").content


def asked(text: str, *avoided: str) -> Query:
    return Query(text, understood=Understood(text, avoided=avoided), terms=TERMS)


def test_by_the_share_of_the_words_it_holds(hit: MakeHit) -> None:
    hits = [
        hit("both", 1.0, text="boats in stormy winds"),
        hit("one", 1.0, text="the winds of spring"),
        hit("none", 0.8, text="boats on a calm sea"),
        hit("low", 0.0, text="salt"),
    ]
    ranked = Avoid(weight=0.5).rerank(hits, asked("moods of the sea", "stormy wind"))
    scores = {h.id: h.score for h in ranked}
    assert [h.id for h in ranked][:3] == ["none", "one", "both"]
    assert scores == pytest.approx({"both": 0.5, "one": 0.75, "none": 0.8, "low": 0.0})


def test_words_that_are_wanted_too_are_no_fault(hit: MakeHit) -> None:
    hits = [hit("a", 1.0, text="harbour seals"), hit("b", 0.0, text="grey seals")]
    ranked = Avoid().rerank(hits, asked("seals of the harbour", "grey seals"))
    assert [h.score for h in ranked] == pytest.approx([1.0, -0.3])


def test_a_question_that_wants_everything_is_left_alone(hit: MakeHit) -> None:
    hits = [hit("a", 1.0), hit("b", 0.5)]
    for query in (Query("x"), asked("x"), Query("x", understood=Understood("x", avoided=("y",)))):
        assert not Avoid().concerns(query) or query.terms is None
        assert Avoid().rerank(hits, query) == hits
