"""The arrays of a block contain the concepts that the documents name."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph.mentions import ARRAYS, TITLE, Block, Entry, MentionGraph, Names, merged

entries = st.dictionaries(
    st.integers(1, 12),
    st.dictionaries(st.integers(1, 8), st.sampled_from([0, 1, 5, TITLE]), max_size=5),
    max_size=8,
).map(lambda found: [Entry(did, did * 10, named) for did, named in found.items()])


def array(*values: int, kind: Any = np.int64) -> Any:
    return np.array(values, dtype=kind)


def edges(graph: MentionGraph) -> set[tuple[int, int, int]]:
    """(document, concept, mark), read from the concepts' side."""
    every = array(*range(10), kind=np.uint64)
    found = graph.naming(every)
    return {
        (int(did), int(every[at]), int(mark)) for at, did, mark in zip(found.source, found.did, found.mark, strict=True)
    }


def said(listed: list[Entry]) -> set[tuple[int, int, int]]:
    return {(entry.did, concept, mark) for entry in listed for concept, mark in entry.named.items()}


@given(entries)
def test_both_directions_say_what_was_put_in(listed: list[Entry]) -> None:
    graph = MentionGraph([Block.of(listed)])
    assert edges(graph) == said(listed)
    every = array(*range(14))
    source, hashes, marks = graph.named_by(every)
    assert {(int(every[at]), int(c), int(m)) for at, c, m in zip(source, hashes, marks, strict=True)} == said(listed)
    known = {entry.did: entry for entry in listed}
    assert graph.first_passages(every).tolist() == [known[d].pid if d in known else 0 for d in every.tolist()]
    titled = [d in known and any(mark & TITLE for mark in known[d].named.values()) for d in every.tolist()]
    assert graph.titled(every).tolist() == titled


@given(entries, entries, st.sets(st.integers(1, 12)))
def test_two_blocks_and_their_merger_are_the_same_graph(
    first: list[Entry], second: list[Entry], gone: set[int]
) -> None:
    newer = {entry.did for entry in second}
    blocks = (Block.of(first).without(newer | gone), Block.of(second).without(gone))
    kept = [entry for entry in first if entry.did not in newer | gone]
    kept += [entry for entry in second if entry.did not in gone]
    assert edges(MentionGraph(blocks)) == said(kept)
    whole = merged(blocks, lambda concept: f"name {concept}")
    assert edges(MentionGraph([whole])) == said(kept)
    assert MentionGraph([whole]).documents == MentionGraph(blocks).documents == len(kept)
    counts = MentionGraph([whole]).frequency(array(*range(10), kind=np.uint64)).tolist()
    assert counts == [sum(concept in entry.named for entry in kept) for concept in range(10)]


@given(entries)
def test_a_block_comes_back_from_its_arrays(listed: list[Entry]) -> None:
    block = Block.of(listed)
    again = Block.restored({name: getattr(block, name) for name in ARRAYS}, block.names)
    assert edges(MentionGraph([again])) == edges(MentionGraph([block]))
    assert again.titled.tolist() == block.titled.tolist()


def test_a_merged_block_knows_the_names_of_what_is_shared_and_no_others() -> None:
    listed = [Entry(1, 10, {7: 0, 8: 0}), Entry(2, 20, {7: 0})]
    whole = MentionGraph([merged([Block.of(listed)], lambda concept: {7: "Tarn é", 8: "Alone"}[concept])])
    assert whole.written(7) == "Tarn é"
    assert whole.written(8) == "…"
    assert whole.written(99) == "…"


def test_names_of_nothing_are_empty() -> None:
    assert Names()[3] == ""
    assert Names.of(["", "a", "ßé"])[2] == "ßé"


def test_a_passage_is_named_by_its_place_behind_the_first() -> None:
    found = MentionGraph([Block.of([Entry(3, 30, {1: 0, 2: 2, 4: TITLE})])]).naming(array(1, 2, 4, kind=np.uint64))
    assert found.pid.tolist() == [30, 32, 30]
