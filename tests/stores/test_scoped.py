"""A collection within a filter: it has every method of the contract or refuses it, and what it is written is inside."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import trivet
from trivet.errors import InputError, NotAllowedError
from trivet.filters import And, Contains, Eq, Exists, Filter, In, Not, Or, Prefix, Range, check_binding
from trivet.stores import contract
from trivet.stores.scoped import (
    REFUSED,
    Scoped,
    ScopedDocuments,
    ScopedFeedback,
    ScopedFilters,
    ScopedLinks,
    ScopedVectors,
    defaults,
    filled,
    holds,
)
from trivet.types import Document


@pytest.fixture
def scoped() -> Iterator[Scoped]:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add([{"id": "mine", "text": "Mine.", "meta": {"tenant": "alice"}}, {"id": "hers", "text": "Hers."}])
        bound = engine.within({"tenant": "alice"})._collection
        assert isinstance(bound, Scoped)
        yield bound


def methods(protocol: type) -> list[str]:
    """The public methods and properties of a protocol, and the attributes it declares."""
    return [name for name in {**vars(protocol), **protocol.__annotations__} if not name.startswith("_")]


PARTS = {
    "documents": (contract.Documents, ScopedDocuments),
    "links": (contract.Links, ScopedLinks),
    "feedback": (contract.FeedbackLog, ScopedFeedback),
    "filters": (contract.Filters, ScopedFilters),
    "vectors": (contract.VectorIndex, ScopedVectors),
}
#: They get a scope with every search, and are passed on as they are.
SEARCHED = {"lexical", "trigrams", "graph"}


@pytest.mark.parametrize("part", PARTS)
def test_every_method_of_a_part_is_defined_or_refused(part: str) -> None:
    whole, scoped = PARTS[part]
    refused = set(REFUSED.get(part, ()))
    assert set(methods(whole)) - {"swept"} == set(methods(scoped)) | refused
    assert refused.isdisjoint(methods(scoped))


def test_every_part_of_a_collection_is_bound_passed_on_or_refused(scoped: Scoped) -> None:
    own = {name for name in (*vars(scoped), *vars(Scoped)) if not name.startswith("_")}
    assert set(methods(contract.Collection)) == own | set(REFUSED["collection"])
    assert set(PARTS) | SEARCHED | {"imports"} <= own


@pytest.mark.parametrize("part", PARTS)
def test_what_reads_or_writes_for_a_caller_adds_the_filter(part: str) -> None:
    """Every method that takes a filter is defined by the bound part."""
    whole, scoped = PARTS[part]
    for name, method in inspect.getmembers(whole, inspect.isfunction):
        if set(inspect.signature(method).parameters) & {"where", "within"} and not name.startswith("_"):
            assert name in vars(scoped), name


@pytest.mark.parametrize("part", sorted(SEARCHED))
def test_what_is_passed_on_takes_no_filter(part: str) -> None:
    index = {"lexical": contract.LexicalIndex, "trigrams": contract.TrigramIndex, "graph": contract.GraphIndex}[part]
    for name, method in inspect.getmembers(index, inspect.isfunction):
        assert name.startswith("_") or not set(inspect.signature(method).parameters) & {"where", "within"}, name


@pytest.mark.parametrize("name", sorted({*REFUSED["collection"], "database", "_database", "cid", "nothing"}))
def test_there_is_no_way_around(scoped: Scoped, name: str) -> None:
    with pytest.raises(NotAllowedError, match="this caller may not see"):
        getattr(scoped, name)


def test_what_is_outside_has_no_number_and_no_text(scoped: Scoped) -> None:
    everything = scoped._whole.documents.numbers(["mine", "hers"])
    assert scoped.documents.numbers(["mine", "hers"]) == {"mine": everything["mine"]}
    assert [document.id for document in scoped.documents.fetch(list(everything.values())).values()] == ["mine"]


ALICE, BOTH = Document("x", "x", meta={"tenant": "alice"}), Document("x", "x", meta={"tenant": ["alice", "bob"]})


@pytest.mark.parametrize(
    ("where", "alice", "both"),
    [
        (Eq("tenant", "alice"), True, False),
        (In("tenant", ("alice", "carol")), True, False),
        (In("tenant", ("alice", "bob")), True, True),
        (Range("tenant", lte="alicf"), True, False),
        (Prefix("tenant", "ali"), True, False),
        (Contains("tenant", "lic"), True, False),
        (Exists("tenant"), True, True),
        (Not(Eq("tenant", "bob")), True, False),
        (And((Exists("tenant"), Eq("tenant", "alice"))), True, False),
        (Or((Eq("tenant", "alice"), Eq("tenant", "bob"))), True, False),
        (Eq("team", "a"), False, False),
    ],
)
def test_every_value_must_be_inside(where: Filter, alice: bool, both: bool) -> None:
    assert (holds(where, ALICE), holds(where, BOTH)) == (alice, both)


@pytest.mark.parametrize(
    ("where", "given", "made"),
    [
        (Eq("tenant", "alice"), {}, {"meta": {"tenant": "alice"}}),
        (Eq("tenant", "alice"), {"meta": {"tenant": "bob"}}, {"meta": {"tenant": "bob"}}),
        (Eq("a.b", 1), {"meta": {"a": {"c": 2}}}, {"meta": {"a": {"c": 2, "b": 1}}}),
        (Eq("a.b", 1), {"meta": {"a": "text"}}, {"meta": {"a": "text"}}),
        (Eq("kind", "memo"), {}, {"kind": "memo"}),
        (Eq("meta.kind", "memo"), {"kind": "note"}, {"kind": "note", "meta": {"kind": "memo"}}),
        (And((Eq("a", 1), Eq("b", 2))), {}, {"meta": {"a": 1, "b": 2}}),
        (In("year", (2020, "2020")), {}, {"meta": {"year": 2020}}),
        (In("year", (2020, 2021)), {}, {}),
        (Or((Eq("a", 1), Eq("b", 2))), {}, {}),
        (Eq("tenant", "alice"), {"meta": 7}, {"meta": 7}),
    ],
)
def test_what_the_filter_fixes_is_set_where_it_is_absent(where: Filter, given: Any, made: Any) -> None:
    assert filled(given, where) == made
    assert filled(made, where) == made


def test_contradicting_conditions_are_no_way_in() -> None:
    assert defaults(And((Eq("a", 1), Eq("a", 2)))) == {"a": 2}
    with trivet.open(":memory:", embedder="none") as engine, pytest.raises(InputError, match="outside"):
        engine.within([{"a": 1}, {"a": 2}]).add("x")


@pytest.mark.parametrize("where", [Range("accessed", gte=0), Not(Eq("importance", 0.5)), Or((Exists("updated"),))])
def test_a_field_that_changes_with_use_binds_nobody(where: Filter) -> None:
    with pytest.raises(InputError, match="changes when a document is read or written"):
        check_binding(where)
    check_binding(Eq("meta.importance", 1))


def test_a_caller_is_bound_to_as_many_conditions_as_can_be_asked_with_others() -> None:
    many = Or(tuple(Eq(f"field{number}", number) for number in range(100)))
    with pytest.raises(InputError, match="at most 100"):
        check_binding(And((many, Eq("tenant", "alice"))))
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add("Mine.", id="mine", meta={f"field{number}": number for number in range(300)})
        asked = Or(tuple(Eq(f"field{number}", number) for number in range(300)))
        assert [document.id for document in engine.within(many).documents(asked)] == ["mine"]
        assert [hit.id for hit in engine.within(many).search("mine", where=asked)] == ["mine"]
