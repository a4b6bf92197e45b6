"""A distributed collection is read by as many statements as one in one piece, and answers the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.stores.postgres import postings, redistribute, vector_search
from trivet.stores.postgres.nul_characters import stored
from trivet.stores.postgres.tables import MAX_PARTS, SLOT, Tables

from .conftest import listening, rows

WORDS = ("heron", "river", "stone", "lamp", "fox", "hill", "moss", "oak", "mist", "reed")
EVERY_LEG = {"weights": {"lexical": 1, "dense": 1, "trigram": 1, "graph": 1}}
LEXICAL = {"weights": {"lexical": 1, "dense": 0, "graph": 0}, "rerankers": [], "k": 60, "understanding": "plain"}
QUERIES = ("heron", "heron river stone", "moss lamp oak mist", "reed mist oak moss hill fox", '"heron river"')
WHERES: tuple[Any, ...] = (None, {"n": {"lt": 150}}, {"session": "s3"})


def texts(count: int, draw: random.Random) -> list[dict[str, Any]]:
    """Return documents of one to four passages in sessions, with a few links."""
    made = []
    for n in range(count):
        parts = (
            " ".join(draw.choices(WORDS, weights=range(1, 11), k=draw.randint(2, 30)))
            for _ in range(draw.randint(1, 4))
        )
        made.append({"id": f"d{n}", "text": "\n\n".join(parts), "meta": {"n": n, "session": f"s{n % 9}"}})
    return made


@pytest.fixture(scope="module")
def stores(postgres: Postgres) -> Iterator[dict[int, Engine]]:
    """The same documents in one piece (0), and distributed over 1, 4 and 64 parts where the server is no cluster."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(postings, "PACK_FROM", 50)
        patch.setattr(vector_search, "INDEX_FROM", 100)
        made: dict[int, Engine] = {}
        for parts in (0, 1, 4, MAX_PARTS):
            patch.setattr(redistribute, "PLAIN_PARTS", parts)
            url = postgres.fresh(distribute="documents" if parts else "collections")
            made[parts] = engine = stack.enter_context(trivet.open(url, embedder="hashing:32", passage_size=24))
            engine.add(texts(200, random.Random(3)))
            engine.link("d5", "d4", "supersedes")
            engine.link("d8", "d9", "resolved-by")
            engine.wait()
            engine.prepare()
            engine.add(texts(30, random.Random(4)))  # newer than the postings
            engine.delete([f"d{n}" for n in range(100, 120)])
            engine.wait()
        yield made
    postgres.sweep()


@pytest.mark.parametrize("where", WHERES, ids=["everything", "many", "few"])
def test_a_search_is_as_many_statements_however_many_parts_there_are(stores: dict[int, Engine], where: Any) -> None:
    sent = {}
    for parts, engine in stores.items():
        engine.search("heron river stone", where=where, **EVERY_LEG)  # what is read once is read now
        with listening() as heard:
            engine.search("heron river mist", where=where, **EVERY_LEG)
        sent[parts] = len([sql for sql, _ in heard if sql.startswith("SELECT")])
    assert sent[1] == sent[4] == sent[MAX_PARTS], sent
    assert sent[4] <= sent[0] + 3, sent


@pytest.mark.parametrize("match", ["any", "all", "auto"])
@pytest.mark.parametrize("where", WHERES, ids=["everything", "many", "few"])
def test_bm25_is_that_of_one_piece(stores: dict[int, Engine], where: Any, match: str) -> None:
    """The frequencies of terms are those of the whole collection, so the scores agree to 1e-6."""
    for query in QUERIES:
        whole, *others = (scores(engine, query, where=where, match=match) for engine in stores.values())
        assert len(whole) > 1 or query.startswith('"') or where is not None
        for found in others:
            assert found.keys() == whole.keys(), query
            assert all(found[id] == pytest.approx(whole[id], abs=1e-6) for id in whole), query


