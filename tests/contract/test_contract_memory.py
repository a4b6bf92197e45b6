"""Every store treats duplicates, superseded documents, validity, feedback and settings the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from trivet.engine import Engine
from trivet.engine.keys import Keys
from trivet.errors import NotFoundError
from trivet.graph import supersession

Open = Callable[..., Engine]


def ids(results: Any) -> list[str]:
    return [hit.id for hit in results]


def test_told_again_it_is_reinforced_and_not_stored_twice(open_at: Open) -> None:
    memory = open_at()
    first = memory.remember("The greenhouse door jams.", importance=0.5)
    again = memory.remember("the  greenhouse DOOR jams.")
    assert (first.stored, again.stored, again.reinforced, again.id) == (True, False, True, first.id)
    found = memory.get(first.id)
    assert found is not None and found.accesses == 1 and found.importance == pytest.approx(0.55)
    other = memory.remember("The greenhouse door jams.", meta={"house": 2})
    assert other.stored and memory.stats().documents == 2
    near = memory.remember("The greenhouse door jams badly.")
    assert near.stored and first.id in {similar.id for similar in near.similar}


def test_what_is_superseded_gives_its_place(open_at: Open) -> None:
    memory = open_at()
    memory.add(
        [{"id": id, "text": f"the office is in {where}"} for id, where in (("a", "Rome"), ("b", "Oslo"), ("c", "Kyiv"))]
    )
    memory.link("b", "a", "supersedes")
    memory.link("c", "b", "supersedes")
    (hit,) = memory.search("office Rome", match="all")
    assert (hit.id, set(hit.stands_for)) == ("c", {"a"})
    assert ids(memory.search("office", where={"id": ["a", "b"]})) == ["b"]
    assert set(ids(memory.search("office", follow_links=False))) == {"a", "b", "c"}
    memory.add({"id": "fix", "text": "bring a key", "links": []})
    memory.link("c", "fix", "resolved-by")
    assert memory.search("office Rome", match="all")[0].resolved_by == ("fix",)
    memory.link("a", "c", "supersedes")  # a circle
    assert len(memory.search("office", graph_weight=0.0)) == 1
    assert set(memory.redundant().superseded) >= {("a", "b"), ("b", "c")}


def test_a_chain_is_followed_up_to_a_bound_that_is_told(open_at: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_at()
    memory.add([{"id": id, "text": f"the office {'of Rome' if id == 'a' else ''}"} for id in "abcde"])
    for old, new in itertools.pairwise("abcde"):
        memory.link(new, old, "supersedes")
    for bound, end, cut in ((4, "e", False), (2, "c", True)):
        with monkeypatch.context() as patched:
            patched.setattr(supersession, "MAX_LINKS", bound)
            found = memory.search("office Rome", match="all")
        assert [(hit.id, hit.stands_for) for hit in found] == [(end, ("a",))]
        assert [item.part for item in found.degraded if item.part == "links"] == ["links"] * cut


def test_validity_at_a_moment(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")
    memory.add(
        [
            {"id": "old", "text": "the price is ten", "valid_to": "2026-01-01"},
            {"id": "new", "text": "the price is twelve", "valid_from": "2026-01-01"},
            {"id": "ever", "text": "the price is on the label"},
        ]
    )
    assert set(ids(memory.search("price", as_of="2025-06-01"))) == {"old", "ever"}
    assert set(ids(memory.search("price", as_of="2026-01-01"))) == {"new", "ever"}
    assert set(ids(memory.search("price"))) == {"old", "new", "ever"}


def test_accesses_are_counted_and_are_no_news(open_at: Open) -> None:
    memory = open_at()
    memory.add([{"id": "a", "text": "heron"}, {"id": "b", "text": "heron too"}])
    version = memory._collection.state().version
    assert memory.touch(["a", "nobody"]) == 1
    memory.search("heron", touch=True)
    counts = {document.id: document.accesses for document in memory.documents()}
    assert counts == {"a": 2, "b": 1} and memory._collection.state().version == version
    assert {document.id for document in memory.documents(where={"accessed": {"exists": True}})} == {"a", "b"}
    memory.add([{"id": "a", "text": "heron again"}])
    found = memory.get("a")
    assert found is not None and found.accesses == 2


def test_verdicts_are_kept_and_the_later_one_counts(open_at: Open) -> None:
    memory = open_at()
    memory.add("heron", id="a")
    memory.feedback("which bird", "a", good=True)
    memory.feedback("which bird", "a", good=False)
    memory.feedback("a long question " * 300, "a")
    assert [(item.query[:10], item.good) for item in memory.feedbacks()] == [
        ("which bird", False),
        ("a long que", True),
    ]
    with pytest.raises(NotFoundError, match="nobody"):
        memory.feedback("which bird", "nobody")
    memory.delete("a")
    assert len(memory.feedbacks()) == 2, "what was said of a document outlives it"
    kept = memory.feedbacks()
    assert memory.forget_feedback(query="which bird") == 1 and memory.restore_feedback(kept) == 1
    assert memory.restore_feedback(kept) == 0 and memory.forget_feedback() == 2


def test_settings_change_at_once_for_everyone_and_can_be_reverted(open_at: Open) -> None:
    one, two = open_at(), open_at()
    one.update_settings("episodes", by="sam", k=3)
    assert two.settings == one.settings and two.settings.k == 3
    two.update_settings(k=4, by="kim")
    assert [(change.number, change.by, change.profile.k) for change in one.settings_history()] == [
        (2, "kim", 4),
        (1, "sam", 3),
    ]
    assert one.revert_settings().k == 3 and two.settings.k == 3
    assert one.revert_settings(to=0).name == "default"
    with pytest.raises(NotFoundError, match="99"):
        one.revert_settings(to=99)


def test_keys_are_kept_as_hashes_and_stay_when_revoked(open_at: Open) -> None:
    memory = open_at()
    with Keys(memory.url) as keys, Keys(memory.url) as others:
        assert not keys.any()
        key, text = keys.create("phone", "write", ["default"])
        found = others.find(text)
        assert found == key and found.may("read", "default") and not found.may("admin", "default")
        assert others.find(text[:-1] + ("a" if text[-1] != "a" else "b")) is None
        others.revoke("phone")
        assert keys.find(text) is None and keys.any() and not keys.any_in_use()
        assert [(item.name, item.revoked is not None) for item in keys.list()] == [("phone", True)]


def test_an_export_goes_from_store_to_store(open_at: Open, tmp_path: Any) -> None:
    one, two = open_at(embedder="hashing:32"), open_at("other", embedder="hashing:32")
    one.add([{"id": "a", "text": "heron", "meta": {"n": 1}}, {"id": "b", "text": "fox", "links": ["a"]}])
    one.feedback("bird", "a")
    one.update_settings(k=7)
    assert one.export(tmp_path / "out.jsonl", vectors=True) == 2
    two.import_(tmp_path / "out.jsonl")
    assert list(one.lines(vectors=True)) == list(two.lines(vectors=True))
    assert two.settings.k == 7 and len(two.feedbacks()) == 1 and two.links() == one.links()


def test_what_can_be_made_again_is_made_again(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")
    memory.add([{"id": f"d{number}", "text": f"heron number {number}"} for number in range(40)])
    memory.wait()
    before = {hit.id: hit.score for hit in memory.search("heron number 7", k=40)}
    memory.rebuild()
    after = {hit.id: hit.score for hit in memory.search("heron number 7", k=40)}
    assert after == pytest.approx(before, rel=0.02) and memory.verify().ok
    stats = memory.stats()
    assert stats.bytes_store > 0 and stats.path and "password" not in stats.path
    space = list(memory.space().values())
    assert min(space) >= 0 and sum(space) > 0 and space == sorted(space, reverse=True)
