"""A reader process: random searches; every hit must be well-formed. ``reader.py STORE FOLDER NUMBER SEED``."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import trivet
from trivet.errors import InputError
from trivet.types import Results

sys.path.insert(0, str(Path(__file__).parent))
from journal import Journal


def check(results: Results) -> None:
    ids = [hit.id for hit in results]
    assert len(set(ids)) == len(ids), f"an id twice: {ids}"
    assert [hit.rank for hit in results] == list(range(1, len(ids) + 1))
    for hit in results:
        assert hit.document.text.startswith(f"{hit.id} says "), (
            f"{hit.id} has the text of another: {hit.document.text[:60]}"
        )
        assert hit.passage.text == hit.document.text[hit.passage.start : hit.passage.end]
        assert math.isfinite(hit.score), hit
        assert 0.0 <= hit.relevance <= 1.0, hit
        assert hit.contributions, hit
    for item in results.degraded:
        assert "not embedded yet" in item.reason, item


def main(store: str, folder: Path, number: int, seed: int) -> None:
    journal = Journal(folder / f"reader-{number}.jsonl")
    rng = random.Random(f"{seed}/{number}")
    words = ("harbour", "lantern", "granite", "willow", "copper", "says")
    searches = hits = 0
    with trivet.open(store, embedder="hashing") as engine:
        while not (folder / "stop").exists():
            where = rng.choice((None, {"writer": rng.randrange(6)}, {"bucket": {"gte": 10}}, {"kind": "note"}))
            profile = rng.choice(("default", "memories", "chunks"))
            try:
                results = engine.search(
                    " ".join(rng.sample(words, 2)), k=rng.randint(1, 30), where=where, profile=profile
                )
            except InputError as error:  # before the first write there is no such field
                assert "no document has a field" in str(error), error
                continue
            check(results)
            searches, hits = searches + 1, hits + len(results)
            if searches % 20 == 0:
                journal.put(searches=searches, hits=hits)
    journal.put(searches=searches, hits=hits)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