def scores(engine: Engine, query: str, **options: Any) -> dict[str, float]:
    """Return the scores above the last one: of several with the last score, any may have been cut.

    A document that stands for an older one has none.
    """
    hits = engine.search(query, **LEXICAL, **options)
    found = [(hit.id, hit.contributions[0].raw) for hit in hits if hit.contributions]
    return {id: score for id, score in found if score > min(last for _, last in found) + 1e-6}


def test_each_part_looks_up_its_own_numbers(stores: dict[int, Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the numbers of all parts, each shard looked for all of them: eight shards took twice the CPU of four."""
    tables = Tables(7, (3, 5, 9))
    condition, values = tables.of_its_part("v.did", [64, 66, 128, 67])
    assert condition.count("%s") == len(values) and "v.part = h.part AND v.did = ANY(string_to_array(" in condition
    assert values == [[3, 9], "64,128;;66", [3, 5, 9]]  # 67 is of no part
    assert Tables(7).of_its_part("v.did", [1, 2]) == Tables(7).having("v.did", [1, 2]) and not Tables(7).and_parts
    monkeypatch.setattr(vector_search, "INDEX_FROM", 100_000)
    scores = []
    for parts, engine in stores.items():
        with listening() as heard:
            found = engine.search(
                "heron", where={"session": "s3"}, k=60, weights={"dense": 1, "lexical": 0, "graph": 0}, rerankers=[]
            )
        (asked,) = ((sql, values) for sql, values in heard if "v.data <=>" in sql)
        assert ("FROM distributed_vectors v, distributed_parts h WHERE" in asked[0]) == bool(parts)
        lists = next((value for value in asked[1] if isinstance(value, str) and ";" in value), "").split(";")
        assert len(lists) == max(1, len(engine._collection.rows.tables.parts))  # type: ignore[attr-defined]
        assert all(int(did) % MAX_PARTS == slot for slot, dids in enumerate(lists) for did in dids.split(",") if did)
        scores.append({hit.id: round(hit.contributions[0].raw, 6) for hit in found})
    assert scores[0] and scores[0] == scores[1] == scores[2] == scores[3]


def test_every_part_is_used_and_every_row_is_with_its_document(stores: dict[int, Engine]) -> None:
    for parts, engine in stores.items():
        tables = engine._collection.rows.tables  # type: ignore[attr-defined]
        assert tables.distributed == bool(parts)
        if not parts:
            continue
        found = dict(rows(engine, "SELECT part, count(*) FROM distributed_documents WHERE cid = %s GROUP BY 1", 1))
        assert len(found) > min(len(tables.parts), 30) // 2
        for id, did, part in rows(engine, "SELECT id, did, part FROM distributed_documents"):
            assert (tables.root, part) == tables.key_of(did) and did % MAX_PARTS == tables.slot_of(id)
        for table in ("passages", "vectors", "fields"):
            strays = (
                f"SELECT count(*) FROM {tables.name_of(table)} t WHERE NOT EXISTS (SELECT 1 FROM {tables.documents} d"
            )
            assert rows(engine, f"{strays} WHERE d.cid = t.cid AND d.part = t.part AND d.did = t.did)") == [(0,)]
        assert engine.verify().ok


def test_the_server_gives_a_document_the_same_part(memory: Engine) -> None:
    ids = ["a", "b", "ü", "北京 🦉", "with \0 nul", "it's", "x" * 400]
    for parts in (1, 3, 8, MAX_PARTS):
        tables = Tables(1, tuple(range(parts)))
        slot = SLOT.format(id="x.id", parts=parts)
        sql = f"SELECT {slot} FROM unnest(%s::text[]) WITH ORDINALITY AS x(id, at) ORDER BY at"
        assert [slot for (slot,) in rows(memory, sql, ids)] == [tables.slot_of(id) for id in ids]
    assert stored("a") == b"a"


@given(st.integers(1, 2**40), st.integers(0, MAX_PARTS - 1))
def test_a_number_tells_its_place_and_grows_with_the_count(count: int, slot: int) -> None:
    tables = Tables(7, tuple(range(100, 100 + MAX_PARTS)))
    number = tables.number(count, slot)
    assert tables.key_of(number) == (7, 100 + slot) and number // tables.step == count
    assert number <= tables.highest(count) < tables.number(count + 1, 0)
    whole = Tables(7)
    assert whole.number(count, slot) == whole.highest(count) == count and whole.key_of(count) == (7,)


def test_a_condition_names_the_parts_that_it_needs() -> None:
    tables = Tables(7, (3, 5, 9))
    assert tables.having("d.did", [64, 66, 128]) == (
        "d.cid = 7 AND d.part = ANY(%s) AND d.did = ANY(%s)",
        [[3, 9], [64, 66, 128]],
    )
    assert tables.having("pid", [67]) == ("cid = 7 AND part = ANY(%s) AND pid = ANY(%s)", [[], [67]])
    assert Tables(7).having("d.did", [1, 2]) == ("d.cid = 7 AND d.did = ANY(%s)", [[1, 2]])
    condition, (parts, ids) = tables.having_id("id", ["a", "a", "b"])
    assert condition == "cid = 7 AND part = ANY(%s) AND id = ANY(%s)" and ids == ["a", "b"]
    assert set(parts) == {tables.parts[tables.slot_of(id)] for id in ids}


def test_a_part_that_has_all_of_the_nearest_is_asked_for_more(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part proposes its share of the nearest first, and not as many as are wanted of all together."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 100)
    monkeypatch.setattr(vector_search, "rows_of_part", lambda total, parts: total // parts)
    monkeypatch.setattr(redistribute, "PLAIN_PARTS", 4)
    draw = np.random.default_rng(5)
    with trivet.open(postgres.fresh(distribute="documents"), embedder="vectors:8") as memory:
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        near = [id for id in (f"n{n}" for n in range(4_000)) if tables.slot_of(id) == 1][:100]
        vectors = [np.eye(8)[0] + 0.1 * draw.standard_normal(8) for _ in near]
        memory.add([{"id": id, "text": "x", "vector": vector} for id, vector in zip(near, vectors, strict=True)])
        memory.add(
            [{"id": f"f{n}", "text": "x", "vector": draw.standard_normal(8) - 9 * np.eye(8)[0]} for n in range(300)]
        )
        memory.rebuild()
        with listening() as heard:
            found = memory.search(
                "", vector=np.eye(8)[0], k=40, weights={"dense": 1, "lexical": 0, "graph": 0}, rerankers=[]
            )
        exact = sorted(near, key=lambda id: -float((v := vectors[near.index(id)])[0] / np.linalg.norm(v)))[:40]
        assert len({hit.id for hit in found} & set(exact)) >= 38
        asked = (sql for sql, _ in heard if "ORDER BY (v.data::" in sql)
        limits = [int(sql.rpartition("LIMIT ")[2].partition(")")[0]) for sql in asked]
        assert 2 <= len(limits) <= 3 and limits == sorted(set(limits)), limits  # a cluster has more parts
    postgres.sweep()


def test_a_vector_of_zeros_is_none_of_the_nearest(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its distance is NaN, which has no place in an order; an index leaves it out, a scan of a small shard does not."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 10)
    monkeypatch.setattr(redistribute, "PLAIN_PARTS", 4)
    draw = np.random.default_rng(6)
    vectors = {f"n{n}": draw.standard_normal(8) for n in range(30)}
    with trivet.open(postgres.fresh(distribute="documents"), embedder="vectors:8") as memory:
        memory.add([{"id": f"z{n}", "text": "x", "vector": np.zeros(8)} for n in range(300)])
        memory.add([{"id": id, "text": "x", "vector": vector} for id, vector in vectors.items()])
        found = memory.search(
            "", vector=np.eye(8)[0], k=10, dense_depth=10, weights={"dense": 1, "lexical": 0, "graph": 0}, rerankers=[]
        )
        nearest = sorted(vectors, key=lambda id: -float(vectors[id][0] / np.linalg.norm(vectors[id])))
        assert [hit.id for hit in found] == nearest[:10]
    postgres.sweep()
