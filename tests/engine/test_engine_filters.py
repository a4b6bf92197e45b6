"""A filter holds on every leg and is applied before the cut.

Random collections, partly in the projections on disk and partly in their tails, some of it rewritten or deleted since.
What a leg finds under a filter must be what it finds without one, less what ``matches`` forbids, cut afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trivet
from trivet.engine import Engine
from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, matches
from trivet.stores.sqlite import quantized_codes, term_search, vector_index
from trivet.stores.sqlite import term_index as projection
from trivet.types import Results

LEGS = ("lexical", "trigram", "dense")
VOCABULARY = ("copper", "kettle", "kettles", "river", "stone", "lantern", "harbour", "harbor")

texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join)
values = st.sampled_from([0, 1, 2, 2.5, True, "x", "y", "1", ["x", "y"], [1, "y"], None, {"deep": 1}])
metas = st.fixed_dictionaries({}, optional={"a": values, "b": values})
documents = st.fixed_dictionaries({"text": texts, "meta": metas, "kind": st.sampled_from(["note", "fact"])})

fields = st.sampled_from(["a", "b", "a.deep", "meta.b"])
scalars = st.sampled_from([0, 1, 2, 2.5, True, "x", "y", "1"])
bounds = st.one_of(
    st.fixed_dictionaries({}, optional={"gt": st.integers(0, 2), "lte": st.integers(0, 3)}).filter(bool),
    st.fixed_dictionaries({}, optional={"gte": st.sampled_from("xy"), "lt": st.sampled_from("yz")}).filter(bool),
)
leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Eq, fields, scalars),
    st.builds(In, fields, st.lists(scalars, max_size=3).map(tuple)),
    st.builds(lambda field, bound: Range(field, **bound), fields, bounds),
    st.builds(Exists, fields),
    st.builds(Eq, st.just("kind"), st.sampled_from(["note", "fact", "none such"])),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)
#: Has every field, so that no filter names an unknown one; found by no question.
KNOWN = {"id": "known", "text": "zzz", "meta": {"a": ["x", 1], "b": ["x", 1]}}
KNOWN_DEEP = {"id": "deep", "text": "zzz", "meta": {"a": {"deep": 1}}}


@contextmanager
def built(first: list[dict[str, Any]], later: list[dict[str, Any]], gone: set[int], path: str) -> Iterator[Engine]:
    """``path``: 'tail' keeps everything in memory, 'disk' writes the first part into tantivy and faiss."""
    with pytest.MonkeyPatch.context() as patch, trivet.open(":memory:", embedder="hashing:32") as memory:
        memory.add([KNOWN, KNOWN_DEEP, *({"id": f"f{n}", **given} for n, given in enumerate(first))])
        memory.wait()
        if path == "disk":
            patch.setattr(projection, "TAIL_LIMIT", 0)
            patch.setattr(vector_index, "SNAPSHOT_FROM", 1)
            # a scope is never small enough to be compared as a whole: the codes propose
            patch.setattr(quantized_codes, "FEW", 0)
            patch.setattr(quantized_codes, "FEW_SHARE", 1_000_000)
            # and propose all there is, so that the answer must be exact
            patch.setattr(quantized_codes, "REFINE", 1_000)
            memory.rebuild()
            memory.search("river", weights=dict.fromkeys(LEGS, 1))
            shelf = memory._collection
            assert shelf.lexical.opened.open().index.searcher is not None
            assert shelf.trigrams.opened.open().index.searcher is not None
            near = shelf.vectors.index(shelf.state().model)  # type: ignore[arg-type]
            while (
                near._base.codes is None or shelf.vectors._compacting.running
            ):  # the search began it in the background
                near.compact()
            patch.setattr(projection, "TAIL_LIMIT", 512)
            patch.setattr(vector_index, "SNAPSHOT_FROM", 8_192)
        # some new, some of the first rewritten
        memory.add([{"id": f"f{n}" if n % 3 == 0 else f"l{n}", **given} for n, given in enumerate(later)])
        memory.wait()
        memory.delete([f"f{n}" for n in gone])
        yield memory


def asked(memory: Engine, query: str, leg: str, k: int, **how: Any) -> Results:
    # no graph: where a walk begins depends on what may be seen, so it is held to what is allowed when all are asked;
    # and no understanding: a word that nothing visible has is taken for a misspelt one
    weights = {**{other: float(other == leg) for other in LEGS}, "graph": 0.0}
    depths = dict.fromkeys(LEGS, "1k")
    results = memory.search(
        query,
        k=k,
        weights=weights,
        depths=depths,
        fusion="rrf",
        rerankers=[],
        **{"match": "any", "understanding": "plain", **how},
    )
    assert results.degraded == ()
    return results


def scored(results: Results) -> list[tuple[str, float]]:
    # few digits: the same cosine is added up in another order under a narrow filter, and must round the same
    return [(hit.id, round(hit.contributions[0].raw, 3)) for hit in results]


@pytest.mark.parametrize("path", ["tail", "disk"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    first=st.lists(documents, min_size=4, max_size=18),
    later=st.lists(documents, max_size=8),
    gone=st.sets(st.integers(0, 17), max_size=4),
    asking=st.lists(st.tuples(texts, filters), min_size=1, max_size=6),
    k=st.integers(1, 5),
)
def test_what_a_filter_forbids_no_leg_finds(
    path: str,
    first: list[dict[str, Any]],
    later: list[dict[str, Any]],
    gone: set[int],
    asking: list[tuple[str, Filter]],
    k: int,
) -> None:
    with built(first, later, gone, path) as memory:
        kept = {document.id: document for document in memory.documents()}
        for query, where in asking:
            allowed = {id for id, document in kept.items() if matches(where, document)}
            assert {document.id for document in memory.documents(where)} == allowed
            for leg in LEGS:
                everything = scored(asked(memory, query, leg, 100))
                expected = [(id, score) for id, score in everything if id in allowed]
                unlimited = scored(asked(memory, query, leg, 100, where=where))
                assert sorted(unlimited) == sorted(expected), leg
                # ties may fall either way at the cut, so scores are compared in order and ids by their score
                cut = scored(asked(memory, query, leg, k, where=where))
                assert [score for _, score in cut] == [score for _, score in expected[:k]], leg
                assert set(cut) <= set(expected), leg
            for match in ("all", "auto"):
                assert {hit.id for hit in asked(memory, query, "lexical", k, where=where, match=match)} <= allowed
            together = memory.search(query, k=k, where=where, weights=dict.fromkeys(LEGS, 1))
            assert {hit.id for hit in together} <= allowed


@pytest.mark.parametrize("path", ["tail", "disk"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    first=st.lists(documents, min_size=6, max_size=18),
    later=st.lists(documents, max_size=6),
    query=texts,
    excluded=st.sets(st.integers(0, 17), min_size=1, max_size=8),
    k=st.integers(1, 5),
)
def test_what_is_excluded_no_leg_finds(
    path: str, first: list[dict[str, Any]], later: list[dict[str, Any]], query: str, excluded: set[int], k: int
) -> None:
    exclude = [f"f{n}" for n in excluded]
    with built(first, later, set(), path) as memory:
        for leg in LEGS:
            expected = [(id, score) for id, score in scored(asked(memory, query, leg, 100)) if id not in exclude]
            cut = scored(asked(memory, query, leg, k, exclude=exclude))
            assert [score for _, score in cut] == [score for _, score in expected[:k]], leg
            assert set(cut) <= set(expected), leg


def test_a_scope_too_large_to_list_is_sifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past FEW_ALLOWED the words are over-fetched and sifted: the deepening must still fill the answer."""
    monkeypatch.setattr(term_search, "FEW_ALLOWED", 0)
    monkeypatch.setattr(projection, "TAIL_LIMIT", 0)
    with trivet.open(":memory:", embedder="none") as memory:
        # the forbidden ones all rank above the allowed ones
        memory.add([{"id": f"no{n}", "text": "copper copper", "kind": "fact"} for n in range(150)])
        memory.add([{"id": f"yes{n}", "text": f"copper and much else besides {n}"} for n in range(5)])
        for leg in ("lexical", "trigram"):
            found = asked(memory, "copper", leg, 3, where={"kind": "note"})
            assert len(found) == 3
            assert {hit.document.kind for hit in found} == {"note"}


def test_a_filter_on_every_built_in_field() -> None:
    with trivet.open(":memory:", embedder="hashing:32") as memory:
        memory.add(
            "copper kettle",
            id="a",
            title="One",
            kind="fact",
            importance=0.9,
            created="2020-01-01",
            valid_to="2021-01-01",
        )
        memory.add(
            "copper kettle two", id="b", title="Two", importance=0.1, created="2024-01-01", accessed="2025-01-01"
        )
        for where, expected in (
            ("id=a", {"a"}),
            ("title=Two", {"b"}),
            ("kind!=fact", {"b"}),
            ("importance>=0.5", {"a"}),
            ("created<2022-01-01", {"a"}),
            ("accessed=*", {"b"}),
            ({"valid_to": None}, {"b"}),
            ({"valid_to": {"lte": "2021-01-01"}}, {"a"}),
            (["created>2019-12-31", "importance<1"], {"a", "b"}),
        ):
            for leg in LEGS:
                assert {hit.id for hit in asked(memory, "copper kettle", leg, 5, where=where)} == expected, (where, leg)
