"""The server uses its indexes, and what they find is right."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.filters import Eq
from trivet.stores.postgres import bm25, lexical, postings, scope, trigrams, vector_search
from trivet.stores.postgres.filter_sql import compile_filter
from trivet.stores.postgres.nul_characters import is_plain
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.terms import lexeme, line, tsquery, tsvector
from trivet.stores.postgres.trigrams import PostgresTrigrams
from trivet.stores.postgres.vector_search import VectorSearch
from trivet.types import Link

from .conftest import Statement, listening, rows

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
        patch.setattr(vector_search, "INDEX_FROM", 500)
        patch.setattr(vector_search, "EXACT_UP_TO", 10)
        patch.setattr(scope, "MAX_LISTED", 100)
        patch.setattr(postings, "PACK_FROM", 500)
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


def plans(memory: Engine, heard: list[Statement]) -> list[tuple[str, str]]:
    """Return each statement with its plan, where the planner is told not to scan so small a table."""
    found: list[tuple[str, str]] = []
    database = memory._store.database  # type: ignore[attr-defined]
    with database.connection() as connection, database.transaction(connection):
        connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        for sql, values in heard:
            if sql.startswith(("SELECT", "WITH")):
                told = connection.execute(f"EXPLAIN {sql}", values or None, prepare=False).fetchall()
                found.append((sql, "\n".join(line for (line,) in told)))
    return found


def used(memory: Engine, heard: list[Statement], part: str) -> str:
    """Return the plans of the statements that have this part."""
    return "\n".join(told for sql, told in plans(memory, heard) if part in sql)


@pytest.mark.usefixtures("one_server")
@pytest.mark.parametrize("asked", [None, "96MB"])
def test_an_index_is_built_with_the_memory_and_workers_of_the_server_or_as_asked(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, asked: str | None
) -> None:
    names = ("maintenance_work_mem", "max_parallel_maintenance_workers")
    used: list[object] = []
    build = VectorSearch._build

    def watched(self: VectorSearch, connection: Any) -> None:
        build(self, connection)
        used.extend(connection.execute(f"SHOW {name}").fetchone()[0] for name in names)

    with postgres.connect() as connection:
        server = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]  # type: ignore[index]
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    monkeypatch.setattr(VectorSearch, "_build", watched)
    options = {"maintenance_work_mem": asked} if asked else {}
    with trivet.open(postgres.fresh(**options), embedder="hashing:32") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(30)])
        memory.wait()
        memory.prepare()
    assert used[-2:] == ([asked, server[1]] if asked else server)
    postgres.sweep()


NEAR, FEW = "ORDER BY (v.data::", "v.did = ANY"  # in the statements over all vectors, and over those of a few documents


@pytest.mark.usefixtures("one_server")
def test_every_statement_of_a_search_goes_by_an_index(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    with listening() as heard:
        memory.search("common rare heron w3", vector=vectors[0], graph_weight=0.0)
        memory.search("common rare heron w3", vector=vectors[0], graph_weight=0.0, where={"few": 7})
        memory.search('"heron rare"', vector=vectors[0], graph_weight=0.0)
    assert not [sql for sql, plan in plans(memory, heard) if "Seq Scan" in plan]
    for part, index in (
        ("SELECT term, passages", "lexicon_pkey"),
        ("first, term, entries FROM", "postings_pkey"),
        ("SELECT pid, did FROM passages", "passages_pkey"),
        ("SELECT count(*), string_agg", "fields_number"),
        (NEAR, "meaning_1_1"),
        ("SELECT did, id, title, text", "documents_pkey"),
        ("SELECT pid, did, ordinal", "passages_pkey"),
        ("SELECT (SELECT", "passages_words"),
    ):
        assert index in used(memory, heard, part), (part, used(memory, heard, part))


def test_few_that_a_filter_allows_are_compared_one_by_one(
    many: tuple[Engine, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, vectors = many
    monkeypatch.setattr(vector_search, "EXACT_UP_TO", 100)
    with listening() as heard:
        memory.search("", vector=vectors[0], where={"few": 9}, **MEANING)
    assert "vectors_document" in used(memory, heard, FEW) and not used(memory, heard, NEAR)


def test_the_index_over_the_vectors_is_right(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    model = memory._collection.state().model
    assert model is not None
    near = VectorSearch(memory._store.database, memory._collection.rows.tables, model)  # type: ignore[attr-defined]
    assert near.has_index() and memory.verify().ok
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


@pytest.mark.parametrize("by", ["collections", "documents"])
def test_the_planner_knows_how_many_documents_a_value_has(postgres: Postgres, by: str) -> None:
    with postgres.kept() as url, trivet.open(f"{url}&distribute={by}", embedder="none") as memory:
        sites = ["common" if n % 5 else f"rare{n}" for n in range(2_000)]
        memory.add([{"id": f"d{n}", "text": "heron", "meta": {"site": site}} for n, site in enumerate(sites)])
        memory.prepare()
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        estimates = []
        for value in ("common", "rare0"):
            condition, values = compile_filter(Eq("site", value), tables)
            sql = f"EXPLAIN SELECT d.did FROM {tables.documents} d WHERE {tables.of('d')} AND {condition}"
            told = memory._store.database.planned(sql, values)  # type: ignore[attr-defined]
            estimates.append(int(re.search(r"rows=(\d+)", told[0][0])[1]))  # type: ignore[index]
    assert 1_400 < estimates[0] < 1_800  # of 1,600; by the usual guess two or three
    assert estimates[1] < 100


def test_a_rare_word_is_looked_up_by_the_index_whatever_the_filter_allows(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lexical._Search._known
    monkeypatch.setattr(lexical._Search, "_known", lambda self, wanted: unpacked(real(self, wanted)))
    texts = ["a heron by the river"] * 3_000 + ["a kingfisher by the river"]
    memory.add([{"id": f"d{n}", "text": text, "meta": {"half": n % 2}} for n, text in enumerate(texts)])
    memory.prepare()
    with listening() as heard:
        found = memory.search("kingfisher", where={"half": 0}, **WORDS)
    assert [hit.id for hit in found] == ["d3000"]
    sql, values = next((sql, values) for sql, values in heard if "words @@" in sql)
    assert "LIMIT" not in sql  # for one row of a large table the planner would read it from the beginning
    plan = memory._store.database.planned(f"EXPLAIN {sql}", values)  # type: ignore[attr-defined]
    assert "passages_words" in str(plan)


HALF = {"part": {"lt": 2}}


def test_with_a_broad_filter_a_search_reads_a_little_more_than_twice_as_far(many: tuple[Engine, np.ndarray]) -> None:
    """It reads the index once, and no statement looks through all passages that have a word."""
    memory, vectors = many
    memory.search("common heron w3", vector=vectors[0], where=HALF, graph_weight=0.0)  # what is read once is read now
    with listening() as heard:
        found = memory.search("common heron w5", vector=vectors[0], where=HALF, graph_weight=0.0)
    assert len(found) == 10 and all(hit.document.meta["part"] < 2 for hit in found)
    sent = [sql for sql, _ in heard]
    assert not [sql for sql in sent if "words @@" in sql or "EXISTS" in sql], sent
    (nearest,) = (sql for sql in sent if NEAR in sql)
    limit, considered = (int(re.search(rule, nearest)[1]) for rule in (r"LIMIT (\d+)", r"ef_search', '(\d+)'"))  # type: ignore[index]
    assert 232 < limit < 300 and limit <= considered < 400  # 200 of which half may be seen, and not 500
    looked_up = [values[-1] for sql, values in heard if "SELECT pid, did FROM" in sql]
    assert len(looked_up) <= 4 and max(map(len, looked_up)) < 300  # samples of the words, and the best passages


def test_only_a_breadth_beyond_the_usual_is_set_for_a_statement(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    for where, expected in ((None, memory._store.database.server.citus), (HALF, True)):  # type: ignore[attr-defined]
        with listening() as heard:
            memory.search("", vector=vectors[3], where=where, **MEANING)
        assert [bool("ef_search" in sql) for sql, _ in heard if NEAR in sql] == [expected]


@pytest.mark.parametrize("packed", [True, False], ids=["in the postings", "in the index"])
@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_a_word_of_hidden_documents_is_unknown(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, packed: bool, few: bool
) -> None:
    monkeypatch.setattr(postings, "PACK_FROM", 50 if packed else 1_000_000)
    monkeypatch.setattr(scope, "MAX_LISTED", 1_000 if few else 10)
    texts = ["lantern" if n % 2 else "lanetrn" for n in range(300)]
    memory.add([{"id": f"d{n}", "text": f"a {texts[n]}", "meta": {"half": n % 2}} for n in range(300)])
    memory.add([{"id": f"gone{n}", "text": "a cormorant", "meta": {"half": 0}} for n in range(40)])
    memory.prepare()
    memory.delete([f"gone{n}" for n in range(40)])
    memory.add([{"id": "new", "text": "a bittern", "meta": {"half": 0}}])  # after the postings
    with listening() as heard:
        found = memory.search("lantern", where={"half": 0}, k=5, **WORDS)
    assert len(found) == 5 and all("lanetrn" in hit.text for hit in found)
    assert "did you mean 'lanetrn'" in found.trace[0].detail
    assert any("words @@" in sql for sql, _ in heard), "what no sample has is looked up, since some are newer"
    with listening() as heard:
        assert "did you mean" not in memory.search("lantern", where={"half": 1}, **WORDS).trace[0].detail
    assert packed == (not any("SELECT p.did FROM" in sql and "words @@" in sql for sql, _ in heard))
    assert [hit.id for hit in memory.search("bittern", where={"half": 0}, **WORDS)] == ["new"]
    assert not memory.search("cormorant", where={"half": 0}, **WORDS).hits


def test_a_filter_that_hides_what_a_query_is_about_looks_up_each_passage_once(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked up eight times as many, and those it had looked up again: 10,000 passages of a large collection."""
    monkeypatch.setattr(postings, "PACK_FROM", 50)
    monkeypatch.setattr(scope, "MAX_LISTED", 10)
    # the best of the query are the shortest, which the filter hides but for every fifth
    memory.add(
        [
            {"id": f"d{n}", "text": "heron" + " reed" * (n // 100), "meta": {"seen": n >= 800 or n % 5 == 0}}
            for n in range(2_000)
        ]
    )
    memory.prepare()
    with listening() as heard:
        found = memory.search("heron", where={"seen": True}, k=60, lexical_depth=60, **WORDS)
    assert len(found) == 60 and {"d0", "d5", "d95", "d100"} <= {hit.id for hit in found}
    first, *more = [values[-1] for sql, values in heard if "SELECT pid, did FROM" in sql]
    assert more, "the first rows were too few"
    assert not set(first) & {pid for pids in more for pid in pids} and sum(map(len, more)) < 4 * len(first)


def test_an_array_of_documents_is_looked_up_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph asks for thousands; one by one they took longer than the walk."""
    listed = scope.Allowed(3, np.array([4, 64, 130]))
    seen = scope.Scope(lambda sql, values: [], Tables(1), _looked_up=[listed]).without([64])
    asked = np.array([3, 4, 64, 130, 131, 4])
    assert [did in seen for did in asked.tolist()] == [False, True, False, True, False, True]
    monkeypatch.setattr(scope.Scope, "expect", lambda *_: pytest.fail("one by one"))
    assert seen.rows(asked).tolist() == [False, True, False, True, False, True]
    assert seen.rows(np.array([], dtype=np.int64)).tolist() == []
    nothing = scope.Scope(
        lambda sql, values: [], Tables(1), _looked_up=[scope.Allowed(0, np.array([], dtype=np.int64))]
    )
    assert nothing.rows(asked).tolist() == [False] * 6


def test_postings_are_sent_as_bytes(many: tuple[Engine, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    """As text each byte is two digits, which the server writes and this process reads."""
    memory, _ = many
    real, sent = psycopg.Connection.execute, []

    def execute(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        sent.append((query, options.get("binary")))
        return real(self, query, params, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    assert memory.search("common heron w11", **WORDS)
    assert [binary for query, binary in sent if "first, term, entries" in query] == [True]


@pytest.mark.usefixtures("one_server")
def test_the_nearest_are_planned_once_however_many_indexes_there_are(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    url = postgres.fresh(pool=1)  # so that the same connection is asked what it has planned
    with trivet.open(url, embedder="hashing:32") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n} by the river"} for n in range(60)])
        memory.wait()
        memory.prepare()
        for n in range(8):  # a server plans a statement five times before it keeps the plan
            assert memory.search(f"heron {n}", **MEANING)
        sql = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%<=>%'"
        assert rows(memory, sql) == [(3, 5)]
    postgres.sweep()


def test_a_narrow_filter_does_not_starve_the_index(many: tuple[Engine, np.ndarray]) -> None:
    memory, vectors = many
    for where, there in (({"few": 7}, 40), ({"few": 7, "part": 3}, 20), ({"part": 1}, 500)):
        found = memory.search("", vector=vectors[0], k=30, where=where, dense_depth=30, **MEANING)
        assert len(found) == min(30, there), where


def test_words_are_found_whatever_they_cost(many: tuple[Engine, np.ndarray]) -> None:
    memory, _ = many
    found = memory.search("common rare heron", k=20, match="any", **WORDS)
    assert {hit.id for hit in found} == {f"d{n}" for n in range(0, 2000, 100)}
    inside = memory.search("common rare heron w3", k=50, match="any", where={"part": 2}, **WORDS)
    assert len(inside) == 50 and all(hit.document.meta["part"] == 2 for hit in inside)


@pytest.mark.usefixtures("one_server")
def test_without_postings_the_rarest_words_come_first(
    many: tuple[Engine, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = many
    monkeypatch.setattr(bm25, "FIRST_LOOK", 50)
    real = lexical._Search._known
    monkeypatch.setattr(lexical._Search, "_known", lambda self, wanted: unpacked(real(self, wanted)))
    with listening() as heard:
        found = memory.search("common rare heron", k=20, match="any", **WORDS)
    assert {hit.id for hit in found} == {f"d{n}" for n in range(0, 2000, 100)}
    assert "passages_words" in used(memory, heard, "SELECT (SELECT")


def unpacked(known: bm25.KnownTerms) -> bm25.KnownTerms:
    return replace(known, reach=0)


@pytest.mark.usefixtures("one_server")
def test_trigrams_come_from_their_index(many: tuple[Engine, np.ndarray]) -> None:
    memory, _ = many
    with listening() as heard:
        memory.search("raer heorn", weights={"lexical": 0, "dense": 0, "trigram": 1, "graph": 0}, rerankers=[])
    assert "passages_trigrams" in used(memory, heard, "SELECT word_similarity")


def test_a_step_that_takes_too_long_leaves_the_more_alike(
    many: tuple[Engine, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = many
    real = PostgresTrigrams._at_least

    def slow(self: PostgresTrigrams, threshold: float, *rest: object) -> object:
        if threshold < 0.6:
            raise trigrams.SlowError("too long")
        return real(self, threshold, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresTrigrams, "_at_least", slow)
    results = memory.search("rare heron", k=30, weights={"lexical": 0, "dense": 0, "trigram": 1, "graph": 0})
    assert results.hits and "stopped at a similarity of 0.6" in results.trace[0].detail


def test_half_the_precision_finds_the_same_and_scores_exactly(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "INDEX_FROM", 100)
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
    told = tsvector(odd, ["c++"])
    found = rows(memory, "SELECT tsvector_to_array(%s::tsvector)", told)[0][0]
    assert set(found) == set(odd)
    assert rows(memory, "SELECT %s::tsvector @@ %s::tsquery", told, tsquery((), odd, [odd[:2]])) == [(True,)]
    assert lexeme("it's") == "'it''s'"
    assert line(["c++", "plain", "zz1"]) == "czz2bzzzz2bzz plain zzzz1"
    assert rows(memory, "SELECT count(*) FROM unnest(to_tsvector('simple', %s))", line(odd)) == [(len(odd),)]


def test_what_is_not_plain_is_known() -> None:
    assert is_plain("heron 北京 🦉") and not is_plain("a\0b") and not is_plain("\U0010ffff")


@pytest.mark.parametrize("exclude", [[], ["s0"]], ids=["a filter", "a filter and an exclusion"])
def test_solutions_and_successors_are_judged_together(
    memory: Engine, exclude: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement checks all of them against the filter."""
    monkeypatch.setattr(scope, "MAX_LISTED", 1)  # what it allows is not listed but asked for
    monkeypatch.setattr(scope, "MAX_KEPT", 1)
    given = {"where": {"part": {"gte": 0}}, "exclude": exclude, "match": "any", **WORDS}
    memory.add([{"id": id, "text": f"a {id}", "meta": {"part": 1}} for id in ("problem", "old")])
    sent: list[int] = []
    for count in (3, 60):
        memory.add([{"id": f"s{n}", "text": "oil", "meta": {"part": 1}} for n in range(count)])
        memory._collection.links.add([Link("problem", f"s{n}", "resolved-by") for n in range(count)])
        memory._collection.links.add([Link(f"s{n}", "old", "supersedes") for n in range(count)])
        with listening() as heard:
            (found, *_) = memory.search("problem old", **given)
        judged = [sql for sql, _ in heard if "d.did = ANY(%s) AND" in sql]
        sent.append(len(judged))
        assert found.resolved_by or found.stands_for
    assert 0 < min(sent) <= max(sent) <= 4, sent  # and not one for each of sixty
