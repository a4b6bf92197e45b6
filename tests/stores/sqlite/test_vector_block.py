"""A block that grows keeps what it handed out, and finds what all its parts together would."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.stores.sqlite import quantized_codes, vector_block
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.vector_block import HALF, Block, Halved, Part, Room, joined

from .test_vector_index import DIM, clustered


def part(start: int, count: int) -> Part:
    numbers = np.arange(start + 1, start + count + 1, dtype=np.int64)
    return numbers, numbers * 10, clustered(count, seed=start)


def same(one: Block, other: Block) -> bool:
    return (
        one.pids.tolist() == other.pids.tolist()
        and one.dids.tolist() == other.dids.tolist()
        and bool((one.rows.take(None) == other.rows.take(None)).all())
    )


@given(st.lists(st.integers(1, 90), min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_what_was_handed_out_stays_as_it_was(sizes: list[int]) -> None:
    room, block = Room(DIM), joined([], DIM)
    parts: list[Part] = []
    given_out: list[tuple[Block, Block]] = []
    for size in sizes:
        parts.append(part(sum(len(known[0]) for known in parts), size))
        block = room.extended(block, [parts[-1]])
        given_out.append((block, joined(list(parts), DIM)))
    assert all(same(was, whole) for was, whole in given_out)


def test_a_block_that_is_not_the_last_is_copied() -> None:
    """Two that grow out of one do not write over each other."""
    room = Room(DIM)
    first = room.extended(joined([], DIM), [part(0, 10)])
    one = room.extended(first, [part(10, 5)])
    other = room.extended(first, [part(20, 7)])
    assert same(one, joined([part(0, 10), part(10, 5)], DIM))
    assert same(other, joined([part(0, 10), part(20, 7)], DIM))


def test_a_removed_row_stays_removed_when_more_is_added() -> None:
    room = Room(DIM)
    block = room.extended(joined([], DIM), [part(0, 10)])
    block.remove({3})
    grown = room.extended(block, [part(10, 5)])
    assert grown.pids[2] == 0
    query = part(0, 10)[2][2]
    assert 30 not in [did for _, _, did in grown.best(query, 20, None)]
    assert len(grown.best(query, 20, None)) == 14


def coded(count: int, several: int = 1) -> Block:
    """Return a block with codes, whose documents have so many passages each."""
    pids, _, vectors = part(0, count)
    codes = quantized_codes.build(lambda rows: vectors[rows], count, DIM, False)
    return Block(pids, (pids - 1) // several + 1, Halved(vectors.astype(HALF)), codes)


def test_a_filter_that_is_used_often_is_compared_by_a_copy_of_its_vectors() -> None:
    block = coded(600)
    queries = clustered(6, seed=7)
    scopes = [Scope.of(list(range(first, 601, 20)), 600) for first in range(1, vector_block.COPIES + 3)]
    for scope in scopes:
        allowed = np.flatnonzero(scope.rows(block.dids))
        expected = [block._top(block.rows.scores(allowed, query), allowed, 9) for query in queries]
        assert [block.best(query, 9, scope) for query in queries] == expected
    masks = [scope.seen[1] for scope in scopes]
    assert [mask.vectors is not None for mask in masks] == [False, False] + [True] * vector_block.COPIES
    once = Scope.of([2, 4], 600)
    block.best(queries[0], 2, once)
    assert once.seen[1].vectors is None


def test_any_number_of_vectors_is_compared_in_slices() -> None:
    vectors = clustered(3 * vector_block.NEAR + 5, seed=3)
    query, rows = vectors[9], np.arange(0, len(vectors), 2)
    halved, held = Halved(vectors.astype(HALF)), vectors.astype(HALF).astype(np.float32)
    np.testing.assert_allclose(halved.scores(None, query), held @ query, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(halved.scores(rows, query), held[rows] @ query, rtol=1e-5, atol=1e-6)
    assert halved.scores(rows[:0], query).tolist() == []


def test_of_a_document_with_several_passages_the_best_one_counts() -> None:
    block, query = coded(600, several=3), clustered(1, seed=9)[0]
    scores = block.rows.scores(None, query)
    best: dict[int, tuple[float, int]] = {}
    for score, pid, did in zip(scores.tolist(), block.pids.tolist(), block.dids.tolist(), strict=True):
        best[did] = max(best.get(did, (-2.0, 0)), (score, -pid))
    expected = sorted(((-score, did) for did, (score, _) in best.items()))[:50]
    assert [did for _, _, did in block.best(query, 50, None)] == [did for _, did in expected]
