"""A collection within a filter: it has every method of the contract or refuses it, and what it is written is inside."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import trivet
from trivet.errors import InputError
from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, check_binding
from trivet.stores.contract import Shelf
from trivet.stores.scoped import PASSED_ON, REFUSED, Scoped, defaults, filled, holds
from trivet.types import Document


@pytest.fixture
def scoped() -> Iterator[Scoped]:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add([{"id": "mine", "text": "Mine.", "meta": {"tenant": "alice"}}, {"id": "hers", "text": "Hers."}])
        shelf = engine.within({"tenant": "alice"})._shelf
        assert isinstance(shelf, Scoped)
        yield shelf


def test_the_whole_contract_is_defined_passed_on_or_refused() -> None:
    contract = {name for name in dir(Shelf) if not name.startswith("_")}
    own = {name for name in vars(Scoped) if not name.startswith("_")}
    assert contract <= own | PASSED_ON | REFUSED
    assert not own & REFUSED
    assert not PASSED_ON & REFUSED


def test_what_reads_or_writes_for_a_caller_adds_the_filter() -> None:
    """Every method of the contract that takes a filter is defined here, and none is passed on."""
    for name, method in inspect.getmembers(Shelf, inspect.isfunction):
        taken = set(inspect.signature(method).parameters) & {"where", "within"}
        if taken and not name.startswith("_"):
            assert name in vars(Scoped), name


@pytest.mark.parametrize("name", sorted(REFUSED | {"database", "_database", "nothing"}))
def test_there_is_no_way_around(scoped: Scoped, name: str) -> None:
    with pytest.raises(AttributeError, match="bound to a filter"):
        getattr(scoped, name)


def test_what_is_outside_has_no_number_and_no_text(scoped: Scoped) -> None:
    everything = scoped.whole.dids(["mine", "hers"])
    assert scoped.dids(["mine", "hers"]) == {"mine": everything["mine"]}
    assert [document.id for document in scoped.fetch(list(everything.values())).values()] == ["mine"]


ALICE, BOTH = Document("x", "x", meta={"tenant": "alice"}), Document("x", "x", meta={"tenant": ["alice", "bob"]})


@pytest.mark.parametrize(
    ("where", "alice", "both"),
    [
        (Eq("tenant", "alice"), True, False),
        (In("tenant", ("alice", "carol")), True, False),
        (In("tenant", ("alice", "bob")), True, True),
        (Range("tenant", lte="alicf"), True, False),
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
