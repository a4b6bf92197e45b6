"""A store behind PgBouncer: nothing is left on a connection that another client gets after the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import trivet
from servers import Postgres, pooled
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.stores.postgres import postings, vector_search

MODES = ["session", "transaction"]
LEGS = {"lexical": 1.0, "dense": 1.0, "trigram": 1.0, "graph": 1.0}


@pytest.fixture(params=MODES)
def bouncer(request: pytest.FixtureRequest, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgres]:
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    with pooled(postgres, request.param) as server:
        yield server
        server.sweep()


def documents(name: str = "d", count: int = 60) -> list[dict[str, Any]]:
    return [{"id": f"{name}{n}", "text": f"heron {name} {n} by the river", "meta": {"n": n}} for n in range(count)]


def database_of(engine: Engine) -> Any:
    return engine._store.database  # type: ignore[attr-defined]


def test_everything_works_through_a_pooler(bouncer: Postgres) -> None:
    url = bouncer.fresh(pool=4, statement_timeout=20)
    with trivet.open(url, embedder="hashing:32") as one, trivet.open(url, embedder="hashing:32") as other:
        assert database_of(one).pooled
        one.add(documents())
        one.wait()
        one._collection.maintenance.update()
        for _ in range(8):  # more often than psycopg waits before it prepares a statement
            found = [hit.id for hit in other.search("heron 7 river", weights=LEGS, where={"n": {"gte": 5}})]
            assert found[0] == "d7" and len(found) == 10
        assert not other.search("heron", weights=LEGS).degraded
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda n: (one, other)[n % 2].add(documents(f"t{n}-", 5)), range(8)))
        assert one.stats().documents == 100
        other.wait()
        other.reembed("hashing:16")
        for each in (one, other):  # who finds an index being built leaves it to the one that builds it
            each._store._background.join()  # type: ignore[attr-defined]
        one.rebuild()
        assert other.verify().ok
        names = "SELECT count(*) FROM pg_indexes WHERE schemaname = %s AND indexname LIKE 'meaning%%'"
        assert database_of(one).all(names, (database_of(one).address.schema,)) == [(1,)]
        one.compact()
        other.collection("second", embedder="none").drop()


def test_nothing_is_left_on_a_connection(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client after us gets the server's connection as it was before us."""
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    monkeypatch.setattr(vector_search, "INDEX_FROM", 20)
    state = (
        "SELECT (SELECT count(*) FROM pg_prepared_statements), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), "
        "current_setting('search_path'), current_setting('jit'), current_setting('statement_timeout'), "
        "current_setting('maintenance_work_mem'), current_setting('work_mem')"
    )
    with postgres.connect() as plain:
        before = plain.execute(state).fetchone()
    with pooled(postgres, "transaction", "server_reset_query =") as server:
        with trivet.open(server.fresh(), embedder="hashing:32") as memory:
            for at in range(3):
                memory.add(documents(f"{at}-"))
                memory.wait()
                memory._collection.maintenance.update()
                for _ in range(8):
                    memory.search("heron river", weights=LEGS)
            memory.rebuild()
        clients = [psycopg.connect(server.url, prepare_threshold=None) for _ in range(8)]  # each holds a connection
        for client in clients:
            assert client.execute(state).fetchone() == before
        for client in clients:
            client.close()
        server.sweep()


def test_memory_for_an_index_cannot_be_asked_through_a_pooler(postgres: Postgres) -> None:
    with pytest.raises(InputError, match="ALTER ROLE … SET maintenance_work_mem"):
        trivet.open(postgres.fresh(pooler="yes", maintenance_work_mem="1GB"), embedder="none")


def test_a_pooler_that_drops_the_options_is_recognised(postgres: Postgres) -> None:
    with pooled(postgres, "transaction", "ignore_startup_parameters = options") as server:
        with trivet.open(server.fresh(), embedder="none") as memory:
            assert database_of(memory).pooled
            memory.add("heron", id="a")
            assert memory.search("heron")[0].id == "a"
        server.sweep()


def test_a_server_without_a_pooler_is_recognised_too(postgres: Postgres) -> None:
    for said in ("no", "yes"):
        with trivet.open(postgres.fresh(pooler=said), embedder="none") as memory:
            assert database_of(memory).pooled == (said == "yes")
            memory.add("heron", id="a")
            assert memory.search("heron")[0].id == "a"
    postgres.sweep()
