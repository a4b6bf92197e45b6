"""Every store finds the turns before and after a document in its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trivet.engine import Engine

Open = Callable[..., Engine]


def turn(id: str, session: Any = "tea", **meta: Any) -> dict[str, Any]:
    return {"id": id, "text": f"the words of {id}", "meta": {"session": session, **meta}}


def around(memory: Engine, *ids: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the ids before and after each of the documents that have neighbours."""
    collection: Any = memory._collection
    with collection.snapshot():
        numbers = collection.documents.numbers(ids)
        found = collection.documents.adjacent(list(numbers.values()), collection.state().version) or {}
        others = {did for sides in found.values() for did in sides if did is not None}
        names = {did: document.id for did, document in collection.documents.fetch(list(others)).items()}
    by_number = {did: id for id, did in numbers.items()}
    return {by_number[did]: (names.get(before), names.get(after)) for did, (before, after) in found.items()}


def test_turns_are_in_the_order_of_adding_whatever_is_between(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("a1"), turn("b1", "rent"), {"id": "note", "text": "no turn"}, turn("a2"), turn("b2", "rent")])
    memory.add([turn("a3"), turn("alone", "hats")])
    found = around(memory, "a1", "a2", "a3", "b1", "b2", "note", "alone")
    assert found == {
        "a1": (None, "a2"),
        "a2": ("a1", "a3"),
        "a3": ("a2", None),
        "b1": (None, "b2"),
        "b2": ("b1", None),
    }


def test_numbers_name_sessions_too_and_an_empty_name_is_none(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("n1", 7), turn("n2", 7), turn("t1", "7"), turn("e1", ""), turn("e2", "")])
    memory.add([{"id": f"c{n}", "text": "hello", "meta": {"conversation_id": 2.5}} for n in (1, 2)])
    found = around(memory, "n1", "n2", "t1", "e1", "e2", "c1", "c2")
    assert found == {"n1": (None, "n2"), "n2": ("n1", None), "c1": (None, "c2"), "c2": ("c1", None)}


def test_sessions_of_one_name_and_different_owners_are_different(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn(f"{owner}{n}", tenant=owner) for n in range(3) for owner in ("ann", "ben", "cat")])
    memory.add([turn("nobody's")])
    found = around(memory, "ann0", "ben1", "cat2", "nobody's")
    assert found == {"ann0": (None, "ann1"), "ben1": ("ben0", "ben2"), "cat2": ("cat1", None)}


def test_a_turn_of_an_assistant_is_no_neighbour_but_has_some(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("asked", role="user"), turn("said", role="Assistant"), turn("thanked", role="user")])
    assert around(memory, "asked", "said", "thanked") == {"said": ("asked", "thanked")}


def test_later_writes_and_deletions_count_at_once(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("a"), turn("b"), turn("c")])
    assert around(memory, "a") == {"a": (None, "b")}
    memory.delete("b")
    assert around(memory, "a", "c") == {"a": (None, "c"), "c": ("a", None)}
    memory.add([turn("d")])
    assert around(memory, "c") == {"c": ("a", "d")}
    memory.add([{**turn("c"), "text": "other words"}])  # keeps its place
    assert around(memory, "c") == {"c": ("a", "d")}
    memory.add([turn("c", "another session")])
    assert around(memory, "a", "c", "d") == {"a": (None, "d"), "d": ("a", None)}


def test_a_collection_gets_its_first_session(open_at: Open) -> None:
    memory = open_at()
    memory.add("no turn", id="note")
    assert around(memory, "note") == {}
    memory.add([turn("a"), turn("b")])
    assert around(memory, "note", "b") == {"b": ("a", None)}


def test_a_bound_caller_gets_no_neighbour_that_the_filter_hides(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("a", level="open"), turn("b", level="secret"), turn("c", level="open"), turn("d", level="open")])
    bound = memory.within({"level": "open"})
    assert around(bound, "a", "b", "c", "d") == {"c": (None, "d"), "d": ("c", None)}
    collection: Any = memory._collection
    hidden = collection.documents.numbers(["b"])["b"]
    assert collection.documents.adjacent([hidden], collection.state().version)
    of_bound: Any = bound._collection
    assert of_bound.documents.adjacent([hidden], collection.state().version) == {}
    assert around(memory, "c") == {"c": ("b", "d")}


def test_the_same_after_opening_again(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("a"), turn("b"), turn("c")])
    memory.delete("a")
    before = around(memory, "b", "c")
    memory.close()
    assert around(open_at(), "b", "c") == before == {"b": (None, "c"), "c": ("b", None)}


@pytest.mark.needs("graph")
def test_the_graph_leaves_sessions_out_where_context_counts_them(open_at: Open) -> None:
    memory = open_at()
    memory.add([turn("a"), turn("b"), turn("c")])
    memory.link("a", "c")
    collection: Any = memory._collection
    numbers, version = collection.documents.numbers(["a", "b", "c"]), collection.state().version
    for sessions, reached in ((True, {numbers["b"], numbers["c"]}), (False, {numbers["c"]})):
        assert {edge.target for edge in collection.graph.edges([numbers["a"]], version, sessions)} == reached
