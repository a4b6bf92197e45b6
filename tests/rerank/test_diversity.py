"""``mmr`` and ``cap``: the order and the scores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trivet.errors import InputError
from trivet.rerank.cap import Cap
from trivet.rerank.mmr import Mmr
from trivet.types import Hit, Query

MakeHit = Callable[..., Hit]


class TestMmr:
    def test_a_copy_makes_room_for_something_new(self, hit: MakeHit) -> None:
        hits = [
            hit("a", 1.0, text="the lamp in the hall is broken"),
            hit("copy", 0.95, text="the lamp in the hall is broken again"),
            hit("new", 0.8, text="an electrician comes on Friday"),
            hit("last", 0.0, text="bread and salt"),
        ]
        assert [h.id for h in Mmr(weight=0.5).rerank(hits, Query("lamp"))][:2] == ["a", "new"]

    def test_the_score_is_the_value_of_the_paper(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="red door"), hit("b", 0.5, text="red wall"), hit("c", 0.0, text="salt")]
        by_id = {h.id: h for h in Mmr(weight=0.6).rerank(hits, Query("red"))}
        # one of two words in common: cosine 1 / sqrt(2 * 2); spread 1, worst 0
        assert by_id["b"].score == pytest.approx(0.6 * 0.5 - 0.4 * 0.5)
        assert by_id["b"].adjustments[0].reason == "similarity to a hit above it 0.50"

    def test_a_weight_of_one_changes_nothing(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="same"), hit("b", 0.5, text="same")]
        assert Mmr(weight=1.0).rerank(hits, Query("x")) == hits

    def test_likeness_is_of_the_analysers_terms(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, text="Lamps"), hit("b", 0.9, text="lamp"), hit("c", 0.5, text="salt")]
        query = Query("x", terms=lambda text: [text.lower().rstrip("s")])
        assert [h.id for h in Mmr(weight=0.5).rerank(hits, query)] == ["a", "c", "b"]


class TestCap:
    def test_two_of_a_session_then_the_others(self, hit: MakeHit) -> None:
        hits = [hit(f"{session}{n}", 1.0 - n / 10, meta={"session": session}) for n, session in enumerate("aaaba")]
        capped = Cap().rerank(hits, Query("x"))
        assert [h.id for h in capped] == ["a0", "a1", "b3", "a2", "a4"]
        assert capped[3].adjustments[0].reason == "more than 2 of one session"

    def test_without_the_field_nobody_is_a_sibling(self, hit: MakeHit) -> None:
        hits = [hit(str(n), 1.0 - n / 10, rank=n + 1) for n in range(5)]
        assert Cap(most=1).rerank(hits, Query("x")) == hits

    def test_any_field_even_a_built_in_one(self, hit: MakeHit) -> None:
        hits = [hit("a", 1.0, kind="note"), hit("b", 0.9, kind="note"), hit("c", 0.8, kind="task")]
        assert [h.id for h in Cap(most=1, field="kind").rerank(hits, Query("x"))] == ["a", "c", "b"]

    def test_equal_scores_still_move(self, hit: MakeHit) -> None:
        hits = [hit("a", 0.5, kind="note"), hit("b", 0.5, kind="note"), hit("c", 0.5, kind="task")]
        assert [h.id for h in Cap(most=1, field="kind").rerank(hits, Query("x"))] == ["a", "c", "b"]

    def test_a_field_must_be_named(self) -> None:
        with pytest.raises(InputError, match="field is ''; allowed: a name of 1 to 200 characters"):
            Cap(field="")
