"""The links that a search follows are found by a SQL index, and only between documents that exist."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

import trivet
from trivet.graph import supersession
from trivet.graph.supersession import MAX_LINKS
from trivet.stores.sqlite import document_writes, links
from trivet.stores.sqlite.collection import SqliteCollection
from trivet.types import Link, Succession, Successions


def link(collection: SqliteCollection, links: Sequence[Link]) -> None:
    """Links as an import brings them: their ends need not be here."""
    with collection.rows.changing() as connection:
        document_writes.add_links(connection, collection.rows.cid, links)


def fill(engine: trivet.Engine) -> dict[str, int]:
    engine.add([{"id": id, "text": id, "created": f"2026-01-0{at}"} for at, id in enumerate("abcd", start=1)])
    return engine._collection.documents.numbers(list("abcd"))


def test_a_chain_comes_whole_and_nothing_else(engine: trivet.Engine, collection: SqliteCollection) -> None:
    dids = fill(engine)
    link(
        collection,
        [Link("b", "a", "supersedes"), Link("c", "b", "supersedes"), Link("d", "c"), Link("gone", "c", "supersedes")],
    )
    found = collection.links.successors([dids["a"]]).found
    assert {(item.old_id, item.new_id) for item in found} == {("a", "b"), ("b", "c")}
    assert {item.new: item.created for item in found} == {dids["b"]: 1767312000.0, dids["c"]: 1767398400.0}
    assert {(item.old, item.new) for item in collection.links.successors([dids["b"]]).found} == {(dids["b"], dids["c"])}
    assert collection.links.successors([dids["c"], dids["d"]]).found == ()


def test_a_circle_ends(engine: trivet.Engine, collection: SqliteCollection) -> None:
    dids = fill(engine)
    link(collection, [Link("b", "a", "supersedes"), Link("a", "b", "supersedes"), Link("c", "c", "supersedes")])
    assert len(collection.links.successors([dids["a"], dids["c"]]).found) == 3


def test_resolutions_are_of_documents_that_are_here(engine: trivet.Engine, collection: SqliteCollection) -> None:
    dids = fill(engine)
    link(collection, [Link("a", target, "resolved-by") for target in ("d", "b", "a", "gone")])
    assert collection.links.resolutions([dids["a"], dids["b"]]).found == {
        dids["a"]: [(dids["b"], "b"), (dids["d"], "d")]
    }


def test_another_collections_links_are_its_own(engine: trivet.Engine, collection: SqliteCollection) -> None:
    dids = fill(engine)
    other = engine.collection("other", embedder="none")
    other.add([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
    other.link("b", "a", "supersedes")
    assert not collection.links.any_followed()
    assert other._collection.links.any_followed()
    assert collection.links.successors([dids["a"]]).found == ()


def test_whether_there_are_any_is_one_look_into_an_index(engine: trivet.Engine, collection: SqliteCollection) -> None:
    fill(engine)
    connection = collection.rows.database.read()
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    assert not collection.links.any_followed()
    connection.set_trace_callback(None)
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}"))
    assert "INDEX links_type (cid=? AND type=?)" in plan, plan


@pytest.mark.parametrize("name", ["successors", "resolutions"])
def test_one_goes_from_a_document_to_its_own_links(
    engine: trivet.Engine, collection: SqliteCollection, name: str
) -> None:
    """Through all links of a type it took 0.8 s a search, with 10,000 of them."""
    fill(engine)
    connection = collection.rows.database.read()
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    getattr(collection.links, name)([1, 2])
    connection.set_trace_callback(None)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]
    ways = [step for step in plan if step.startswith("SEARCH l ")]
    assert ways and all("target=?" in step or "source=?" in step for step in ways), plan


def test_who_supersedes_named_documents_is_found_from_them(engine: trivet.Engine, collection: SqliteCollection) -> None:
    fill(engine)
    connection = collection.rows.database.read()
    asked: list[str] = []
    with collection.snapshot():
        collection.rows.database.read().set_trace_callback(asked.append)
        collection.links.superseded(["a"], 10)
        collection.rows.database.read().set_trace_callback(None)
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[1]}"))
    assert "INDEX links_target (cid=? AND target=?)" in plan, plan


def test_what_is_out_of_date_is_found_by_an_index(engine: trivet.Engine, collection: SqliteCollection) -> None:
    fill(engine)
    with collection.rows.database.lent():  # the connection of the next search
        connection = collection.rows.database.read()
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    engine.search("a", alpha=0, as_of="2026-01-01")
    connection.set_trace_callback(None)
    (sql,) = [statement for statement in asked if "valid_to" in statement and statement.startswith("WITH")]
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))
    assert "documents_valid_from" in plan and "documents_valid_to" in plan, plan


# --- the cost ---------------------------------------------------------------------------------------------------------


def documents(engine: trivet.Engine, count: int) -> list[str]:
    ids = [f"d{number:05}" for number in range(count)]
    engine.add([{"id": id, "text": "a pump", "created": 1_700_000_000 + at} for at, id in enumerate(ids)])
    return ids


def test_a_chain_of_5000_is_followed_to_its_end_and_every_step_is_taken_once(
    engine: trivet.Engine, collection: SqliteCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took 49 s: every candidate went the whole way again, and looked at all of it at every step."""
    ids = documents(engine, 5_001)
    link(collection, [Link(new, old, "supersedes") for old, new in itertools.pairwise(ids)])
    asked: list[int] = []
    real = supersession.walk

    def counted(start: Sequence[int], step: supersession.Step, steps: int | None = None) -> Successions:
        def counting(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
            asked.extend(olds)
            return step(olds, most)

        return real(start, counting, steps)

    monkeypatch.setattr(links, "walk", counted)
    found = engine.search("pump")
    assert [hit.id for hit in found] == [ids[-1]]
    assert not any(item.part == "links" for item in found.degraded)
    assert len(asked) <= 2 * len(ids)


def test_a_clump_is_read_up_to_the_bound_and_is_told(engine: trivet.Engine, collection: SqliteCollection) -> None:
    """300 documents that each supersede the same 300: 90,000 links."""
    ids = documents(engine, 600)
    link(collection, [Link(new, old, "supersedes") for old in ids[:300] for new in ids[300:]])
    read = collection.links.successors(list(collection.documents.numbers(ids).values()))
    assert len(read.found) == MAX_LINKS
    assert "more than 10,000 supersedes links" in read.cut
    assert [item.part for item in engine.search("pump").degraded if item.part == "links"] == ["links"]


def test_5000_that_supersede_one_are_all_read(engine: trivet.Engine, collection: SqliteCollection) -> None:
    ids = documents(engine, 5_001)
    link(collection, [Link(new, ids[0], "supersedes") for new in ids[1:]])
    read = collection.links.successors([collection.documents.numbers(ids[:1])[ids[0]]])
    assert (len(read.found), read.cut) == (5_000, "")


def test_resolutions_are_bounded_and_what_is_left_out_is_told(
    engine: trivet.Engine, collection: SqliteCollection
) -> None:
    engine.add([{"id": "problem", "text": "a pump"}, {"id": "solution", "text": "oil"}])
    link(collection, [Link("problem", "solution", "resolved-by")])
    link(collection, [Link("problem", f"z{number:05}", "resolved-by") for number in range(MAX_LINKS)])
    read = collection.links.resolutions(list(collection.documents.numbers(["problem"]).values()))
    assert "more than 10,000 resolved-by links" in read.cut
    found = engine.search("pump")
    assert found.hits[0].resolved_by == ("solution",)
    assert [item.part for item in found.degraded if item.part == "links"] == ["links"]
