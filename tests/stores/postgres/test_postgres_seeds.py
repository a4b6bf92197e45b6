"""The profiles on PostgreSQL give the same results as the SQL of the seeds, run on the same server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine

PLACES = ("harbour", "hill", "orchard", "library", "bakery", "station", "garden", "museum")
THINGS = ("lantern", "compass", "ladder", "kettle", "barometer", "telescope", "accordion", "wheelbarrow")
DOINGS = ("was repaired", "went missing", "needs paint", "rusts quietly", "was sold twice", "hums at night")
DIM = 12


def texts() -> dict[str, str]:
    draw = random.Random(11)
    return {
        f"d{n:02}": f"In the {draw.choice(PLACES)} the {draw.choice(THINGS)} {draw.choice(DOINGS)}, "
        f"and the {draw.choice(THINGS)} of {draw.choice(PLACES)} number {n} {draw.choice(DOINGS)}."
        for n in range(80)
    }


def vectors() -> dict[str, Any]:
    rows = np.random.default_rng(5).standard_normal((80, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return dict(zip(texts(), rows, strict=True))


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[tuple[Engine, Any]]:
    """A store of ours, and a connection to the tables of the seeds with the same documents."""
    with postgres.kept() as url, postgres.connect() as seed, trivet.open(url, embedder=f"vectors:{DIM}") as memory:
        schema = url.partition("schema=")[2]
        seed.execute(f"SET search_path TO {schema}, public")
        seed.execute("CREATE TABLE document_chunks (id text PRIMARY KEY, text text NOT NULL)")
        seed.execute(
            "CREATE TABLE chunk_embeddings (chunk_id text NOT NULL REFERENCES document_chunks(id) ON DELETE CASCADE, "
            f"embedding_model text NOT NULL, embedding vector({DIM}) NOT NULL, PRIMARY KEY (chunk_id, embedding_model))"
        )
        seed.execute("CREATE INDEX ON document_chunks USING gin (text gin_trgm_ops)")
        seed.execute("CREATE INDEX ON chunk_embeddings USING hnsw (embedding vector_cosine_ops)")
        known = vectors()
        for id, text in texts().items():
            seed.execute("INSERT INTO document_chunks VALUES (%s, %s)", (id, text))
            seed.execute("INSERT INTO chunk_embeddings VALUES (%s, 'm', %s)", (id, str(known[id].tolist())))
        memory.add(
            [
                {"id": id, "text": text, "vector": known[id], "importance": (n % 10) / 10}
                for n, (id, text) in enumerate(texts().items())
            ]
        )
        yield memory, seed


QUESTIONS = (
    "Where did the accordion of the library go?",
    "the barometr in the orchrad",
    "which telescope hums at night",
    "kettle bakery",
    "station wheelbarrow number 40",
)


def asked(number: int) -> Any:
    vector = np.random.default_rng(100 + number).standard_normal(DIM).astype(np.float32)
    return vector / np.linalg.norm(vector)


def seed_002(seed: Any, keywords: str, vector: Any) -> dict[str, float]:
    """Run the two statements and the fusion of the seed's document."""
    by_meaning = seed.execute(
        "SELECT chunk_id FROM chunk_embeddings WHERE embedding_model = 'm' ORDER BY embedding <=> %s::vector LIMIT 10",
        (str(vector.tolist()),),
    ).fetchall()
    seed.execute("SET pg_trgm.word_similarity_threshold = 0.3")
    by_spelling = seed.execute(
        "SELECT id FROM document_chunks WHERE %s <%% text ORDER BY word_similarity(%s, text) DESC, id LIMIT 10",
        (keywords, keywords),
    ).fetchall()
    scores: dict[str, float] = {}
    for weight, found in ((1.0, by_meaning), (1.5, by_spelling)):
        for rank, (id,) in enumerate(found, start=1):
            scores[id] = scores.get(id, 0.0) + weight / (60 + rank)
    return scores


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_seed_002_chunks_are_found_and_scored_as_by_its_sql(both: tuple[Engine, Any], number: int) -> None:
    memory, seed = both
    question, vector = QUESTIONS[number], asked(number)
    keywords = " ".join(memory._collection.analyzer.keywords(question))
    theirs = seed_002(seed, keywords, vector)
    ours = memory.search(question, k=10, vector=vector, profile="chunks")
    assert {hit.id: hit.score for hit in ours} == pytest.approx({hit.id: theirs[hit.id] for hit in ours}, abs=1e-9)
    assert [hit.score for hit in ours] == pytest.approx(sorted(theirs.values(), reverse=True)[:10], abs=1e-9)


def seed_001(seed: Any, question: str) -> tuple[list[str], bool]:
    """Rank documents with all words by ``ts_rank``; where none has all, those with any."""
    sql = (
        "SELECT id FROM (SELECT id, to_tsvector('english', text) AS words FROM document_chunks) d, "
        "(SELECT {} AS query) q "
        "WHERE words @@ query ORDER BY ts_rank(words, query) DESC, id LIMIT 50"
    )
    found = seed.execute(sql.format("plainto_tsquery('english', %s)"), (question,)).fetchall()
    if found:
        return [id for (id,) in found], True
    broad = "replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery"
    return [id for (id,) in seed.execute(sql.format(broad), (question,)).fetchall()], False


@pytest.mark.parametrize("question", ["accordion library", "kettle bakery", "telescope hums night", "wheelbarrow sold"])
def test_seed_001_finds_by_words_what_its_sql_finds(both: tuple[Engine, Any], question: str) -> None:
    memory, seed = both
    theirs, all_words = seed_001(seed, question)
    assert theirs
    ours = [
        hit.id for hit in memory.search(question, k=80, weights={"lexical": 1, "dense": 0, "graph": 0}, rerankers=[])
    ]
    assert set(theirs) <= set(ours)
    if all_words:  # ours broadens as well, and those with all the words stand before the others
        assert set(ours[: len(theirs)]) == set(theirs)


def test_seed_001_broadens_to_any_word_when_none_has_all(both: tuple[Engine, Any]) -> None:
    memory, seed = both
    theirs, all_words = seed_001(seed, "accordion zeppelin")
    ours = memory.search("accordion zeppelin", k=80, weights={"lexical": 1, "dense": 0, "graph": 0}, rerankers=[])
    assert not all_words and {hit.id for hit in ours} == set(theirs)


DEPTH = {"lexical_depth": 50, "dense_depth": 50}


def test_seed_001_fuses_both_legs_and_multiplies_by_its_prior(both: tuple[Engine, Any]) -> None:
    memory, _ = both
    vector = asked(77)
    legs = {
        leg: [
            hit.id
            for hit in memory.search(
                "kettle of the bakery", k=50, vector=vector, rerankers=[], weights=weights, **DEPTH
            )
        ]
        for leg, weights in (
            ("lexical", {"lexical": 1, "dense": 0, "graph": 0}),
            ("dense", {"lexical": 0, "dense": 1, "graph": 0}),
        )
    }
    expected: dict[str, float] = {}
    for ranked in legs.values():
        for rank, id in enumerate(ranked, start=1):
            expected[id] = expected.get(id, 0.0) + 1.0 / (60 + rank)
    for id in expected:
        document = memory.get(id)
        assert document is not None
        expected[id] *= 0.7 + 0.3 * document.importance
    ours = {hit.id: hit.score for hit in memory.search("kettle of the bakery", k=50, vector=vector, profile="memories")}
    assert ours == pytest.approx({id: expected[id] for id in ours}, rel=1e-6)
    assert len(ours) > 20
