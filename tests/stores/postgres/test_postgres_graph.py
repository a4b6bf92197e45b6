"""The graph index of a distributed collection holds every passage of a document, as that in one piece does."""

from __future__ import annotations

from pathlib import Path

import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine

MENTIONS = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 2.0}, "rerankers": []}
PLACES = ("Tarn Fell", "Grey Mill", "Long Weir", "Old Forge", "Far Beck", "Low Barn")


def long_text(at: int) -> str:
    """Return a text that names a place in each of its passages, the next document's first place in the last one."""
    return "\n\n".join(
        f"# Part {part}\n\nThe keeper met us at {PLACES[(at + part) % len(PLACES)]} House. " + "We walked on. " * 40
        for part in range(4)
    )


def filled(url: str) -> Engine:
    engine = trivet.open(url, embedder="none", passage_size=60)
    engine.add([{"id": f"d{at}", "title": f"{place} House", "text": long_text(at)} for at, place in enumerate(PLACES)])
    return engine


def test_documents_of_several_passages_name_the_same_where_they_are_distributed(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path))
    with filled(postgres.fresh()) as whole, filled(postgres.fresh(distribute="documents")) as parts:
        found = [
            {
                hit.id: (round(hit.score, 9), hit.passage.text)
                for hit in engine.search("Tarn Fell House", k=6, **MENTIONS)
            }
            for engine in (whole, parts)
        ]
        assert whole.stats().passages > 3 * len(PLACES)
        assert found[0] == found[1] and len(found[0]) == len(PLACES)
        mentions = [
            len(engine._collection.graph.mentions(engine._collection.state().version).named_by(numbers(engine))[0])
            for engine in (whole, parts)
        ]
        assert mentions[0] == mentions[1]
        assert parts.verify().ok
    postgres.sweep()


def numbers(engine: Engine) -> object:
    import numpy as np

    return np.array(sorted(engine._collection.documents.numbers([f"d{at}" for at in range(len(PLACES))]).values()))
