"""Every write leaves exactly its rows, and every removal leaves none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import NotFoundError
from trivet.stores.sqlite import document_writes
from trivet.stores.sqlite.collection import SqliteCollection
from trivet.types import Link

LONG = "A sentence about herons and their nests by the river. " * 120  # several passages


def table(collection: SqliteCollection, sql: str) -> list[tuple[Any, ...]]:
    return collection.rows.all(sql, ())


def counters(collection: SqliteCollection) -> dict[str, int]:
    return dict(table(collection, "SELECT name, value FROM counters"))


def rows_of_everything(collection: SqliteCollection) -> dict[str, int]:
    names = ("documents", "passages", "vectors", "fields", "links")
    return {name: table(collection, f"SELECT count(*) FROM {name}")[0][0] for name in names}


def orphans(collection: SqliteCollection) -> dict[str, list[tuple[Any, ...]]]:
    """Rows that hang on nothing, by table; and counts that are not so."""
    no_document = "NOT EXISTS (SELECT 1 FROM documents d WHERE d.did = x.did)"
    found = {
        "passages": table(collection, f"SELECT * FROM passages x WHERE {no_document}"),
        "fields": table(collection, f"SELECT * FROM fields x WHERE {no_document}"),
        "vectors": table(collection, "SELECT vid FROM vectors v WHERE pid NOT IN (SELECT pid FROM passages)"),
        "links": table(collection, "SELECT * FROM links WHERE source NOT IN (SELECT id FROM documents)"),
        "removed": table(collection, "SELECT * FROM removed WHERE pid IN (SELECT pid FROM passages)"),
        "counts": [(problem,) for problem in collection.maintenance.row_problems()],
    }
    return {name: rows for name, rows in found.items() if rows}


def test_add_update_unchanged_are_told_apart(engine: trivet.Engine) -> None:
    told = engine.add([{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])
    assert (told.added, told.updated, told.unchanged) == (2, 0, 0)
    told = engine.add([{"id": "a", "text": "one"}, {"id": "b", "text": "changed"}, {"id": "c", "text": "three"}])
    assert (told.added, told.updated, told.unchanged) == (1, 1, 1)


@pytest.mark.parametrize("attempt", range(5))
def test_the_same_document_again_is_unchanged_whatever_the_moment_it_was_made(
    engine: trivet.Engine, attempt: int
) -> None:
    """Its creation time is kept to the microsecond, as a datetime holds it."""
    engine.add("the same", id="a", meta={"n": 1.5})
    before = engine.get("a")
    assert engine.add("the same", id="a", meta={"n": 1.5}).unchanged == 1
    assert engine.get("a") == before
    assert before is not None
    assert [document.id for document in engine.documents({"created": before.created})] == ["a"]
    assert [document.id for document in engine.documents({"updated": {"gte": before.updated}})] == ["a"]


@pytest.mark.parametrize(
    "change",
    [
        {"text": "new"},
        {"title": "New"},
        {"kind": "episode"},
        {"importance": 0.9},
        {"meta": {"a": 2}},
        {"valid_to": 9e9},
    ],
)
def test_every_field_that_changes_is_an_update(engine: trivet.Engine, change: dict[str, Any]) -> None:
    base = {
        "id": "a",
        "text": "old",
        "title": "Old",
        "kind": "note",
        "importance": 0.1,
        "meta": {"a": 1},
        "valid_to": 8e9,
    }
    engine.add(base)
    assert engine.add(base).unchanged == 1
    assert engine.add({**base, **change}).updated == 1
    assert engine.add({**base, **change}).unchanged == 1
    assert not orphans(engine._collection)


def test_an_update_keeps_the_creation_time_and_the_place(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add([{"id": "a", "text": "one", "created": "2020-01-01"}, {"id": "b", "text": "two"}])
    engine.add("new", id="a")
    found = engine.get("a")
    assert found is not None
    assert found.created is not None
    assert found.created.isoformat() == "2020-01-01T00:00:00+00:00"
    assert [document.id for document in engine.documents()] == ["a", "b"]
    assert collection.documents.numbers(["a", "b"]) == {"a": 1, "b": 2}


def test_metadata_alone_moves_no_passage(engine: trivet.Engine, collection: SqliteCollection) -> None:
    """The text is the same: nothing is indexed or embedded again."""
    engine.add("text", id="a", meta={"v": 1})
    passages = table(collection, "SELECT * FROM passages")
    engine.add("text", id="a", meta={"v": 2, "w": ["x", "y"]})
    assert table(collection, "SELECT * FROM passages") == passages
    assert table(collection, "SELECT key, value FROM fields") == [("v", 2), ("w", "x"), ("w", "y")]
    assert counters(collection)["removed"] == 0


def test_another_text_moves_every_passage(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add(LONG, id="a")
    old = {pid for (pid,) in table(collection, "SELECT pid FROM passages")}
    assert len(old) > 2
    engine.add("short now", id="a")
    new = {pid for (pid,) in table(collection, "SELECT pid FROM passages")}
    assert len(new) == 1
    assert min(new) > max(old)
    assert {pid for (pid,) in table(collection, "SELECT pid FROM removed")} == old
    assert not orphans(collection)


def test_row_numbers_are_never_used_twice(engine: trivet.Engine, collection: SqliteCollection) -> None:
    seen: dict[str, set[int]] = {"did": set(), "pid": set(), "vid": set()}
    for round_number in range(4):
        engine.add([{"id": f"d{at}", "text": f"round {round_number} number {at}"} for at in range(5)])
        engine.wait()
        for column, source in (("did", "documents"), ("pid", "passages"), ("vid", "vectors")):
            now = {number for (number,) in table(collection, f"SELECT {column} FROM {source}")}
            assert not now & seen[column], f"{column} came back"
            seen[column] |= now
        engine.delete([f"d{at}" for at in range(5)])
    assert rows_of_everything(collection)["documents"] == 0
    taken = counters(collection)
    assert taken.pop("vector") >= max(seen["vid"])  # more where two threads embedded the same passages
    assert taken == {"document": 20, "passage": 20, "removed": 20}


def test_a_collection_number_is_never_used_twice(engine: trivet.Engine) -> None:
    """The folder of the indexes is named by it."""
    first = engine.collection("other", embedder="none")
    number = first._collection.rows.cid
    first.drop()
    assert engine.collection("other", embedder="none")._collection.rows.cid > number


def test_removal_leaves_no_row_in_any_table(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add(
        [
            {"id": "a", "text": LONG, "meta": {"x": {"y": [1, True, "z", None, 2.5]}}, "links": ["b"]},
            {"id": "b", "text": "other", "meta": {"x.y": 1}, "links": [{"target": "a", "type": "part-of"}]},
        ]
    )
    engine.wait()
    assert all(rows_of_everything(collection).values())
    assert engine.delete("a") == 1
    assert not orphans(collection)
    assert engine.links() == [], "a link to what was deleted"
    assert engine.delete(["b", "b", "never"]) == 1
    assert not any(rows_of_everything(collection).values())
    assert engine.stats().documents == engine.stats().passages == engine.stats().embedded == 0


def test_a_dropped_collection_leaves_no_row_in_any_table(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add("kept", id="k", meta={"a": 1})
    kept = rows_of_everything(collection)
    other = engine.collection("other", embedder="hashing:32")
    other.add([{"id": "a", "text": LONG, "meta": {"a": 1}, "links": ["b"]}, {"id": "b", "text": "x"}])
    other.wait()
    other.delete("b")
    other.drop()
    assert rows_of_everything(collection) == kept
    assert table(collection, "SELECT count(*) FROM models") == [(1,)]
    assert table(collection, "SELECT count(*) FROM removed") == [(0,)]
    with pytest.raises(NotFoundError, match="other"):
        other.search("x")


def test_collections_do_not_see_each_other(engine: trivet.Engine) -> None:
    other = engine.collection("other", embedder="hashing:64")
    engine.add("heron here", id="same", meta={"where": "default"})
    other.add("heron there", id="same", meta={"where": "other"})
    assert other.delete(where={"where": "other"}) == 1
    assert engine.get("same") is not None
    assert other.get("same") is None
    assert [hit.text for hit in engine.search("heron")] == ["heron here"]


def test_the_later_of_two_of_one_id_wins(engine: trivet.Engine) -> None:
    told = engine.add([{"id": "a", "text": "first"}, {"id": "b", "text": "b"}, {"id": "a", "text": "second"}])
    assert (told.added, told.duplicates) == (2, 1)
    found = engine.get("a")
    assert found is not None
    assert found.text == "second"
    assert len(engine.search("first", alpha=0.0)) == 0


def test_links_are_replaced_by_source_target_and_type(engine: trivet.Engine) -> None:
    engine.add([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
    engine.link("a", "b", weight=0.5)
    engine.link("a", "b", weight=0.9)
    engine.link("a", "b", "supersedes")
    assert engine.links("b") == [Link("a", "b", "see-also", 0.9), Link("a", "b", "supersedes", 1.0)]
    assert engine.unlink("a", "b", "see-also") == 1
    assert engine.links() == [Link("a", "b", "supersedes", 1.0)]
    assert engine.unlink("a", "b") == 1


def test_many_ids_are_looked_up_in_pieces(engine: trivet.Engine) -> None:
    many = [{"id": f"d{number}", "text": f"number {number}"} for number in range(1203)]
    assert engine.add(many).added == 1203
    assert engine.add(many).unchanged == 1203
    assert len(engine._collection.documents.numbers([item["id"] for item in many])) == 1203
    assert engine.delete([item["id"] for item in many]) == 1203
    assert not orphans(engine._collection)


def test_vectors_of_a_passage_that_went_meanwhile_are_passed_over(
    engine: trivet.Engine, collection: SqliteCollection
) -> None:
    engine.add("one", id="a")
    model = collection.state().model
    assert model is not None
    ((pid,),) = table(collection, "SELECT pid FROM vectors")
    (data,) = collection.vectors.of_documents(model.mid, [1]).values()
    collection.vectors.add(model.mid, [(pid, data), (999, data)])
    assert collection.state().model == model
    assert table(collection, "SELECT pid FROM vectors") == [(pid,)]


def test_take_reserves_a_run_of_numbers(collection: SqliteCollection) -> None:
    with collection.rows.changing() as connection:
        assert document_writes.take(connection, "document", 3) == 1
        assert document_writes.take(connection, "document", 1) == 4


def test_every_write_raises_the_version_by_which_indexes_know_of_news(
    engine: trivet.Engine, collection: SqliteCollection
) -> None:
    engine.add([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
    for change in (
        lambda: engine.add("c", id="c"),
        lambda: engine.add("c", id="c", meta={"x": 1}),
        lambda: engine.link("a", "b"),
        lambda: engine.unlink("a", "b"),
        lambda: engine.update_settings(k=3),
        lambda: engine.delete("c"),
    ):
        before = collection.state().version
        change()
        assert collection.state().version > before


# --- any sequence of writes -------------------------------------------------------------------------------------------

ids = st.sampled_from("abcd")
metas = st.dictionaries(
    st.sampled_from(["k", "l.m", "ü"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)
texts = st.sampled_from(["one", "two two", "three three three", LONG])
steps = st.one_of(
    st.tuples(
        st.just("add"), st.lists(st.tuples(ids, texts, metas, st.lists(ids, max_size=2)), min_size=1, max_size=4)
    ),
    st.tuples(st.just("delete"), st.lists(ids, min_size=1, max_size=3)),
    st.tuples(st.just("link"), st.tuples(ids, ids)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=8))
def test_after_any_sequence_of_writes_the_rows_agree(plan: list[tuple[str, Any]]) -> None:
    held: dict[str, tuple[str, Any]] = {}
    with trivet.open(":memory:", embedder="hashing:16") as engine:
        for what, given_ in plan:
            if what == "add":
                engine.add([{"id": id, "text": text, "meta": meta, "links": links} for id, text, meta, links in given_])
                held.update({id: (text, meta) for id, text, meta, _ in given_})
            elif what == "delete":
                assert engine.delete(given_) == len(set(given_) & set(held))
                held = {id: value for id, value in held.items() if id not in given_}
            elif set(given_) <= set(held):
                engine.link(*given_)
        engine.wait()
        assert not orphans(engine._collection)
        assert {document.id: (document.text, document.meta) for document in engine.documents()} == held
        assert engine.stats().pending == 0


def test_a_document_given_again_with_its_vector_is_unchanged() -> None:
    with trivet.open(":memory:", embedder="vectors:3") as engine:
        collection = engine._collection
        assert isinstance(collection, SqliteCollection)
        given = {"id": "a", "text": "tea", "vector": [0.1, 0.2, 0.3]}
        engine.add(given)
        passages = table(collection, "SELECT pid FROM passages")
        (data,) = collection.vectors.of_documents(1, [1]).values()
        assert engine.add([given, {**given, "id": "b"}]).unchanged == 1
        # what was exported: of length 1 already, and rounded
        kept = list(memoryview(data).cast("f"))
        assert engine.add({**given, "vector": [value * (1 + 1e-7) for value in kept]}).unchanged == 1
        assert table(collection, "SELECT pid FROM passages WHERE did = 1") == passages
        assert engine.add({**given, "meta": {"seen": True}}).updated == 1
        assert table(collection, "SELECT pid FROM passages WHERE did = 1") == passages, "its vector did not move"
        assert engine.add({**given, "vector": [0.3, 0.2, 0.1]}).updated == 1
        assert engine.search("", vector=[0.3, 0.2, 0.1])[0].id == "a"
        assert table(collection, "SELECT pid FROM passages WHERE did = 1") != passages


def test_a_vector_in_place_of_several_passages_is_news() -> None:
    with trivet.open(":memory:", embedder="hashing:8") as engine:
        engine.add({"id": "a", "text": LONG})
        engine.wait()
        data, *_ = engine._collection.vectors.by_hash(1, [1])[1].values()
        vector = list(memoryview(data).cast("f"))
        assert engine.add({"id": "a", "text": LONG, "vector": vector}).updated == 1
        assert table(engine._collection, "SELECT count(*) FROM passages") == [(1,)]  # type: ignore[arg-type]
        assert engine.add({"id": "a", "text": LONG, "vector": vector}).unchanged == 1


def test_no_statement_numbers_its_placeholders() -> None:
    """``?1`` with a sequence of values is deprecated from Python 3.12 on, and an error in 3.14."""
    for path in Path(document_writes.__file__).parent.glob("*.py"):
        assert not re.search(r"[ (,=]\?[0-9]", path.read_text()), path.name


# --- accesses ---------------------------------------------------------------------------------------------------------


def access_counts(collection: SqliteCollection) -> dict[int, int]:
    return dict(collection.rows.all("SELECT did, count FROM access", ()))


def test_a_count_that_comes_with_a_document_is_a_least(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.add("fox", id="a", accesses=4)
    (did,) = collection.documents.numbers(["a"]).values()
    assert access_counts(collection) == {did: 4}
    with collection.rows.changing() as connection:
        document_writes.raise_accesses(connection, [(did, collection.rows.cid, 2)])
        assert document_writes.count_access(connection, collection.rows.cid, ["a", "gone"], 0.0) == 1
    assert access_counts(collection) == {did: 5}
    engine.delete("a")
    assert access_counts(collection) == {}


def test_the_same_id_in_another_collection_is_another_document(
    engine: trivet.Engine, collection: SqliteCollection
) -> None:
    engine.add("fox", id="a")
    other = engine.collection("other", embedder="none")
    other.add("fox", id="a")
    other.touch("a")
    assert [item.accesses for item in engine.documents()] == [0]
    other.drop()
    assert access_counts(collection) == {}
