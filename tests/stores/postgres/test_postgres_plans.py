"""Are the server's indexes used, and is what they find right?"""

from __future__ import annotations

import numpy as np
import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.stores.postgres import meaning, spelling, words
from trivet.stores.postgres.meaning import Meaning
from trivet.stores.postgres.nul import is_plain
from trivet.stores.postgres.terms import lexeme, line, query, vector

from .conftest import rows

MEANING = {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}, "rerankers": []}
WORDS = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}, "rerankers": []}


@pytest.fixture(scope="module")
def many(postgres: Postgres) -> object:
    """2,000 documents with random vectors, a rare word in every hundredth, and one in a thousand marked."""
    vectors = np.random.default_rng(7).standard_normal((2_000, 16)).astype(np.float32)
    with (
        pytest.MonkeyPatch.context() as patch,
        postgres.kept() as url,
        trivet.open(url, embedder="vectors:16") as memory,
    ):
        patch.setattr(meaning, "INDEX_FROM", 500)
        patch.setattr(meaning, "EXACT_UP_TO", 10)
        patch.setattr(words, "FEW_ALLOWED", 10)
        patch.setattr(words, "FIRST_LOOK", 50)
        memory.add(
            [
                {
                    "id": f"d{n}",
                    "text": f"the common heron {'rare' if n % 100 == 0 else 'usual'} w{n % 37}",
                    "meta": {"part": n % 4, "few": n % 50},
                    "vector": vectors[n],
                }
                for n in range(2_000)
            ]
        )
        yield memory, vectors


def plan(memory: Engine, sql: str, *values: object) -> str:
    return "\n".join(line for (line,) in rows(memory, f"EXPLAIN {sql}", *values))


def forced(memory: Engine, sql: str) -> str:
    """The plan where a scan of so small a table is not worth it: can the index serve?"""
    with memory._store.database.connection() as connection:  # type: ignore[attr-defined]
        connection.execute("SET enable_seqscan = off")
        told = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {sql}").fetchall())
        connection.execute("RESET enable_seqscan")
    return told


def test_the_index_over_the_vectors_is_made_used_and_right(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    model = memory._shelf.state().model
    assert model is not None
    near = Meaning(memory._store.database, memory._shelf.cid, model)  # type: ignore[attr-defined]
    assert near.has_index() and memory.verify().ok
    told = plan(
        memory,
        f"SELECT pid FROM vectors v WHERE v.cid = {memory._shelf.cid} AND v.mid = {model.mid} "  # type: ignore[attr-defined]
        "ORDER BY (v.data::vector(16)) <=> %s::vector(16) LIMIT 10",
        str(vectors[0].tolist()),
    )
    assert f"Index Scan using {near.index}" in told
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    recall = 0
    for n in range(20):
        found = memory.search("", vector=vectors[n] + 0.1, k=10, **MEANING)
        asked = (vectors[n] + 0.1) / np.linalg.norm(vectors[n] + 0.1)
        exact = np.argsort(-(unit @ asked))[:10]
        recall += len({hit.id for hit in found} & {f"d{at}" for at in exact})
        scores = [hit.contributions[0].raw for hit in found]
        assert scores == sorted(scores, reverse=True), "relaxed order is sorted again"
    assert recall >= 190


def test_a_narrow_filter_does_not_starve_the_index(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    for where, there in (({"few": 7}, 40), ({"few": 7, "part": 3}, 20), ({"part": 1}, 500)):
        found = memory.search("", vector=vectors[0], k=30, where=where, dense_depth=30, **MEANING)
        assert len(found) == min(30, there), where


def test_words_come_from_the_inverted_index_rarest_first(many: tuple[Engine, np.ndarray]) -> None:
    memory, _ = many
    assert "passages_words" in forced(memory, "SELECT pid FROM passages p WHERE p.cid = 1 AND p.words @@ 'rare'")
    found = memory.search("common rare heron", k=20, match="any", **WORDS)
    assert {hit.id for hit in found} == {f"d{n}" for n in range(0, 2000, 100)}
    inside = memory.search("common rare heron w3", k=50, match="any", where={"part": 2}, **WORDS)
    assert len(inside) == 50 and all(hit.document.meta["part"] == 2 for hit in inside)


def test_trigrams_come_from_their_index(many: tuple[Engine, np.ndarray]) -> None:
    memory, _ = many
    assert "passages_trigrams" in forced(memory, "SELECT pid FROM passages p WHERE p.cid = 1 AND 'raer' <% p.body")


def test_a_step_that_takes_too_long_leaves_the_more_alike(
    many: tuple[Engine, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = many
    real = spelling.Spelling._at_least

    def slow(self: spelling.Spelling, threshold: float, *rest: object) -> object:
        if threshold < 0.6:
            raise spelling.SlowError("too long")
        return real(self, threshold, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(spelling.Spelling, "_at_least", slow)
    results = memory.search("rare heron", k=30, weights={"lexical": 0, "dense": 0, "trigram": 1, "graph": 0})
    assert results.hits and "none less alike than 0.6" in results.trace[0].detail


def test_half_the_precision_finds_the_same_and_scores_exactly(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "INDEX_FROM", 100)
    vectors = np.random.default_rng(3).standard_normal((300, 8)).astype(np.float32)
    with trivet.open(postgres.fresh(index="halfvec"), embedder="vectors:8") as memory:
        memory.add([{"id": f"d{n}", "text": "x", "vector": vectors[n]} for n in range(300)])
        memory.rebuild()
        (kind,) = rows(
            memory, "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'meaning_1_1'"
        )[0]
        assert "halfvec_cosine_ops" in kind
        best = memory.search("", vector=vectors[5], k=1, **MEANING)[0]
        assert best.id == "d5" and best.contributions[0].raw == pytest.approx(1.0, abs=1e-6)
    postgres.sweep()


def test_pg_textsearch_is_named_and_its_words_survive_a_rebuild(postgres_bm25: Postgres) -> None:
    with trivet.open(postgres_bm25.fresh(), embedder="none") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron c++ v1.{n}.3 {'rare' if n == 9 else ''}"} for n in range(30)])
        results = memory.search("rare c++", match="any", **WORDS)
        assert results[0].id == "d9" and "pg_textsearch" in results.trace[0].detail
        assert [hit.id for hit in memory.search("1.7.3", **WORDS)] == ["d7"]
        memory.delete("d9")
        assert memory.verify().ok
        memory.rebuild()
        assert memory.verify().ok and "pg_textsearch" in memory.search("c++", match="any", **WORDS).trace[0].detail
    postgres_bm25.sweep()


def test_no_term_is_syntax(memory: Engine) -> None:
    odd = ["it's", "back\\slash", "a & b", "(x)", "'quoted'", "c++", ":1A"]
    told = vector(odd, ["c++"])
    found = rows(memory, "SELECT tsvector_to_array(%s::tsvector)", told)[0][0]
    assert set(found) == set(odd)
    assert rows(memory, "SELECT %s::tsvector @@ %s::tsquery", told, query((), odd, [odd[:2]])) == [(True,)]
    assert lexeme("it's") == "'it''s'"
    assert line(["c++", "plain", "zz1"]) == "czz2bzzzz2bzz plain zzzz1"
    assert rows(memory, "SELECT count(*) FROM unnest(to_tsvector('simple', %s))", line(odd)) == [(len(odd),)]


def test_what_is_not_plain_is_known() -> None:
    assert is_plain("heron 北京 🦉") and not is_plain("a\0b") and not is_plain("\U0010ffff")
