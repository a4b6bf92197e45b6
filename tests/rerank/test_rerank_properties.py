"""Properties that hold for every reranker and any hits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank import Reranker, build, describe
from trivet.rerank.composite import Composite
from trivet.types import Hit, Query

MakeHit = Callable[..., Hit]

EVERY = [*(build(name) for name in describe()), Composite(form="multiplicative")]
NOW = datetime(2026, 5, 1, tzinfo=UTC)

words = st.sampled_from(["red build", "the red build", "Red  Build", "use uv", "deploy", ""])
moments = st.none() | st.integers(-50, 5000).map(lambda hours: NOW - timedelta(hours=hours))


@st.composite
def some_hits(draw: st.DrawFn) -> list[tuple[float, dict[str, object]]]:
    scores = sorted(
        draw(st.lists(st.sampled_from([-1.0, 0.0, 0.01, 0.5, 1.0]) | st.floats(-2, 2), max_size=8)), reverse=True
    )
    fields = st.fixed_dictionaries({"text": words, "title": words, "importance": st.floats(0, 1), "accessed": moments})
    return [(score, draw(fields)) for score in scores]


@pytest.mark.parametrize("reranker", EVERY, ids=lambda r: r.name)
@given(made=some_hits(), text=words)
def test_the_contract(hit: MakeHit, reranker: Reranker, made: list[tuple[float, dict[str, object]]], text: str) -> None:
    hits: list[Hit] = [hit(str(i), score, rank=i + 1, **fields) for i, (score, fields) in enumerate(made)]
    given_hits = {h.id: h for h in hits}
    ranked = reranker.rerank(hits, Query(text, at=NOW))

    assert len({h.id for h in ranked}) == len(ranked), "a hit came back twice"
    assert {h.id for h in ranked} <= given_hits.keys(), "a hit was added"
    assert [h.rank for h in ranked] == list(range(1, len(ranked) + 1))
    assert all(a.score > b.score or (a.score == b.score and int(a.id) < int(b.id)) for a, b in pairwise(ranked))
    if reranker.drops_only:
        assert [(h.id, h.score) for h in ranked] == [(h.id, h.score) for h in hits if h.id in {h.id for h in ranked}]
    for after in ranked:
        before = given_hits[after.id]
        assert isfinite(after.score)
        assert (after.document, after.passage, after.relevance, after.fused, after.contributions) == (
            before.document,
            before.passage,
            before.relevance,
            before.fused,
            before.contributions,
        )
        if after.score == before.score:
            assert after.adjustments == before.adjustments
        else:
            (note,) = after.adjustments
            assert (note.reranker, note.before, note.after) == (reranker.name, before.score, after.score)
            assert note.reason


@pytest.mark.parametrize("reranker", EVERY, ids=lambda r: r.name)
def test_no_hits(reranker: Reranker) -> None:
    assert reranker.rerank([], Query("anything")) == []
