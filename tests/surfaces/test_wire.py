"""Is everything a search says also in its JSON?"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import trivet
from trivet.surfaces import wire
from trivet.types import Document, Link


def test_documents_and_links() -> None:
    document = Document(
        "a", "text", meta={"tags": ("x", "y"), "nested": {"n": 1}}, created=datetime(2026, 1, 2, tzinfo=UTC)
    )
    plain = wire.document(document, [Link("a", "b")])
    assert json.loads(json.dumps(plain)) == plain
    assert plain["created"] == "2026-01-02T00:00:00+00:00"
    assert plain["meta"] == {"tags": ["x", "y"], "nested": {"n": 1}}
    assert plain["links"] == [{"source": "a", "target": "b", "type": "see-also", "weight": 1.0}]


def test_results() -> None:
    with trivet.open(":memory:", embedder="hashing") as memory:
        memory.add("one apple", id="a", title="Fruit")
        plain = wire.results(memory.search("apple"))
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["hits"][0]["title"], plain["hits"][0]["text"]) == ("Fruit", "one apple")
    assert plain["ms"] > 0
