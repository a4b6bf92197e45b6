"""Every store forgets alike: by name, by a filter, and when a document's time has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trivet.engine import Engine
from trivet.errors import InputError, NotAllowedError, NotFoundError

Open = Callable[..., Engine]
PAST, SOON = datetime(2001, 1, 1, tzinfo=UTC), timedelta(hours=1)


def fill(engine: Engine) -> None:
    engine.add(
        [
            {"id": "stays", "text": "the lighthouse stays", "meta": {"tenant": "a", "place": "quay"}},
            {"id": "later", "text": "the lighthouse for an hour", "expires": SOON, "meta": {"tenant": "a"}},
            {"id": "gone", "text": "the lighthouse of once", "meta": {"tenant": "a", "secret": "x"}, "kind": "draft"},
        ]
    )
    engine.link("gone", "stays")
    engine.link("stays", "gone", "supersedes")
    engine.feedback("lighthouse", "gone")
    engine.feedback("lighthouse", "stays")


def expire(engine: Engine, id: str = "gone") -> None:
    """Let a document expire in a moment, and wait for it."""
    engine.patch(id, expires=timedelta(milliseconds=300))
    time.sleep(0.35)


@pytest.mark.usefixtures("unswept")
def test_an_expired_document_is_seen_by_no_reader(open_at: Open) -> None:
    memory = open_at(embedder="hashing:64")
    fill(memory)
    expire(memory)
    bound = memory.within({"tenant": "a"})
    for engine in (memory, bound):
        assert engine.get("gone") is None
        assert {document.id for document in engine.documents()} == {"stays", "later"}
        assert {document.id for document in engine.page(limit=10)} == {"stays", "later"}
        for options in ({}, {"as_of": "2020-01-01"}, {"where": {"tenant": "a"}}, {"follow_links": False}):
            assert {hit.id for hit in engine.search("lighthouse once", **options)} == {"stays", "later"}, options
        assert engine.search("lighthouse", where={"kind": "draft"}).hits == ()
        assert [facet.field for facet in engine.facets() if facet.field == "secret"] == []
        assert [facet.values for facet in engine.facets() if facet.field == "kind"] == [(("note", 2),)]
        assert engine.stats().documents == 2 and "secret" not in engine.stats().fields
        assert engine.links() == [] and engine.links("stays") == []
        assert [given.id for given in engine.feedbacks()] == ["stays"]
        assert engine.redundant().superseded == ()
        assert sum(period.documents for period in engine.timeline().periods) == 2
        with pytest.raises(InputError, match="no document has a field 'secret'"):
            engine.search("lighthouse", where={"secret": "x"})
    with pytest.raises(NotFoundError):
        memory.explain("lighthouse", "gone")
    assert "gone" not in "".join(memory.lines())


def test_a_sweep_forgets_what_has_expired(open_at: Open) -> None:
    memory = open_at(embedder="hashing:64")
    fill(memory)
    assert memory.sweep() == 0
    expire(memory)
    memory.sweep()  # or the search of another thread was first
    assert memory._collection.state().documents == 2
    assert [given.id for given in memory.feedbacks()] == ["stays"]
    assert memory.verify().ok


def test_an_id_that_comes_again_is_a_new_document(open_at: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_at()
    memory.add({"id": "a", "text": "once", "created": "2001-01-01", "accesses": 7, "expires": PAST})
    assert memory.get("a") is None
    with pytest.raises(NotFoundError):
        memory.patch("a", title="x")
    memory.add({"id": "a", "text": "once", "expires": PAST})
    added = memory.add({"id": "a", "text": "once"})
    found = memory.get("a")
    assert added.added == 1 and found is not None and found.accesses == 0 and found.created.year > 2001  # type: ignore[union-attr]
    assert memory.delete("a") == 1


def test_when_it_expires_is_written_read_changed_and_filtered(open_at: Open) -> None:
    memory = open_at()
    until = datetime(2100, 1, 1, tzinfo=UTC)
    memory.add([{"id": "a", "text": "one", "expires": until}, {"id": "b", "text": "two"}])
    assert memory.get("a").expires == until and memory.get("b").expires is None  # type: ignore[union-attr]
    assert memory.add({"id": "a", "text": "one", "expires": "2100-01-01"}).unchanged == 1
    assert memory.add({"id": "a", "text": "one", "expires": "2101-01-01"}).updated == 1
    assert [found.id for found in memory.documents(where="expires>=2101-01-01")] == ["a"]
    assert [found.id for found in memory.documents(where={"expires": None})] == ["b"]
    assert memory.patch("b", expires=until).expires == until
    assert memory.patch("b", title="t").expires == until
    assert memory.patch("b", expires=None).expires is None
    with pytest.raises(InputError, match=r"expires .* has passed"):
        memory.patch("b", expires=PAST)
    with pytest.raises(InputError, match="expires"):
        memory.add("three", expires="tomorrow")
    assert [period.period for period in memory.timeline(field="expires", step="year").periods] == ["2101"]
    other = open_at("other")
    other.add([{**item} for item in memory_of(memory)])
    assert {found.id: found.expires for found in other.documents()} == {
        found.id: found.expires for found in memory.documents()
    }


def memory_of(engine: Engine) -> list[dict[str, Any]]:
    import json

    return [item for item in map(json.loads, engine.lines()) if "text" in item]


def test_told_again_it_lives_as_long_as_the_longer_of_both(open_at: Open) -> None:
    memory = open_at()
    first = memory.remember("the pier is closed", expires=SOON)
    assert memory.remember("the pier is closed", expires=timedelta(minutes=1)).id == first.id
    assert memory.get(first.id).expires > datetime.now(UTC) + timedelta(minutes=30)  # type: ignore[union-attr, operator]
    assert memory.remember("the pier is closed").id == first.id
    assert memory.get(first.id).expires is None  # type: ignore[union-attr]
    assert memory.remember("the pier is closed", expires=SOON).id == first.id
    assert memory.get(first.id).expires is None  # type: ignore[union-attr]


def test_forget_takes_the_feedback_too_and_delete_does_not(open_at: Open) -> None:
    memory = open_at()
    fill(memory)
    assert memory.delete("gone") == 1
    assert {given.id for given in memory.feedbacks()} == {"gone", "stays"}
    assert memory.forget("stays").documents == 1
    assert {given.id for given in memory.feedbacks()} == {"gone"}
    assert memory.forget(where={"tenant": "a"}).documents == 1
    assert memory.forget(["nobody"]).documents == 0
    for wrong in ({}, {"ids": "a", "where": {"tenant": "a"}}, {"where": {}}):
        with pytest.raises(InputError):
            memory.forget(**wrong)  # type: ignore[arg-type]


def test_a_bound_engine_forgets_what_it_sees_and_compacts_nothing(open_at: Open) -> None:
    memory = open_at()
    memory.add([{"id": "a", "text": "one", "meta": {"t": 1}}, {"id": "b", "text": "two", "meta": {"t": 2}}])
    bound = memory.within({"t": 1})
    assert bound.forget(["a", "b"]).documents == 1 and memory.get("b") is not None
    for call in (bound.compact, bound.sweep, lambda: bound.forget("b", compact=True)):
        with pytest.raises(NotAllowedError):
            call()


@pytest.mark.needs("graph")
def test_compacting_prunes_the_removals_and_changes_no_answer(open_at: Open) -> None:
    memory = open_at(embedder="hashing:64", collection="one")
    memory.update_settings(weights={"lexical": 1, "dense": 1, "graph": 1})
    memory.add([{"id": f"d{at}", "text": f"Blue Falcon number {at} of the harbour"} for at in range(30)])
    reader = open_at(embedder="hashing:64", collection="one")
    memory.search("falcon"), reader.search("falcon")
    memory.forget([f"d{at}" for at in range(20)])
    before = [hit.id for hit in memory.search("falcon harbour", k=20)]
    done = memory.compact()
    assert done.pruned == 20 and memory.compact().pruned == 0
    for engine in (memory, reader):
        assert sorted(hit.id for hit in engine.search("falcon harbour", k=20)) == sorted(before)
    reader.add({"id": "new", "text": "a falcon that is new"})
    memory.forget("d25")
    assert {hit.id for hit in memory.search("falcon", k=20)} == {*before, "new"} - {"d25"}
    assert memory.verify().ok
