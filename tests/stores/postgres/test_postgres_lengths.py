"""BM25 of a server and of a file agree: both round the length of a passage, as tantivy does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trivet
from servers import Postgres
from trivet import data
from trivet.engine import Engine
from trivet.stores.bm25 import rounded, rounded_length, rounded_sql
from trivet.stores.postgres import postings
from trivet.stores.sqlite import term_index

WORDS = {
    "weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0},
    "rerankers": [],
    "understanding": "plain",
    "context": 0.0,
}


def queries() -> list[str]:
    """Return 300 queries: the judged ones of the demo, and beginnings of its notes, without quoted phrases."""
    asked = [question["text"] for question in data.questions()]
    said = [" ".join(note["text"].replace('"', " ").split()[:9]) for note in data.notes()]
    return [query for query in asked + said if query.strip()][:300]


def answers(engine: Engine, query: str) -> dict[str, float]:
    """Return the documents with their scores."""
    return {hit.id: hit.contributions[0].raw for hit in engine.search(query, k=20, **WORDS)}


def same(one: dict[str, float], other: dict[str, float]) -> bool:
    """Tell whether the first ten of both are the same, with the same scores, up to those that share the last score.

    To three thousandths: the index of a file counts one passage more, its checkpoint.
    """
    last = list(other.values())[-1] if len(other) == 20 else 0.0
    return all(
        other.get(id, last) == pytest.approx(score, rel=3e-3)
        for one, other in ((one, other), (other, one))
        for id, score in list(one.items())[:10]
    )


def test_the_server_rounds_as_we_do(postgres: Postgres) -> None:
    lengths = [0, 5, 23, 24, 39, 40, 41, 59, 60, 119, 1_000, 2_000_000_000]
    with postgres.connect() as connection:
        sql = f"SELECT {rounded_sql('x.n')} FROM unnest(%s::integer[]) WITH ORDINALITY x(n, at) ORDER BY x.at"
        found = [n for (n,) in connection.execute(sql, (lengths,))]
    assert found == rounded(np.array(lengths)).tolist() == [rounded_length(length) for length in lengths]


@pytest.mark.parametrize("packed", [False, True], ids=["not indexed yet", "indexed"])
def test_300_queries_have_the_same_answers_on_a_server_and_in_a_file(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    if packed:
        monkeypatch.setattr(postings, "PACK_FROM", 50)
        monkeypatch.setattr(term_index, "TAIL_LIMIT", 0)
    with (
        trivet.open(postgres.fresh(), embedder="none") as server,
        trivet.open(tmp_path / "memory.db", embedder="none") as file,
    ):
        for engine in (server, file):
            engine.add(data.notes())
            engine.prepare()
        asked = queries()
        different = [query for query in asked if not same(answers(server, query), answers(file, query))]
        assert len(asked) == 300 and not different, f"{len(different)} of 300: {different[:3]}"
    postgres.sweep()
