"""A block that grows keeps what it handed out, and finds what all its parts together would."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.stores.sqlite.vector_block import Block, Part, Room, joined

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
