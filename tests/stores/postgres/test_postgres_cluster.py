"""Every statement of the store is one that a Citus cluster accepts; what it refuses was found out on a real one.

The statements are those of a whole life of a collection, heard on a real server; on a cluster (``TRIVET_TEST_POSTGRES``
names its coordinator) the last tests look where the rows lie and how they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.stores.postgres import postings, schema, vector_search
from trivet.stores.postgres.database import SETTINGS
from trivet.stores.postgres.schema import (
    DISTRIBUTED,
    LATER,
    LATER_BY_PART,
    LATER_REFERENCE,
    MIGRATIONS,
    REFERENCE,
    Server,
)
from trivet.stores.postgres.tables import BY_DOCUMENT

from .conftest import Statement, listening, rows

SOURCES = Path(schema.__file__).parent
TABLES = (*DISTRIBUTED, *LATER)
BY_PART = LATER_BY_PART  # the tables of collections that are distributed by document
CLUSTER = Server(150000, frozenset({"vector", "pg_trgm", "btree_gin", "citus"}), "trivet, public")


def live(url: str) -> None:
    """Use every operation of a collection."""
    with trivet.open(url, embedder="hashing:32", passage_size=12) as memory:
        memory.add(
            [
                {
                    "id": f"d{n}",
                    "text": f"heron {n} by the river, and some more words",
                    "meta": {"n": n, "s": f"v{n % 3}"},
                }
                for n in range(60)
            ]
        )
        memory.add("a lamp\n\nin the harbour\n\nburns all night long and longer", id="long", links=["d1"])
        memory.add({"id": "d3", "text": "rewritten heron", "meta": {"n": -1}})
        memory.remember("told by everyone")
        memory.remember("told by everyone")
        memory.link("d5", "d4", "supersedes")
        memory.link("d6", "d7", "resolved-by")
        memory.patch("d8", meta={"on": True})
        memory.touch(["d1", "d2"])
        memory.feedback("which bird", "d1", good=True)
        memory.wait()
        memory._collection.maintenance.update(graph=True)
        everything = {"weights": {"lexical": 1, "dense": 1, "trigram": 1, "graph": 1}}
        for where in (None, {"s": "v1"}, {"n": {"gte": 3}}, {"s": {"ne": "v1"}}):
            memory.search("herron by the river", where=where, exclude=["d9"], **everything)
        memory.search('"by the river"', match="all")
        memory.explain("heron", "d1")
        memory.page(where={"s": "v1"}), memory.facets(), memory.timeline(), memory.links("d5")
        memory.update_settings(k=7)
        memory.settings_history()
        list(memory.lines(vectors=True))
        memory.delete(["d10", "d11"])
        memory.unlink("d5", "d4")
        assert memory.verify().ok
        memory.reembed("hashing:16")
        memory.rebuild()
        memory.collection("other", embedder="none").add("x")
        memory.collection("other", embedder="none").drop()


@pytest.fixture(scope="module", params=["collections", "documents"])
def heard(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[list[Statement]]:
    with pytest.MonkeyPatch.context() as patch, listening() as statements:
        patch.setattr(postings, "PACK_FROM", 10)
        patch.setattr(vector_search, "INDEX_FROM", 20)
        live(postgres.fresh(distribute=request.param))
    postgres.sweep()
    yield statements


def is_ours(sql: str) -> bool:
    """Tell whether a statement is about rows, rather than about the schema or the server."""
    return sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "COPY", "\nINSERT")) and any(
        re.search(rf"\b{table}\b", sql) for table in (*TABLES, *BY_PART)
    )


def named(sql: str) -> list[tuple[str, str]]:
    """Return the tables of a statement with their aliases, which may be empty."""
    tables = "|".join((*TABLES, *BY_PART))
    found = re.findall(rf"\b(?:FROM|JOIN|UPDATE) ({tables})\b(?: (?:AS )?([a-z])\b)?", sql)
    return [*found, *re.findall(rf", ({tables}) ([a-z])\b", sql)]  # FROM passages p, documents d


def test_a_life_was_heard(heard: list[Statement]) -> None:
    sent = " ".join(sql for sql, _ in heard)
    for table in (*TABLES, *REFERENCE):
        if table != "keys":  # nor what belongs to keys and cursors: one row each, on every worker
            assert re.search(rf"(FROM|INTO|UPDATE|COPY|JOIN) {table}\b", sent), f"nothing was asked of {table}"


def test_a_collection_is_in_one_set_of_tables(heard: list[Statement]) -> None:
    written = {
        table
        for sql, _ in heard
        if (found := re.match(r"\n?(?:COPY|INSERT INTO) (\w+)", sql))
        for table in BY_DOCUMENT
        if found[1] in (table, f"distributed_{table}")
    }
    assert written == set(BY_DOCUMENT)
    sets = {sql.startswith("COPY distributed_") for sql, _ in heard if re.match(r"COPY \w*documents", sql)}
    assert len(sets) == 1


def test_every_table_of_a_statement_is_bound_to_one_collection(heard: list[Statement]) -> None:
    """Each table of a statement has its ``cid`` compared or joined: one in one piece is then on one worker."""
    for sql in {sql for sql, _ in heard if is_ours(sql)}:
        if sql.startswith("COPY"):
            assert "(cid, part, " in sql if "COPY distributed_" in sql else "(cid, " in sql, sql
            continue
        for table, alias in named(sql):
            column = rf"\b{alias}\.cid = " if alias else r"\bcid = "
            there = re.search(column, sql) or (alias and re.search(rf"= {alias}\.cid\b", sql))
            assert there, f"{table} {alias}: {sql}"
        if "INSERT INTO" in sql:
            assert re.search(r"INSERT INTO \w+ (AS \w )?\(cid, ", sql), sql


def test_tables_by_document_are_joined_on_one_shard(heard: list[Statement]) -> None:
    """A join without the distribution column would send rows between workers, or be refused."""
    joins = 0
    for sql in {sql for sql, _ in heard if is_ours(sql)}:
        by_part = {alias: table in BY_PART for table, alias in named(sql) if alias}
        pairs = {
            (one, other)
            for one, other in re.findall(r"\b([a-z])\.\w+ = ([a-z])\.\w+", sql)
            if one in by_part and other in by_part
        }
        for one, other in pairs:
            assert by_part[one] == by_part[other], f"a join of two sets of tables: {sql}"
            if by_part[one]:
                joins += 1
                assert re.search(rf"\b{one}\.part = {other}\.part\b|\b{other}\.part = {one}\.part\b", sql), sql
    assert joins or not any("COPY distributed_documents" in sql for sql, _ in heard)


def test_no_statement_joins_two_collections(heard: list[Statement]) -> None:
    for sql, values in heard:
        if is_ours(sql) and not sql.startswith("COPY"):
            literal = set(re.findall(r"cid = (\d+)", sql))
            assert len(literal) <= 1, sql
            if values and isinstance(values, (tuple, list)):
                places = [match.start() for match in re.finditer(r"%s", sql)]
                bound = {
                    values[at] for at, place in enumerate(places) if re.search(r"cid = $", sql[:place][-8:]) is not None
                }
                assert len(bound | {int(number) for number in literal}) <= 1, (sql, values)


REFUSED = (
    r"\bnow\(\)", r"\brandom\(\)", r"CURRENT_TIMESTAMP", r"clock_timestamp", r"gen_random_uuid", r"SKIP LOCKED",
    r"WITH RECURSIVE", r"\bTRIGGER\b", r"\bnextval\(", r"\bserial\b", r"GENERATED", r"\bDEFAULT\b",
    r"VALUES\s*\([^)]*\bSELECT\b", r"\bMERGE INTO\b",
)  # fmt: skip


def test_no_statement_has_what_a_cluster_refuses(heard: list[Statement]) -> None:
    script = [statement for migration in MIGRATIONS for statement in migration(CLUSTER)]
    for sql in {*(sql for sql, _ in heard), *script}:
        for refused in REFUSED:
            assert not re.search(refused, sql, re.IGNORECASE if refused.isupper() else 0), (refused, sql)
        own = sql.replace("set_config('hnsw.", "")  # which the workers evaluate themselves
        assert "set_config(" not in own or sql.startswith("SELECT set_config('search_path'"), "it does not propagate"
        if "DO UPDATE" in sql:  # what a worker computes by itself could differ
            assert re.search(r"DO UPDATE SET (\w+ = (\w\.\w+ \+ )?excluded\.\w+(, )?)+( WHERE|$)", sql), sql


def test_no_source_knows_a_constraint_by_its_name() -> None:
    """Constraints have other names on a worker, so errors are recognised by SQLSTATE."""
    for path in SOURCES.glob("*.py"):
        assert not re.search(r"constraint_name|\.diag\b|UniqueViolation", path.read_text()), path.name


def test_keys_and_migrations_hold_the_distribution_column() -> None:
    script = [statement for migration in MIGRATIONS for statement in migration(CLUSTER)]
    made: list[str] = []
    distributed: list[str] = []
    for statement in script:
        if table := re.match(r"CREATE TABLE (\w+)", statement):
            made.append(table[1])
            assert "REFERENCES" not in statement, "no foreign key before the distribution"
            if table[1] not in (*REFERENCE, *LATER_REFERENCE):
                keys = re.findall(r"(?:PRIMARY KEY|UNIQUE) \(([^)]*)\)", statement)
                assert (keys or "cid bigint PRIMARY KEY" in statement) and all(key.startswith("cid") for key in keys)
                assert table[1] not in BY_PART or all("part" in key.split(", ") for key in keys)
        if table := re.match(r"SELECT create_(?:distributed|reference)_table\('(\w+)'", statement):
            distributed.append(table[1])
        if table := re.match(r"(?:CREATE INDEX \w+ ON|ALTER TABLE) (\w+) .*(?:USING|FOREIGN|\()", statement):
            assert table[1] in distributed or "SET STORAGE" in statement, f"before the distribution: {statement}"
        if "UNIQUE INDEX" in statement or "FOREIGN KEY" in statement:
            assert all(columns.startswith("cid") for columns in re.findall(r"\(([^)]*)\)", statement)), statement
    made.append("migrations")  # made before the first migration
    assert sorted(made) == sorted(distributed), "every table is distributed or on every worker"
    assert script.index("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'") < next(
        at for at, statement in enumerate(script) if "create_" in statement and "_table(" in statement
    )


def test_settings_reach_the_workers(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single server accepts the setting, as one of an extension that it does not have."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 1)
    database = memory._store.database  # type: ignore[attr-defined]
    memory.add("heron by the river", id="a")
    memory.wait()
    database.server = replace(database.server, extensions=database.server.extensions | {"citus"})
    with listening() as statements:
        memory.search("heron", weights={"lexical": 1, "dense": 1, "trigram": 1, "graph": 0})
    sent = [sql for sql, _ in statements]
    propagated = sent.count("SET LOCAL citus.propagate_set_commands TO 'local'")
    trigram, jit = (sum(sql.startswith(f"SET LOCAL {name}") for sql in sent) for name in ("pg_trgm.", "jit "))
    assert propagated == trigram + jit and trigram and jit
    (nearest,) = (sql for sql in sent if "ORDER BY (v.data::" in sql)
    assert "set_config('hnsw.ef_search', '200', true)" in nearest  # SET LOCAL begins a transaction on every worker
    assert database._settings(None)["citus.executor_slow_start_interval"] == "250"
    assert not [sql for sql in sent if re.match(r"SET (?!LOCAL)", sql)]
    with listening() as statements:
        database.planned("SELECT 1", ())
    sent = [sql for sql, _ in statements]
    at = sent.index("SET LOCAL citus.propagate_set_commands TO 'local'")  # a background thread may send others beside
    assert at < sent.index("SET LOCAL jit TO off", at) < sent.index("SELECT 1", at)


def test_a_store_that_was_made_before_the_cluster_says_so(memory: Engine) -> None:
    store = memory._store
    assert store.problems() == []
    server = store.database.server  # type: ignore[attr-defined]
    server = replace(server, extensions=server.extensions | {"citus"}, undistributed=True)
    store.database.server = server  # type: ignore[attr-defined]
    assert not server.citus and not any("create_" in line and "_table(" in line for line in MIGRATIONS[0](server))
    memory.add("heron", id="a")
    assert memory.search("heron")[0].id == "a"
    (problem,) = memory.verify().problems
    assert "made before `CREATE EXTENSION citus`" in problem and "trivet copy" in problem


def test_every_node_of_a_cluster_knows_the_version_of_the_schema() -> None:
    assert "SELECT create_reference_table('migrations')" in MIGRATIONS[5](CLUSTER)
    assert MIGRATIONS[5](replace(CLUSTER, extensions=frozenset())) == []


# --- on a cluster -----------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(postgres: Postgres) -> Postgres:
    if not postgres.is_cluster:
        pytest.skip("this server is no Citus cluster; TRIVET_TEST_POSTGRES=URL of a coordinator runs it there")
    return postgres


@pytest.mark.parametrize("by", ["collections", "documents"])
def test_on_a_cluster_a_collection_lies_where_it_was_said(cluster: Postgres, by: str) -> None:
    with trivet.open(cluster.fresh(distribute=by), embedder="hashing:32") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(200)])
        memory.wait()
        name = memory._store.database.address.schema  # type: ignore[attr-defined]
        sql = "SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid "
        sql += "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
        there = {*TABLES, *BY_PART, *REFERENCE, *LATER_REFERENCE, "migrations"}
        assert {table for (table,) in rows(memory, sql, name)} == there
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        counted = f"SELECT result FROM run_command_on_shards('{tables.documents}', 'SELECT count(*) FROM %s')"
        told = rows(memory, counted)
        holding = [int(count) for (count,) in told if int(count)]
        assert sum(holding) == 200 and (len(holding) == 1 if by == "collections" else len(holding) > 1)
        assert by == "collections" or len(tables.parts) == len(told), "a part for each shard"
        assert len(memory.search("heron 7")) == 10 and memory.verify().ok
    cluster.sweep()


@pytest.mark.parametrize("setting", [None, 6])
def test_on_a_cluster_a_store_has_few_shards_unless_more_are_asked_for(cluster: Postgres, setting: int | None) -> None:
    with cluster.connect() as connection:
        nodes = "SELECT count(*) FROM pg_dist_node WHERE shouldhaveshards AND noderole = 'primary'"
        ((workers,),) = connection.execute(nodes).fetchall()
        ((source,),) = connection.execute("SELECT source FROM pg_settings WHERE name = 'citus.shard_count'").fetchall()
    if setting is None and source != "default":
        pytest.skip("the server says how many shards there are")
    set_for_it = {} if setting is None else {"options": f"-c%20citus.shard_count%3D{setting}"}
    usual = cluster.fresh(distribute="documents", **set_for_it)
    asked = cluster.fresh(distribute="documents", shards=3, **set_for_it)
    for url, expected in ((usual, setting or max(4, workers)), (asked, 3)):
        with trivet.open(url, embedder="none") as memory:
            memory.add([{"id": f"d{n}", "text": "heron"} for n in range(30)])
            assert len(memory._collection.rows.tables.parts) == expected  # type: ignore[attr-defined]
            told = rows(
                memory, "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'distributed_passages'::regclass"
            )
            assert told == [(expected,)]
            assert len(memory.search("heron", k=30)) == 30
    refused = pytest.raises(InputError, match=r"shards is 5, but the tables of this store have 3.*trivet copy")
    with trivet.open(asked.replace("shards=3", "shards=5"), embedder="none") as memory, refused:
        memory.collection("other")
    cluster.sweep()


def test_memory_for_an_index_cannot_be_asked_of_a_cluster_by_an_address(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh()
    with trivet.open(url, embedder="none") as memory:
        server = memory._store.database.server  # type: ignore[attr-defined]
    cluster = replace(server, extensions=server.extensions | {"citus"})
    monkeypatch.setattr("trivet.stores.postgres.database.prepare", lambda connection, address: cluster)
    with pytest.raises(InputError, match=r"maintenance_work_mem cannot be set on the workers.*ALTER ROLE"):
        trivet.open(f"{url}&maintenance_work_mem=96MB", embedder="none")
    postgres.sweep()


@pytest.mark.parametrize("by", ["collections", "documents"])
def test_on_a_cluster_the_settings_of_the_index_reach_it(
    cluster: Postgres, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a second look, an index returns as many rows as it keeps candidates."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    monkeypatch.setitem(SETTINGS, "hnsw.iterative_scan", "off")
    monkeypatch.setattr(vector_search, "MOST_CANDIDATES", 7)
    with trivet.open(cluster.fresh(distribute=by), embedder="vectors:8") as memory:
        vectors = np.random.default_rng(1).standard_normal((8_000, 8))
        memory.add([{"id": f"d{n}", "text": "heron", "vector": vector} for n, vector in enumerate(vectors)])
        memory.prepare()
        collection = memory._collection
        search = collection.vectors.of_model(collection.state().model)  # type: ignore[attr-defined]
        literal = f"[{','.join(map(repr, vectors[0].tolist()))}]"
        parts = max(1, len(collection.rows.tables.parts))  # type: ignore[attr-defined]
        assert 0 < len(search._candidates(literal, 100)) <= 7 * parts
    cluster.sweep()


def test_on_a_cluster_a_search_starts_no_connection_to_a_worker(cluster: Postgres) -> None:
    """By default Citus starts one more for each 10 ms that a statement takes, and ends it afterwards."""
    with trivet.open(cluster.fresh(distribute="documents"), embedder="hashing:32") as memory:
        database = memory._store.database  # type: ignore[attr-defined]
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(50)])
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        where = f"FROM {tables.documents} WHERE cid = {tables.root} GROUP BY part"
        asked = database.all(f"SELECT min(pg_backend_pid()), min(inet_server_port()), pg_sleep(0.03), part {where}")
        assert len({pid for pid, *_ in asked}) == len({port for _, port, *_ in asked}) < len(asked), asked
        assert rows(memory, "SHOW citus.executor_slow_start_interval") == [("250ms",)]
    cluster.sweep()


def test_on_a_cluster_the_workers_answer_with_their_best(cluster: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """ORDER BY and LIMIT are applied on each shard, and the vectors there come from the shard's HNSW index."""
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    with trivet.open(cluster.fresh(distribute="documents"), embedder="hashing:32") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(400)])
        memory.wait(), memory.prepare()
        with listening() as statements:
            memory.search("heron 7", weights={"lexical": 1, "dense": 1, "graph": 0})
        asked = [(sql, values) for sql, values in statements if "ORDER BY (v.data::" in sql]
        plans = ""
        database = memory._store.database  # type: ignore[attr-defined]
        for sql, values in asked:
            with database.connection() as connection, database.transaction(connection):
                connection.execute("SET LOCAL citus.propagate_set_commands TO 'local'")
                connection.execute("SET LOCAL enable_seqscan TO off")
                connection.execute("SET LOCAL enable_sort TO off")
                connection.execute("SET LOCAL citus.explain_all_tasks TO on")
                # with the values in the text: Citus explains no statement with parameters
                lines = psycopg.ClientCursor(connection).execute(f"EXPLAIN {sql}", values).fetchall()
                plans += "\n".join(line for (line,) in lines)
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        assert plans.count("Limit") >= len(tables.parts), plans
        assert "Distributed Subplan" not in plans, "nothing is brought to the coordinator before the limit"
        assert len(re.findall(r"Index Scan using meaning_\d+_\d+_\d+", plans)) == len(tables.parts), plans
    cluster.sweep()
