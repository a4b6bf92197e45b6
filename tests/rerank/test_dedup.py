from __future__ import annotations

from collections.abc import Callable

import pytest

from trivet.rerank.dedup import Dedup
from trivet.types import Document, Hit, Passage, Query

MakeHit = Callable[..., Hit]

QUERY = Query("anything")


def test_the_first_of_each_content_stays_in_order(hit: MakeHit) -> None:
    texts = ["The build is red.", "Use uv.", "  the BUILD\n is red.", "use\tuv.", "Something else"]
    hits = [hit(str(i), 1.0 - i / 10, text=text, rank=i + 1) for i, text in enumerate(texts)]
    assert [(h.rank, h.id) for h in Dedup().rerank(hits, QUERY)] == [(1, "0"), (2, "1"), (3, "4")]


@pytest.mark.parametrize(
    ("one", "other"),
    [("ﬁle Ａ１", "file a1"), ("Straße", "STRASSE"), ("a\u00a0b", "a b"), ("caf\u00e9", "cafe\u0301")],
)
def test_the_same_to_a_reader(hit: MakeHit, one: str, other: str) -> None:
    assert [h.id for h in Dedup().rerank([hit("a", 2, text=one), hit("b", 1, text=other)], QUERY)] == ["a"]


@pytest.mark.parametrize(("one", "other"), [("a b", "ab"), ("café", "cafe"), ("use uv.", "use uv")])
def test_not_the_same(hit: MakeHit, one: str, other: str) -> None:
    assert len(Dedup().rerank([hit("a", 2, text=one), hit("b", 1, text=other)], QUERY)) == 2


@pytest.mark.parametrize(("limit", "kept"), [(0, 3), (-5, 3), (1, 1), (2, 2), (9, 3)])
def test_limit(hit: MakeHit, limit: int, kept: int) -> None:
    assert len(Dedup(limit=limit).rerank([hit(id, 1.0) for id in "abc"], QUERY)) == kept


def test_no_text_goes_by_the_title_and_neither_is_no_copy() -> None:
    def bare(id: str, text: str = " ", title: str = "") -> Hit:
        return Hit(1, id, 1.0, 0.5, Document(id=id, text=text, title=title), Passage(0, 0, 0, ""))

    hits = [bare("a"), bare("b"), bare("c", title="Plan"), bare("d", title="plan"), bare("e", text="Plan")]
    assert [h.id for h in Dedup().rerank(hits, QUERY)] == ["a", "b", "c", "e"]


def test_it_compares_documents_not_the_passages_shown(hit: MakeHit) -> None:
    hits = [hit("a", 2, text="same start, then this", passage="same start"), hit("b", 1, text="same start, then that")]
    assert len(Dedup().rerank(hits, QUERY)) == 2
    shown = [hit("a", 2, text="one text", passage="one"), hit("b", 1, text="One text", passage="text")]
    assert len(Dedup().rerank(shown, QUERY)) == 1
