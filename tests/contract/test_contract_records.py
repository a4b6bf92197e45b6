"""Every store keeps documents the same."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trivet
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError

Open = Callable[..., Engine]

FULL = {
    "id": "full",
    "text": "the harbour light is out",
    "title": "Harbour",
    "kind": "report",
    "meta": {"deep": {"er": [1, 2.5, "x"]}, "on": True, "none": None, "big": 2**62},
    "importance": 0.75,
    "created": "2026-03-01T09:30:00Z",
    "valid_from": "2026-01-01",
    "valid_to": "2027-01-01",
}


def test_a_document_comes_back_as_it_was_given(open_at: Open) -> None:
    memory = open_at()
    added = memory.add([FULL, {"id": "plain", "text": "no more than this"}])
    assert (added.added, added.updated, added.unchanged) == (2, 0, 0)
    found = memory.get("full")
    assert found is not None
    for name in ("text", "title", "kind", "meta", "importance"):
        assert getattr(found, name) == FULL[name]
    assert found.created == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert (found.valid_from, found.valid_to) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert memory.get("nobody") is None
    plain = memory.get("plain")
    assert plain is not None and (plain.title, plain.kind, plain.meta) == ("", "note", {})


def test_an_id_that_exists_is_replaced_and_the_same_is_no_news(open_at: Open) -> None:
    memory = open_at()
    memory.add([FULL])
    before = memory.get("full")
    again = memory.add([FULL])
    assert (again.added, again.updated, again.unchanged) == (0, 0, 1)
    assert memory.get("full") == before
    changed = memory.add([{**FULL, "text": "the harbour light burns", "meta": {"on": False}}])
    assert (changed.added, changed.updated) == (0, 1)
    assert [hit.id for hit in memory.search("burns", match="any")] == ["full"]
    assert len(memory.search("out")) == 0
    assert len(memory.search("light", where={"on": False})) == 1
    assert memory.stats().documents == memory.stats().passages == 1


def test_two_of_one_call_with_one_id_are_one(open_at: Open) -> None:
    memory = open_at()
    assert memory.add([{"id": "a", "text": "one"}, {"id": "a", "text": "two"}]).duplicates == 1
    found = memory.get("a")
    assert found is not None and found.text == "two"


def test_a_long_document_is_found_by_each_of_its_passages(open_at: Open) -> None:
    memory = open_at(passage_size=12)
    parts = [f"Paragraph number {number} is about the {word}." for number, word in enumerate(("cat", "dog", "owl"))]
    memory.add("\n\n".join(parts), id="long", title="Beasts")
    assert memory.stats().passages == 3
    (hit,) = memory.search("owl")
    assert (hit.id, hit.passage.text.strip()) == ("long", parts[2])
    (hit,) = memory.search("beasts")
    assert hit.document.title == "Beasts"
    memory.add("only the heron", id="long")
    assert memory.stats().passages == 1 and not memory.search("owl").hits


def test_what_is_deleted_is_gone_from_everywhere(open_at: Open) -> None:
    memory = open_at(embedder="hashing:64")
    memory.add([{"id": f"d{number}", "text": f"heron {number}", "meta": {"n": number}} for number in range(6)])
    memory.link("d0", "d1")
    memory.wait()
    assert memory.delete("d0") == 1 and memory.delete(["d0", "nobody"]) == 0
    assert memory.delete(where={"n": {"gte": 4}}) == 2
    assert {hit.id for hit in memory.search("heron")} == {"d1", "d2", "d3"}
    assert [document.id for document in memory.documents()] == ["d1", "d2", "d3"]
    assert memory.links() == [] and memory.verify().ok
    stats = memory.stats()
    assert (stats.documents, stats.embedded, stats.pending) == (3, 3, 0)
    assert memory.add("heron", id="d0").added == 1


def test_pages_repeat_nothing_and_skip_nothing_under_writes(open_at: Open) -> None:
    memory = open_at()
    memory.add([{"id": f"d{number:02}", "text": "x", "meta": {"even": number % 2 == 0}} for number in range(20)])
    first = memory.page(limit=8)
    memory.add([{"id": "d03", "text": "rewritten"}, {"id": "new", "text": "late"}])
    memory.delete("d10")
    second = memory.page(after=first.next, limit=8)
    third = memory.page(after=second.next, limit=8)
    ids = [document.id for page in (first, second, third) for document in page]
    assert ids == [f"d{number:02}" for number in range(20) if number != 10] + ["new"]
    assert third.next is None
    assert len(memory.page(where={"even": True}, limit=100)) == 9


def test_some_fields_are_changed_and_others_stay(open_at: Open) -> None:
    memory = open_at()
    memory.add([FULL])
    found = memory.patch("full", importance=0.25, meta={"deep": {"er": None, "new": 1}}, valid_to=None)
    assert (found.importance, found.meta["deep"], found.meta["on"], found.valid_to) == (0.25, {"new": 1}, True, None)
    assert found.text == FULL["text"] and found.created == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    with pytest.raises(NotFoundError, match="nobody"):
        memory.patch("nobody", importance=1)


@pytest.mark.parametrize(
    "text",
    [
        "naïve café, ½ ﬁne – “quoted”",
        "北京的咖啡馆",
        "emoji 🦉 and 👩‍👩‍👧",
        "nul \0 in the middle",
        "it's 100% \\ {curly} %s",
        "\U0010ffff",
    ],
)
def test_any_text_comes_back(open_at: Open, text: str) -> None:
    memory = open_at()
    memory.add(text, id="any", title=text, meta={"key": text})
    found = memory.get("any")
    assert found is not None and (found.text, found.title, found.meta) == (text, text, {"key": text})
    assert [document.id for document in memory.documents(where=trivet.Eq("key", text))] == [found.id]
    memory.search(text)
    memory.feedback(text, found.id)
    assert memory.feedbacks()[0].query == text.strip()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(min_size=1, max_size=40).filter(str.strip), query=st.text(min_size=1, max_size=30).filter(str.strip)
)
def test_no_text_and_no_question_is_a_syntax_error(open_at: Open, text: str, query: str) -> None:
    memory = open_at()
    memory.add({"id": "any", "text": text})
    found = memory.get("any")
    assert found is not None
    memory.search(query, weights={"lexical": 1, "trigram": 1, "dense": 0})


def test_links_go_both_ways_and_can_be_taken_back(open_at: Open) -> None:
    memory = open_at()
    memory.add([{"id": id, "text": id} for id in ("a", "b", "x" * 500)])
    memory.link("a", "b", "see-also", 0.5)
    memory.link("a", "x" * 500, "part-of")
    assert {link.target for link in memory.links("a")} == {"b", "x" * 500}
    assert memory.links("b") == [trivet.types.Link("a", "b", "see-also", 0.5)]
    memory.link("a", "b", "see-also", 0.75)
    assert memory.links("b")[0].weight == 0.75
    assert memory.unlink("a", "b") == 1 and memory.links("b") == []
    with pytest.raises(NotFoundError, match="nobody"):
        memory.link("a", "nobody")


def test_collections_are_apart(open_at: Open) -> None:
    one = open_at()
    two = one.collection("two", embedder="hashing:32", language="de")
    one.add("heron", id="a")
    two.add("Reiher am Wasser", id="a")
    assert one.collections() == ["default", "two"]
    assert one.get("a") != two.get("a")
    assert not one.search("Reiher").hits and len(two.search("Reihers")) == 1
    two.drop()
    assert one.collections() == ["default"] and len(one.search("heron")) == 1
    with pytest.raises(NotFoundError, match="dropped"):
        two.search("Reiher")
    again = one.collection("two", embedder="none")
    assert again.stats().documents == 0


def test_what_was_made_with_other_choices_is_refused(open_at: Open) -> None:
    open_at(language="de").add("Reiher")
    with pytest.raises(InputError, match="was made with 'de'"):
        open_at(language="en")


def test_a_batch_with_a_mistake_stores_nothing(open_at: Open) -> None:
    memory = open_at()
    with pytest.raises(InputError):
        memory.add([{"id": "a", "text": "fine"}, {"id": "b", "text": 3}])
    assert memory.stats().documents == 0


def test_many_at_once_and_their_counts(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")
    many: list[dict[str, Any]] = [
        {"id": f"d{number}", "text": f"heron number {number} stands", "meta": {"n": number, "tags": ["a", "b"]}}
        for number in range(1500)
    ]
    assert memory.add(iter(many)).added == 1500
    memory.wait()
    stats = memory.stats()
    assert (stats.documents, stats.passages, stats.embedded, stats.pending) == (1500, 1500, 1500, 0)
    assert memory.verify().ok
    assert memory.search("number 1234", match="all")[0].id == "d1234"


def test_an_export_has_the_vector_of_every_passage_and_an_import_takes_it(open_at: Open, tmp_path: Path) -> None:
    memory = open_at("notes", embedder="hashing:32", passage_size=12)
    memory.add("\n\n".join(f"The heron number {n} stands in the river." for n in range(20)), id="long")
    memory.add("a short note", id="short")
    memory.wait()
    lines = [json.loads(line) for line in memory.lines(vectors=True)]
    by_id = {line["id"]: line for line in lines[1:]}
    assert isinstance(by_id["short"]["vector"], str)
    assert len(by_id["long"]["vector"]) == memory.stats().passages - 1 > 5
    # vectors that the model would not give
    rows = [base64.b64encode(row.tobytes()).decode() for row in np.eye(32, dtype="<f4")]
    by_id["long"]["vector"] = dict(zip(by_id["long"]["vector"], rows, strict=False))
    (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    memory.forget(["long", "short"])
    memory.import_(tmp_path / "out.jsonl")
    stats = memory.stats()
    assert (stats.embedded, stats.pending) == (stats.passages, 0)
    again = {line["id"]: line["vector"] for line in map(json.loads, list(memory.lines(vectors=True))[1:])}
    assert again == {id: line["vector"] for id, line in by_id.items()}
