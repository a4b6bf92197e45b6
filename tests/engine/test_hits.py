"""A page continues where the one before it ended, whatever reranks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import trivet
from trivet.rerank.learned import Learned
from trivet.types import Hit

COUNT = 150


@pytest.fixture(scope="module")
def many() -> Iterator[trivet.Engine]:
    """Documents that all match a little, in conversations, so that the second stage has something to say of each."""
    things = ("kettle", "heron", "gate", "ladder", "lamp", "rope", "barrel")
    with trivet.open(":memory:", embedder="hashing:64") as memory:
        memory.add(
            [
                {
                    "id": f"d{n:03}",
                    "text": f"the {things[n % 7]} by the {things[n * 5 % 7]} and a ripe apple {'more ' * (n % 11)}{n}",
                    "meta": {"session": n // 6, "role": "assistant" if n % 3 else "user"},
                }
                for n in range(COUNT)
            ]
        )
        memory.wait()
        yield memory


QUERY = "Ripe apple by the kettle"
WAYS: list[dict[str, Any]] = [
    {},
    {"rerankers": ["learned"]},
    {"rerankers": ["learned", "dedup"], "fusion": "rrf", "weighing": "fixed"},
    {"rerankers": [{"name": "learned", "words": -10, "session": -10, "assistant": -10}]},
    {"rerankers": []},
    {"rerankers": [], "context": 0.5},
    {"context": 0.5},
]


def pages(memory: trivet.Engine, k: int, **how: Any) -> list[Hit]:
    found: list[Hit] = []
    deep = dict.fromkeys(("lexical", "dense"), COUNT)
    for offset in range(0, COUNT + k, k):
        found += memory.search(QUERY, k=k, offset=offset, depths=deep, **how).hits
    return found


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("k", [7, 10])
def test_nothing_is_repeated_or_skipped_and_no_score_rises(many: trivet.Engine, k: int, how: dict[str, Any]) -> None:
    found = pages(many, k, **how)
    assert sorted(hit.id for hit in found) == [f"d{n:03}" for n in range(COUNT)]
    assert [hit.rank for hit in found] == list(range(1, COUNT + 1))
    assert all(one.score >= other.score for one, other in pairwise(found))


def test_behind_what_was_reranked_the_fused_order_goes_on(many: trivet.Engine) -> None:
    found = pages(many, 10, rerankers=["learned"])
    fused = [hit.id for hit in pages(many, 10, rerankers=[])]
    assert Learned.sees < COUNT
    assert {hit.id for hit in found[: Learned.sees]} == set(fused[: Learned.sees])
    assert [hit.id for hit in found[: Learned.sees]] != fused[: Learned.sees]
    assert [hit.id for hit in found[Learned.sees :]] == fused[Learned.sees :]
    for hit in found:
        steps = [hit.fused, *(note.after for note in hit.adjustments)]
        assert hit.score == pytest.approx(steps[-1])
    moved = [note for hit in found[Learned.sees :] for note in hit.adjustments]
    assert {note.reranker for note in moved} <= {"context", "page"}


def test_a_pool_of_a_fixed_size_is_the_last_page(many: trivet.Engine) -> None:
    assert len(pages(many, 10, rerankers=["learned"], pool=80)) == 80


def test_a_threshold_holds_behind_the_pool_too(many: trivet.Engine) -> None:
    everything = pages(many, 10)
    middle = sorted(hit.relevance for hit in everything)[COUNT // 3]
    kept = pages(many, 10, min_relevance=middle)
    assert [hit.id for hit in kept] == [hit.id for hit in everything if hit.relevance >= middle]
