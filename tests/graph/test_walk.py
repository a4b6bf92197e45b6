"""The walk reaches the documents with the scores that the arithmetic gives, by real paths of visible documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph import walk as module
from trivet.graph.edges import Edge
from trivet.graph.mentions import TITLE, Block, Entry, MentionGraph
from trivet.graph.walk import ABOUT, DECAY, EDGES, HUB, RAREST, SHARED_CONCEPT, Reached, walk

FILM, COMPOSER, CITY, BAND = 1, 2, 3, 4  # concepts


def graph_of(named: Mapping[int, Mapping[int, int]]) -> MentionGraph:
    return MentionGraph([Block.of([Entry(did, did * 10, dict(found)) for did, found in named.items()])], "c{}".format)


def none(dids: Sequence[int]) -> list[Edge]:
    return []


class Item(NamedTuple):
    score: float
    did: int
    pid: int
    path: tuple[int | str, ...]


def found(
    graph: MentionGraph, seeds: Mapping[int, float], edges: Any = none, seen: set[int] | None = None
) -> list[Item]:
    visible = None if seen is None else lambda dids: np.isin(dids, list(seen) or [0])
    return items(walk(graph, edges, seeds, visible, 50))


def items(reached: Reached) -> list[Item]:
    columns = (reached.scores, reached.dids, reached.pids, reached.paths)
    return [Item(*values) for values in zip(*columns, strict=True)]


def test_a_title_that_is_mentioned_is_reached_and_so_is_what_that_mentions() -> None:
    graph = graph_of({1: {FILM: TITLE, COMPOSER: 0}, 2: {COMPOSER: TITLE, CITY: 0}, 3: {CITY: TITLE}})
    reached = found(graph, {1: 0.8})
    # 1 → 2 with everything; 2 → back to 1 and on to 3 by concepts equally rare, at half the worth
    assert [(item.did, item.path) for item in reached] == [
        (2, (1, "c2", 2)),
        (1, (1, "c2", 2, "c2", 1)),
        (3, (1, "c2", 2, "c3", 3)),
    ]
    assert [item.score for item in reached] == pytest.approx([0.8, 0.2, 0.2])


def test_a_rarer_concept_has_more_to_say() -> None:
    named = {1: {FILM: 0, CITY: 0}, 2: {FILM: TITLE}, 3: {CITY: TITLE}, **{n: {CITY: 0} for n in range(4, 10)}}
    first = {item.did: item.score for item in found(graph_of(named), {1: 1.0}) if len(item.path) == 3}
    film, city = log(9 / 2), log(9 / 8)
    assert first[2] / first[3] == pytest.approx(film / city)


def test_documents_that_only_share_a_name_are_trusted_little_and_without_titles_not_at_all() -> None:
    named = {1: {COMPOSER: 0, CITY: 0, 7: TITLE}, 2: {COMPOSER: 0, 8: TITLE}, 3: {CITY: TITLE}, 4: {COMPOSER: 0}}
    reached = {item.did: item.score for item in found(graph_of(named), {1: 1.0}) if len(item.path) == 3}
    rare = {COMPOSER: log(4 / 3) * SHARED_CONCEPT, CITY: log(4 / 2) * ABOUT}
    assert reached == pytest.approx(
        {2: rare[COMPOSER] / sum(rare.values()), 3: rare[CITY] / sum(rare.values())}, rel=1e-6
    )
    assert found(graph_of({1: {COMPOSER: 0}, 2: {COMPOSER: 0}}), {1: 1.0}) == []


def test_what_everybody_names_connects_nothing() -> None:
    crowd = {did: {CITY: TITLE} for did in range(1, HUB + 2)}
    assert found(graph_of(crowd), {1: 1.0}) == []
    del crowd[HUB + 1]
    assert len(found(graph_of(crowd), {1: 1.0})) == HUB


def test_the_rarest_concepts_are_followed() -> None:
    own = {100 + at: 0 for at in range(RAREST + 1)}
    named = {1: own, **{200 + at: {100 + at: TITLE} for at in range(RAREST + 1)}, 2: {100: 0}}
    reached = {item.did for item in found(graph_of(named), {1: 1.0}) if len(item.path) == 3}
    assert 200 not in reached  # two others name it
    assert reached == {200 + at for at in range(1, RAREST + 1)}


def test_edges_and_concepts_share_the_mass() -> None:
    graph = graph_of({1: {COMPOSER: 0}, 2: {COMPOSER: TITLE}, 3: {}, 4: {}})

    def edges(dids: Sequence[int]) -> list[Edge]:
        return [Edge(1, 3, 3.0, "part-of"), Edge(1, 4, 1.0, "see-also"), Edge(1, 1, 9.0, "itself")] if 1 in dids else []

    reached = {item.did: item for item in found(graph, {1: 1.0}, edges)}
    assert reached[3].score == pytest.approx(EDGES * 0.75, rel=1e-6)
    assert reached[4].score == pytest.approx(EDGES * 0.25, rel=1e-6)
    assert reached[2].score == pytest.approx(1 - EDGES, rel=1e-6)
    assert reached[3].path == (1, "part-of", 3)
    assert reached[3].pid == 30


def test_no_seed_no_walk() -> None:
    graph = graph_of({1: {FILM: TITLE}, 2: {FILM: 0}})
    assert (
        found(graph, {}) == found(graph, {1: 0.0}) == found(graph, {99: 1.0}) == found(MentionGraph([]), {1: 1.0}) == []
    )


def test_an_invisible_document_is_neither_reached_nor_passed_through() -> None:
    graph = graph_of({1: {FILM: TITLE, COMPOSER: 0}, 2: {COMPOSER: TITLE, CITY: 0}, 3: {CITY: TITLE}})
    assert found(graph, {1: 1.0}, seen={1, 3}) == []
    assert found(graph, {1: 1.0}, seen={2, 3}) == []

    def edges(dids: Sequence[int]) -> list[Edge]:
        return [Edge(did, did + 1, 1.0, "next") for did in dids]

    assert found(graph_of({1: {}, 2: {}, 3: {}}), {1: 1.0}, edges, seen={1, 3}) == []


# --- the same by dictionaries -----------------------------------------------------------------------------------------

named = st.dictionaries(
    st.integers(1, 9), st.dictionaries(st.integers(1, 6), st.sampled_from([0, 0, TITLE]), max_size=4), max_size=9
)
masses = st.dictionaries(st.integers(1, 9), st.sampled_from([0.1, 0.25, 0.5]), max_size=3)
linked = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([0.5, 1.0, 2.0])), max_size=6)


def by_hand(
    named: Mapping[int, Mapping[int, int]], seeds: Mapping[int, float], linked: list[Any], seen: set[int]
) -> dict[int, float]:
    """Walk document by document, as the module docstring says it."""
    frequency: dict[int, int] = defaultdict(int)
    for concepts in named.values():
        for concept in concepts:
            frequency[concept] += 1
    titled = {did for did, concepts in named.items() if any(concepts.values())}
    total: dict[int, float] = defaultdict(float)
    mass = {did: value for did, value in seeds.items() if did in seen}
    for hop in range(module.HOPS):
        arrived: dict[int, float] = defaultdict(float)
        for did, value in mass.items():
            edges = [(t, w) for s, t, w in linked if s == did and t != did and t in seen]
            followed: list[tuple[float, dict[int, float]]] = []  # weight of a concept, trust by document
            for concept, mark in named.get(did, {}).items():
                if frequency[concept] < 2:
                    continue
                trusts = {}
                for other, concepts in named.items():
                    if other != did and other in seen and concept in concepts:
                        about = mark or concepts[concept]
                        trust = ABOUT if about else SHARED_CONCEPT if {did, other} <= titled else 0.0
                        if trust:
                            trusts[other] = trust
                if trusts:
                    rarity = log(max(len(named), 2) / frequency[concept])
                    followed.append((max(max(trusts.values()) * rarity, 1e-6), trusts))
            both = bool(edges and followed)
            for target, weight in edges:
                arrived[target] += value * (EDGES if both else 1.0) * weight / max(1.0, sum(w for _, w in edges))
            best = max((max(trusts.values()) for _, trusts in followed), default=0.0)
            for weight, trusts in followed:
                part = best * value * (1 - EDGES if both else 1.0) * weight / sum(w for w, _ in followed)
                for other, trust in trusts.items():
                    arrived[other] += part * trust / sum(trusts.values())
        for did, value in arrived.items():
            total[did] += value * DECAY**hop
        mass = arrived
    return dict(total)


@given(named, masses, linked, st.sets(st.integers(1, 9)))
def test_a_walk_is_what_dictionaries_say(
    named: dict[int, dict[int, int]], seeds: dict[int, float], linked: list[Any], hidden: set[int]
) -> None:
    seen = set(range(1, 10)) - hidden
    edges = [Edge(source, target, weight, "part-of") for source, target, weight in linked]
    reached = found(graph_of(named), seeds, lambda dids: [edge for edge in edges if edge.source in dids], seen)
    expected = by_hand(named, seeds, linked, seen)
    assert {item.did: item.score for item in reached} == pytest.approx(expected)
    assert [item.score for item in reached] == sorted((item.score for item in reached), reverse=True)
    for item in reached:
        passed = [step for step in item.path[::2] if isinstance(step, int)]
        assert passed[0] in seeds and passed[-1] == item.did and set(passed) <= seen
        assert len(passed) == len(item.path[::2])
        assert sum(seeds.values()) >= item.score - 1e-9


@given(
    st.dictionaries(
        st.integers(1, 30),
        st.dictionaries(st.integers(1, 12), st.sampled_from([0, 1, TITLE, TITLE | 1]), max_size=5),
        min_size=2,
        max_size=20,
    ),
    st.integers(0, 30),
)
def test_in_one_block_or_in_two_a_walk_is_the_same(named: dict[int, dict[int, int]], cut: int) -> None:
    entries = [Entry(did, did * 10, found) for did, found in sorted(named.items())]
    one = MentionGraph([Block.of(entries)], "c{}".format)
    two = MentionGraph(
        [Block.of([entry for entry in entries if (entry.did < cut) is first]) for first in (True, False)], "c{}".format
    )
    seeds = {entry.did: 1.0 / at for at, entry in enumerate(entries[:4], start=2)}
    edges = [Edge(entries[0].did, entries[-1].did, 0.7, "next")]

    def edges_of(dids: Sequence[int]) -> list[Edge]:
        return [edge for edge in edges if edge.source in dids]

    for visible in (None, lambda dids: dids % 3 > 0):
        apart, whole = (items(walk(graph, edges_of, seeds, visible, 50)) for graph in (two, one))
        assert [(item.did, item.pid, item.path) for item in apart] == [
            (item.did, item.pid, item.path) for item in whole
        ]
        assert [item.score for item in apart] == pytest.approx([item.score for item in whole], abs=1e-12)


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(1, 5), st.integers(2**62, 2**63 - 1)), st.integers(0, module.FRONT - 1)),
        min_size=1,
    )
)
def test_rows_are_ordered_by_target_and_source_however_large_the_numbers(rows: list[tuple[int, int]]) -> None:
    target, source = np.array(rows, dtype=np.int64).T
    expected = sorted(range(len(rows)), key=lambda row: (rows[row], row))
    assert module._ordered(target, source).tolist() == expected


def test_a_path_is_made_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of({1: {FILM: TITLE, COMPOSER: 0}, 2: {COMPOSER: TITLE, CITY: 0}, 3: {CITY: TITLE}})
    asked: list[int] = []
    written_all = graph.written_all
    monkeypatch.setattr(graph, "written_all", lambda concepts: asked.extend(concepts.tolist()) or written_all(concepts))
    paths = walk(graph, none, {1: 0.8}, None, 50).paths
    assert (len(paths), asked) == (3, [])
    assert paths.of([2]) == [(1, "c2", 2, "c3", 3)]
    assert sorted(asked) == [COMPOSER, CITY]
    assert list(paths) == paths[:] == [(1, "c2", 2), (1, "c2", 2, "c2", 1), (1, "c2", 2, "c3", 3)]
