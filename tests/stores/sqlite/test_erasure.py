"""After ``forget`` and ``compact`` a document is in no byte of the store's files."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tantivy

import trivet
from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import term_index, vector_index

OTHERS = 60  # documents that stay


def marker(kind: str) -> str:
    """A word that stands nowhere else, and that no stemmer changes."""
    return f"{kind}zq" + "".join("bcdfghjklmnpqrtvwx"[byte % 18] for byte in secrets.token_bytes(12)) + "k"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trivet.Engine]:
    for module, name, value in (
        (term_index, "TAIL_LIMIT", 8),
        (vector_index, "SNAPSHOT_FROM", 8),
        (graph_index, "TAIL_LIMIT", 8),
    ):
        monkeypatch.setattr(module, name, value)  # so that every index is on disk
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as engine:
        engine.update_settings(weights={"lexical": 1, "dense": 1, "trigram": 1, "graph": 1})
        yield engine


def fill(engine: trivet.Engine, count: int = OTHERS) -> None:
    engine.add(
        [
            {
                "id": f"doc-{at}",
                "text": f"Harbour Master {at} wrote about tide {at % 7} and Blue Falcon.",
                "title": "Log",
            }
            for at in range(count)
        ]
    )


def write_marked(engine: trivet.Engine) -> dict[str, str]:
    """A document with a marker in everything that a caller can write, in several versions."""
    marks = {kind: marker(kind) for kind in ("text", "title", "id", "key", "value", "kind", "link", "query", "name")}
    marks |= {f"old{at}": marker(f"old{at}") for at in range(3)}
    for at in range(3):
        engine.add(
            {"id": marks["id"], "text": f"An earlier version says {marks[f'old{at}']} {at}.", "title": f"T {at}"}
        )
        engine.wait()
    long = " ".join(f"Sentence {at} names Captain {marks['name'].title()} of {marks['text']}." for at in range(400))
    engine.add(
        {
            "id": marks["id"],
            "title": f"About {marks['title']}",
            "text": long,
            "kind": marks["kind"],
            "meta": {marks["key"]: marks["value"], "triples": [["Captain", "met", marks["name"].title()]]},
        }
    )
    # a name that two documents have is written into the graph
    engine.add({"id": f"{marks['id']}-2", "text": f"The Captain {marks['name'].title()} again, at the Harbour."})
    engine.patch(marks["id"], importance=0.9)
    engine.wait()
    engine.link(marks["id"], "doc-1", type=marks["link"])
    engine.link("doc-2", marks["id"], type=marks["link"])
    engine.feedback(marks["query"], marks["id"])
    engine.touch(marks["id"])
    for asked in (marks["text"], marks["name"], marks["title"] + "x"):
        for where in (None, {"kind": marks["kind"]}):
            for _ in range(4):
                engine.search(asked, where=where)
    engine.prepare()
    return marks


def forms(word: str) -> Iterable[bytes]:
    """The word as it may be stored: other cases, other encodings, and its middle, whatever an analyser cut off."""
    for spelt in {word, word.lower(), word.upper(), word.title(), word[4:-2].lower()}:
        yield from (spelt.encode(), spelt.encode("utf-16-le"), spelt.encode("utf-16-be"))


def holding(folder: Path, marks: dict[str, str]) -> list[str]:
    """Every (file, marker) that is found."""
    found = []
    for path in sorted(folder.rglob("*")):
        data = (path.read_bytes() if path.is_file() else b"") + os.fsencode(path.name)
        found += [
            f"{path.relative_to(folder)}: {kind}" for kind, word in marks.items() if any(f in data for f in forms(word))
        ]
    return found


def terms_of(folder: Path, marks: dict[str, str]) -> list[str]:
    """Every (index, term) of the markers that tantivy knows, also of deleted passages: its files are compressed."""
    found = []
    for name in ("words", "trigrams"):
        index = next(folder.glob(f"memory.db.index/*/{name}"), None)
        if index is None:
            continue
        searcher = tantivy.Index.open(str(index)).searcher()
        for word in marks.values():
            terms = [word, word.lower(), word[4:7].lower()] if name == "trigrams" else [word.lower()]
            found += [f"{name}: {term}" for term in terms if searcher.doc_freq("body", term)]
            found += [f"{name}: {term}" for term, _ in searcher.terms_with_prefix("body", word.lower()[:8])]
    return found


def test_a_forgotten_document_is_in_no_byte(engine: trivet.Engine, tmp_path: Path) -> None:
    fill(engine)
    marks = write_marked(engine)
    before = [*holding(tmp_path, marks), *terms_of(tmp_path, marks)]
    for place in ("memory.db", "words: ", "trigrams: ", "graph"):  # the search for it finds it where it is
        assert any(place in told for told in before), (place, before)

    forgotten = engine.forget([marks["id"], f"{marks['id']}-2"], compact=True)
    assert forgotten.documents == 2 and forgotten.compacted is not None and forgotten.compacted.pruned > 0
    assert holding(tmp_path, marks) == []
    assert terms_of(tmp_path, marks) == []
    assert engine.verify().ok
    assert len(engine.search("harbour tide", k=5)) == 5
    assert not engine.feedbacks() and not engine.links()
    engine.close()
    assert holding(tmp_path, marks) == []


def test_delete_and_compact_leave_only_the_feedback(engine: trivet.Engine, tmp_path: Path) -> None:
    fill(engine)
    marks = write_marked(engine)
    assert engine.delete([marks["id"], f"{marks['id']}-2"]) == 2
    engine.compact()
    assert terms_of(tmp_path, marks) == []
    assert {told.rpartition(" ")[2] for told in holding(tmp_path, marks)} == {"id", "query"}


def test_an_expired_document_goes_the_same_way(engine: trivet.Engine, tmp_path: Path) -> None:
    fill(engine)
    marks = write_marked(engine)
    for id in (marks["id"], f"{marks['id']}-2"):
        engine.patch(id, expires=datetime.now(UTC) + timedelta(milliseconds=500))
    while engine.get(marks["id"]) or engine.get(f"{marks['id']}-2"):
        time.sleep(0.01)
    engine.compact()
    assert holding(tmp_path, marks) == []
    assert terms_of(tmp_path, marks) == []


def test_what_stays_is_found_as_before(engine: trivet.Engine) -> None:
    fill(engine)
    marks = write_marked(engine)
    engine.delete(marks["id"])
    asked = ("harbour master 7", "tide falcon", "blue falcom")
    before = [[hit.id for hit in engine.search(query, k=10)] for query in asked]
    engine.compact()
    assert [[hit.id for hit in engine.search(query, k=10)] for query in asked] == before
    assert engine.get("doc-3") is not None
    engine.add({"id": "later", "text": "Harbour Master came later."})
    assert "later" in [hit.id for hit in engine.search("later")]
