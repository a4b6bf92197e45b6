"""The JSON of results and documents has every field."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import trivet
from trivet import serialize
from trivet.errors import InputError
from trivet.types import Document, Link


def test_documents_and_links() -> None:
    document = Document(
        "a", "text", meta={"tags": ("x", "y"), "nested": {"n": 1}}, created=datetime(2026, 1, 2, tzinfo=UTC)
    )
    plain = serialize.document(document, [Link("a", "b")])
    assert json.loads(json.dumps(plain)) == plain
    assert plain["created"] == "2026-01-02T00:00:00+00:00"
    assert plain["meta"] == {"tags": ["x", "y"], "nested": {"n": 1}}
    assert plain["links"] == [{"source": "a", "target": "b", "type": "see-also", "weight": 1.0}]


def test_results() -> None:
    with trivet.open(":memory:", embedder="hashing") as memory:
        memory.add("one apple", id="a", title="Fruit")
        plain = serialize.results(memory.search("apple"))
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["hits"][0]["title"], plain["hits"][0]["text"]) == ("Fruit", "one apple")
    assert plain["ms"] > 0


def test_a_hit_without_the_texts_of_its_document_and_passage() -> None:
    with trivet.open(":memory:", embedder="hashing") as memory:
        memory.add("one apple", id="a")
        found = memory.search("apple")
    lean, whole = (serialize.results(found, full)["hits"][0] for full in (False, True))
    assert ("text" in lean["document"], "text" in lean["passage"]) == (False, False)
    assert whole["document"]["text"] == whole["passage"]["text"] == lean["text"] == "one apple"
    assert serialize.hit(found[0], keys=("text", "id")) == {"text": "one apple", "id": "a"}
    with pytest.raises(InputError, match="'colour'"):
        serialize.check_keys(["id", "colour"])
