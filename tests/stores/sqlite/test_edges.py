"""Edges between documents are read from the records as they are now."""

from __future__ import annotations

from typing import Any

import pytest

import trivet
from trivet.graph.edges import MOST_LINKS, MOST_VALUES, RARE
from trivet.stores.sqlite.graph import FEW_BEHIND


def ties(engine: trivet.Engine, id: str) -> dict[str, tuple[float, str]]:
    collection: Any = engine._collection
    ids = {did: document.id for did, document in collection.documents.page(None, 0, 1_000)}
    (did,) = collection.documents.numbers([id]).values()
    found = collection.graph.edges([did], collection.state().version)
    assert all(tie.source == did for tie in found)
    return {ids[tie.target]: (tie.weight, tie.label) for tie in found if tie.target != did}


def turns(engine: trivet.Engine, count: int = 6, **meta: Any) -> None:
    engine.add([{"id": f"t{n}", "text": f"turn {n}", "meta": {"session": "s1", **meta}} for n in range(count)])


def test_the_one_before_and_the_one_behind_in_a_session(engine: trivet.Engine) -> None:
    turns(engine)
    assert ties(engine, "t2") == {"t1": (1.0, "before it in session"), "t3": (1.0, "after it in session")}
    assert ties(engine, "t0") == {"t1": (1.0, "after it in session")}
    assert ties(engine, "t5") == {"t4": (1.0, "before it in session")}


@pytest.mark.parametrize("key", ["thread", "conversation_id", "chat", "dialogue"])
def test_a_session_has_several_names(engine: trivet.Engine, key: str) -> None:
    engine.add([{"id": f"t{n}", "text": f"turn {n}", "meta": {key: 7}} for n in range(3)])
    assert ties(engine, "t1").keys() == {"t0", "t2"}


def test_sessions_with_the_same_number_in_two_projects_are_two(engine: trivet.Engine) -> None:
    for n in range(6):
        engine.add(f"turn {n}", id=f"t{n}", meta={"session": 1, "project": f"p{n % 2}"})
    assert ties(engine, "t2").keys() == {"t0", "t4"}


def test_time_orders_what_was_added_out_of_order(engine: trivet.Engine) -> None:
    for n in (2, 0, 3, 1):
        engine.add(f"turn {n}", id=f"t{n}", meta={"session": "s"}, created=f"2026-01-0{n + 1}")
    assert ties(engine, "t1") == {"t0": (1.0, "before it in session"), "t2": (1.0, "after it in session")}


@pytest.mark.parametrize(("key", "value"), [("role", "assistant"), ("speaker", "Assistant"), ("sender", "bot")])
def test_what_an_assistant_answered_is_stepped_over_and_leads_to_what_was_asked(
    engine: trivet.Engine, key: str, value: str
) -> None:
    for n in range(6):
        who = {key: value if n % 2 else "user"}
        engine.add(f"turn {n}", id=f"t{n}", meta={"session": "s", **who})
    assert ties(engine, "t2") == {"t0": (1.0, "before it in session"), "t4": (1.0, "after it in session")}
    assert ties(engine, "t3") == {"t2": (1.0, "before it in session"), "t4": (1.0, "after it in session")}


def test_a_session_that_changes_is_seen_at_once(engine: trivet.Engine) -> None:
    turns(engine, 3)
    engine.patch("t1", meta={"session": "another"})
    assert ties(engine, "t0").keys() == {"t2"}
    engine.delete("t2")
    assert ties(engine, "t0") == {}


def test_links_tie_both_ways_and_what_is_superseded_does_not(engine: trivet.Engine) -> None:
    engine.add([{"id": id, "text": f"document {id}"} for id in "abcd"])
    engine.link("a", "b", "part-of", 2.0)
    engine.link("c", "a", "see-also", 1e9)
    engine.link("a", "d", "supersedes")
    assert ties(engine, "a") == {"b": (2.0, "part-of"), "c": (5.0, "see-also")}
    assert ties(engine, "b") == {"a": (2.0, "part-of")}
    engine.unlink("a", "b")
    engine.unlink("c", "a")
    assert ties(engine, "a") == {}


def test_a_document_with_very_many_links_gives_some_of_them(engine: trivet.Engine) -> None:
    engine.add([{"id": f"d{n}", "text": f"document {n}"} for n in range(MOST_LINKS + 9)])
    for n in range(1, MOST_LINKS + 9):
        engine.link("d0", f"d{n}")
    assert len(ties(engine, "d0")) == MOST_LINKS


def test_a_rare_value_ties_and_a_common_one_does_not(engine: trivet.Engine) -> None:
    engine.add([{"id": f"d{n}", "text": f"note {n}", "meta": {"team": "north", "year": 2020}} for n in range(RARE + 1)])
    engine.patch("d1", meta={"ticket": {"id": "AB-17"}})
    engine.patch("d2", meta={"ticket": {"id": "AB-17"}})
    engine.patch("d3", meta={"ticket": {"id": "AB-17"}})
    assert ties(engine, "d1") == {"d2": (0.025, "ticket.id AB-17"), "d3": (0.025, "ticket.id AB-17")}
    assert ties(engine, "d0") == {}


def test_numbers_times_and_texts_tie_nothing(engine: trivet.Engine) -> None:
    meta = {"page": 7, "draft": True, "day": "2026-01-01", "body": "x" * 500, "nothing": None, "empty": ""}
    engine.add([{"id": id, "text": f"note {id}", "meta": meta} for id in "ab"])
    assert ties(engine, "a") == {}


def test_a_document_with_very_much_metadata_is_looked_at_in_part(engine: trivet.Engine) -> None:
    for id in ("a", "b"):
        engine.add(f"note {id}", id=id, meta={f"k{n}": "same" for n in range(MOST_VALUES * 3)})
    collection: Any = engine._collection
    (did,) = collection.documents.numbers(["a"]).values()
    assert (
        len([tie for tie in collection.graph.edges([did], collection.state().version) if tie.target != did])
        == MOST_VALUES
    )


def test_a_document_that_is_gone_has_no_edges(engine: trivet.Engine) -> None:
    collection: Any = engine._collection
    assert (
        collection.graph.edges([], collection.state().version)
        == collection.graph.edges([999], collection.state().version)
        == []
    )


def test_a_search_after_a_few_writes_only_has_to_read_the_graph(engine: trivet.Engine) -> None:
    turns(engine)
    engine.search("turn", graph_weight=0.4)
    engine.add("one more turn")
    graph = engine._collection.graph
    assert graph is not None and graph.is_current(engine._collection.state())
    engine.add([f"turn {n} of a long talk" for n in range(FEW_BEHIND)])
    assert not graph.is_current(engine._collection.state())
