"""A mask allows exactly the documents it was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trivet
from trivet.filters import Eq, matches, parse_filter
from trivet.stores.sqlite.collection import SqliteCollection
from trivet.stores.sqlite.filters import SCOPES_KEPT
from trivet.stores.sqlite.scope import Scope

numbers = st.integers(1, 40)


@given(st.sets(numbers), st.integers(0, 30), st.lists(numbers))
def test_a_scope_holds_what_it_was_made_of_as_far_as_it_reaches(allowed: set[int], size: int, asked: list[int]) -> None:
    """Documents newer than the query may not be seen, whichever process added them."""
    scope = Scope.of(sorted(allowed), size)
    known = {did for did in allowed if did <= size}
    assert scope.count == len(known)
    assert scope.dids() == sorted(known)
    assert {did for did in asked if did in scope} == known & set(asked)
    assert scope.rows(np.asarray(asked, dtype=np.int64)).tolist() == [did in known for did in asked]


@given(st.sets(numbers), st.lists(numbers), st.integers(0, 40))
def test_what_is_excluded_is_out(allowed: set[int], gone: list[int], size: int) -> None:
    scope = Scope.of(sorted(allowed), size)
    before = scope.dids()
    assert scope.without(gone).dids() == sorted({did for did in allowed if did <= size} - set(gone))
    assert scope.dids() == before, "the remembered scope was changed"


def test_everything_but_some() -> None:
    scope = Scope.everything(5).without([2, 9])
    assert [did for did in range(1, 8) if did in scope] == [1, 3, 4, 5]


def test_no_documents_at_all() -> None:
    scope = Scope.of([], 0)
    assert scope.count == 0
    assert scope.rows(np.asarray([], dtype=np.int64)).tolist() == []
    assert scope.rows(np.asarray([1, 2], dtype=np.int64)).tolist() == [False, False]


# --- cached scopes --------------------------------------------------------------------------------------------------


def allowed(collection: SqliteCollection, where: Eq) -> list[int]:
    scope = collection.filters.scope(where, (), collection.state().version)
    assert scope is not None
    return scope.dids()


def test_a_remembered_scope_is_forgotten_with_the_next_write(
    engine: trivet.Engine, collection: SqliteCollection
) -> None:
    engine.add([{"id": "a", "text": "a", "meta": {"x": 1}}, {"id": "b", "text": "b", "meta": {"x": 2}}])
    where = Eq("x", 1)
    assert allowed(collection, where) == [1]
    engine.add("c", id="c", meta={"x": 1})
    assert allowed(collection, where) == [1, 3]
    engine.add("a", id="a", meta={"x": 5})
    assert allowed(collection, where) == [3]
    engine.delete("c")
    engine.add("d", id="d", meta={"x": 1})
    assert allowed(collection, where) == [4]


def test_a_scope_is_looked_up_once_between_two_writes(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add("a", id="a", meta={"x": 1})
    version = collection.state().version
    assert collection.filters.scope(Eq("x", 1), (), version) is collection.filters.scope(Eq("x", 1), (), version)


def test_equal_numbers_share_a_scope_and_text_does_not(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add([{"id": "a", "text": "a", "meta": {"x": 1}}, {"id": "b", "text": "b", "meta": {"x": "1"}}])
    assert (
        allowed(collection, Eq("x", 1))
        == allowed(collection, Eq("x", True))
        == allowed(collection, Eq("x", 1.0))
        == [1]
    )
    assert allowed(collection, Eq("x", "1")) == [2]


def test_only_so_many_scopes_are_remembered(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add("a", id="a", meta={"x": 1})
    for number in range(SCOPES_KEPT + 20):
        allowed(collection, Eq("x", number))
    assert len(collection.filters._scopes) == SCOPES_KEPT


def test_no_filter_is_no_scope_and_exclusion_is_one(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
    version = collection.state().version
    assert collection.filters.scope(None, (), version) is None
    scope = collection.filters.scope(None, ["a", "unknown"], version)
    assert scope is not None
    assert 1 not in scope
    assert 2 in scope


def test_a_small_collection_beside_a_very_large_one_is_asked_with_exclusions() -> None:
    """The mask counts the row numbers of the others: the list asked for became empty, and the index panicked."""
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add([{"id": f"d{number}", "text": "red fox" + " fox" * (number % 9)} for number in range(2_000)])
        collection = engine._collection
        found, _, _ = collection.lexical.search(
            collection.analyzer.query("fox"), "any", 20, Scope.everything(1_000_000), collection.state().version
        )
        assert len(found) == 20


@pytest.mark.parametrize(
    "where",
    [
        {"$not": {"kind": "a"}},
        {"kind": {"ne": "a"}, "n": {"gte": 4}},
        {"kind": {"ne": "a"}, "n": {"nin": [1, 5]}},
        {"$and": [{"$not": {"$or": [{"kind": "a"}, {"n": 3}]}}, {"n": {"lt": 8}}]},
        {"$not": {"$not": {"kind": "a"}}},
    ],
)
def test_a_mask_turned_over_allows_what_the_filter_means(where: dict[str, Any]) -> None:
    with trivet.open(":memory:", embedder="none") as engine:
        other = engine.collection("other", embedder="none")
        other.add([{"id": f"o{number}", "text": "fox"} for number in range(5)])
        engine.add([{"id": f"d{n}", "text": "fox", "kind": "abc"[n % 3], "meta": {"n": n}} for n in range(10)])
        engine.delete("d9")
        parsed = parse_filter(where)
        assert parsed is not None
        meant = {document.id for document in engine.documents() if matches(parsed, document)}
        assert meant
        assert {hit.id for hit in engine.search("fox", where=where, k=20, rerankers=[])} == meant
