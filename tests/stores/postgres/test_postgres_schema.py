"""A single server and a cluster both accept the schema."""

from __future__ import annotations

import re
import secrets

import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.engine.request import SearchRequest
from trivet.stores.postgres import database, postings, schema, vector_search
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.schema import DISTRIBUTED, REFERENCE, Server, m001_create_tables, statements

from .conftest import rows


def made(*extensions: str) -> list[str]:
    return m001_create_tables(Server(150000, frozenset(extensions), "trivet, public"))


def test_the_tables_by_document_have_the_shards_that_are_asked_for() -> None:
    for asked, expected in ((None, "shard_count => (\nCASE (SELECT source"), (12, "shard_count => 12,")):
        server = Server(150000, frozenset({"vector", "pg_trgm", "citus"}), "trivet, public", shards=asked)
        (made_first,) = (line for line in schema.m007_add_tables_by_part(server) if "shard_count" in line)
        assert expected in made_first and "colocate_with => 'none'" in made_first


def test_on_a_single_server_the_shards_are_the_parts(postgres: Postgres) -> None:
    with trivet.open(postgres.fresh(distribute="documents", shards=3), embedder="none") as memory:
        assert len(memory._collection.rows.tables.parts) == 3  # type: ignore[attr-defined]
    postgres.sweep()


def test_the_collection_is_in_every_key_of_a_distributed_table() -> None:
    for statement in statements(schema.TABLES):
        table = re.match(r"CREATE TABLE (\w+)", statement)
        if table is None or table[1] in REFERENCE:
            continue
        assert table[1] in DISTRIBUTED, table[1]
        for key in re.findall(r"(?:PRIMARY KEY|UNIQUE) \(([^)]*)\)", statement):
            assert key.split(",")[0] == "cid", f"{table[1]}: {key}"
        assert "PRIMARY KEY (cid" in statement or "cid bigint PRIMARY KEY" in statement
    for statement in statements(schema.KEYS):
        for columns in re.findall(r"\(([^)]*)\)", statement):
            assert columns.startswith("cid, "), statement
    for statement in statements(schema.INDEXES):
        assert re.search(r"\((?:cid),", statement), statement


def test_nothing_a_cluster_refuses() -> None:
    script = " ".join(made("vector", "pg_trgm", "btree_gin"))
    for word in ("TRIGGER", "serial", "now()", "random()", "DEFAULT", "GENERATED"):
        assert word not in script, word


def test_on_a_cluster_tables_are_distributed_before_keys_and_indexes() -> None:
    script = made("vector", "pg_trgm", "btree_gin", "citus")
    at = {name: next(n for n, line in enumerate(script) if name in line) for name in ("FOREIGN KEY", "CREATE INDEX")}
    distributed = [n for n, line in enumerate(script) if "create_distributed_table" in line]
    created = [n for n, line in enumerate(script) if line.startswith("CREATE TABLE")]
    assert max(created) < min(distributed) <= max(distributed) < at["FOREIGN KEY"] < at["CREATE INDEX"]
    assert len(distributed) == len(DISTRIBUTED) and sum("create_reference_table" in line for line in script) == 3
    assert script[distributed[0]] == "SELECT create_distributed_table('documents', 'cid')"
    assert all("colocate_with => 'documents'" in script[n] for n in distributed[1:])
    assert not any("citus" in line or "distributed" in line for line in made("vector", "pg_trgm"))


def test_bm25_tables_are_not_made_on_a_cluster() -> None:
    assert Server(180000, frozenset({"pg_textsearch"}), "").bm25
    assert not Server(180000, frozenset({"pg_textsearch", "citus"}), "").bm25


def test_another_schema_is_another_store(postgres: Postgres) -> None:
    one, two = postgres.fresh(), postgres.fresh()
    with trivet.open(one, embedder="none") as first_store, trivet.open(two, embedder="none") as second:
        first_store.add("heron")
        assert second.stats().documents == 0
    postgres.sweep()


def test_a_newer_schema_is_refused(memory: Engine) -> None:
    from trivet.errors import StoreError

    memory._store.database.ask(lambda c: c.execute("INSERT INTO migrations VALUES (99)"))  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="upgrade trivet"):
        trivet.open(memory.url, embedder="none")


def test_values_travel_as_parameters(memory: Engine) -> None:
    memory.add({"id": "a'; DROP TABLE documents; --", "text": "heron", "meta": {"k'; --": "v'; --"}})
    assert len(memory.search("heron", where={"k'; --": "v'; --"})) == 1
    assert rows(memory, "SELECT count(*) FROM documents") == [(1,)]


def test_a_store_of_the_first_migration_is_brought_up_to_date(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", (schema.m001_create_tables,))
        database.Database(Address.parse(url)).close()
    monkeypatch.setattr(postings, "PACK_FROM", 10)
    with trivet.open(url, embedder="none") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(40)])
        memory.prepare()
        memory._collection.maintenance.update()
        assert rows(memory, "SELECT max(number) FROM migrations") == [(len(schema.MIGRATIONS),)]
        assert rows(memory, "SELECT max(last) FROM segments") == [(40,)]
        assert memory.search("heron 7")[0].id == "d7"
    postgres.sweep()


def test_who_stands_next_to_whom_is_the_same_where_a_collection_is_distributed(postgres: Postgres) -> None:
    """Rerankers use the distance between two turns of a conversation."""
    orders = []
    for by in ("collections", "documents"):
        with trivet.open(postgres.fresh(distribute=by), embedder="none") as memory:
            memory.add([{"id": f"t{n}", "text": f"heron turn {n}", "meta": {"session": "s"}} for n in range(12)])
            _, _, tools = memory._pipeline.before_reranking(SearchRequest("heron", profile="default"), 12)
            orders.append(dict(sorted(tools.order.items())))
    assert orders[0] == orders[1] and sorted(orders[0].values()) == list(range(1, 13))
    postgres.sweep()


def test_a_collection_stays_distributed_whatever_address_it_is_opened_by(postgres: Postgres) -> None:
    url = postgres.fresh()
    with trivet.open(f"{url}&distribute=documents&pool=1", "big", embedder="none") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(20)])
        assert len(memory.search("heron", k=20)) == 20, "one connection is enough"
    with trivet.open(url, "big", embedder="none") as memory, trivet.open(url, "small", embedder="none") as small:
        memory.add("heron again", id="d3")
        small.add("heron")
        assert memory.stats().documents == 20 and memory.verify().ok
        assert rows(memory, "SELECT count(DISTINCT part) > 1 FROM distributed_documents") == [(True,)]
        memory.drop()
        assert rows(small, "SELECT count(*) FROM passages") == [(1,)]
        assert rows(small, "SELECT count(*) FROM distributed_parts") == [(0,)]
    postgres.sweep()


def test_a_store_in_the_schema_public_keeps_its_indexes(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """``public`` is on the search path of every store, so a name without a schema may be one of this store."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    name = f"test_{secrets.token_hex(6)}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    server = Postgres(f"{postgres.url.rsplit('/', 1)[0]}/{name}")
    documents = [{"id": f"d{n}", "text": f"heron {n}"} for n in range(40)]
    try:
        with (
            trivet.open(server.of("public"), embedder="hashing:32") as here,
            trivet.open(server.of("other"), embedder="hashing:32") as there,
        ):
            here.add(documents)
            here.wait()
            here.rebuild()
            for change in (lambda: there.add(documents), there.wait, there.rebuild, there.drop):
                change()
                assert here.verify().ok
    finally:
        with postgres.connect() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
